//! A short look at connections and UDP sockets by their places, for those who look at all of them.

use std::net::SocketAddr;

use crate::fifo::Buffers;
use crate::handle::{ConnectionId, UdpId};
use crate::sequence::Seq;
use crate::stack::Stack;
use crate::tcp::hot::flag;
use crate::tcp::state::State;

/// What is another as soon as a connection has sent or received something, to be compared with an earlier look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glance {
    /// The connection.
    pub id: ConnectionId,
    /// Where it is in its life.
    pub state: State,
    sent: [Seq; 2],
    received: [Seq; 2],
    window: u32,
    backoff: u8,
    waits: bool,
}

/// A UDP socket as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpGlance {
    /// The socket.
    pub id: UdpId,
    /// Its address; unspecified: any.
    pub local: SocketAddr,
    /// The peer that it is connected to.
    pub remote: Option<SocketAddr>,
    /// What waits to be received, as it counts in the receive buffer: bytes, 768 of them for each datagram on top of its data.
    pub waiting: usize,
    /// Datagrams that found the receive buffer full.
    pub dropped: u64,
}

impl<B: Buffers> Stack<B> {
    /// Places of connections: those from here on have never had any.
    #[must_use]
    pub fn places(&self) -> u32 {
        self.slab.places()
    }

    /// Connections in places, those aside that have left nothing but their TIME-WAIT.
    #[must_use]
    pub fn placed(&self) -> usize {
        self.slab.len()
    }

    /// Connections that have left nothing but their TIME-WAIT.
    #[must_use]
    pub fn time_waits(&self) -> usize {
        self.time_waits.len()
    }

    /// The connection at a [place](ConnectionId::index), if there is one. Costs a look at its first cache lines.
    #[must_use]
    pub fn glance(&self, place: u32) -> Option<Glance> {
        let (id, hot) = self.slab.look(place)?;
        Some(Glance {
            id,
            state: hot.told_state(),
            sent: [hot.snd_una, hot.snd_nxt],
            received: [hot.rcv_nxt, hot.rcv_adv],
            window: hot.snd_wnd,
            backoff: hot.backoff,
            waits: hot.has(flag::QUEUED),
        })
    }

    /// Places of UDP sockets: those from here on have never had any.
    #[must_use]
    pub fn udp_places(&self) -> u32 {
        self.udp.places()
    }

    /// The UDP socket at a [place](UdpId::index), if there is one.
    #[must_use]
    pub fn udp_glance(&self, place: u32) -> Option<UdpGlance> {
        let socket = self.udp.at(place)?;
        Some(UdpGlance {
            id: socket.id,
            local: socket.local,
            remote: socket.remote,
            waiting: socket.queue.used(),
            dropped: socket.dropped,
        })
    }
}
