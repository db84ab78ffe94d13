//! What a connection tells about itself, and its options.

use crate::ends::Ends;
use crate::failure::Failure;
use crate::fifo::{Buffers, ByteFifo};
use crate::handle::ConnectionId;
use crate::stack::Stack;
use crate::tcp::hot::flag;
use crate::tcp::state::State;

/// A look at a connection, as `TCP_INFO` gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Addresses and ports.
    pub ends: Ends,
    /// Where it is in its life.
    pub state: State,
    /// Smoothed round-trip time: us; 0: none yet.
    pub srtt: u32,
    /// Variation of the round-trip time: us.
    pub rttvar: u32,
    /// Retransmission time-out without back-off: us.
    pub rto: u32,
    /// Congestion window, or what recovery lets: bytes.
    pub window: u32,
    /// Slow-start threshold: bytes; `u32::MAX`: none yet.
    pub threshold: u32,
    /// Bytes on the way.
    pub in_flight: u32,
    /// Bytes in the transmit FIFO, sent or not.
    pub queued: u32,
    /// Bytes of data of a full segment.
    pub mss: u16,
    /// Bytes of an IP packet on the path, as far as is known.
    pub path_mtu: u16,
    /// The peer's window: bytes.
    pub peer_window: u32,
    /// Our window: bytes.
    pub own_window: u32,
    /// Shifts of windows: the peer's, ours.
    pub scales: (u8, u8),
    /// Segments sent again.
    pub retransmissions: u32,
    /// What the SYN carried was taken (RFC 7413): by us, or by the peer.
    pub fast_open: bool,
    /// Time stamps, SACK and ECN are in use.
    pub negotiated: (bool, bool, bool),
    /// With accurate congestion feedback (RFC 9768): packets that came marked, and packets of ours that
    /// did at the peer.
    pub marks: Option<(u32, u32)>,
    /// A recovery goes on.
    pub recovering: bool,
    /// Name of the congestion control; empty before the handshake is over.
    pub congestion: &'static str,
    /// Why it ended.
    pub failure: Option<Failure>,
}

impl<B: Buffers> Stack<B> {
    /// A look at a connection. `None`: it is gone.
    #[must_use]
    pub fn info(&self, id: ConnectionId) -> Option<Info> {
        let (hot, cold) = self.slab.get(id)?;
        let congestion = cold.congestion.as_ref();
        Some(Info {
            ends: cold.ends(),
            state: hot.state,
            srtt: hot.srtt,
            rttvar: hot.rttvar,
            rto: hot.rto,
            window: hot.cwnd,
            threshold: congestion.map_or(u32::MAX, |congestion| congestion.threshold()),
            in_flight: cold.flight.pipe(hot.snd_una, hot.snd_nxt, hot.mss),
            queued: cold.fifos.as_ref().map_or(0, |pair| pair.transmit.len() as u32),
            mss: hot.mss,
            path_mtu: cold.path_mtu,
            peer_window: hot.snd_wnd,
            own_window: hot.rcv_wnd(),
            scales: (hot.snd_scale, hot.rcv_scale),
            retransmissions: cold.retransmitted,
            fast_open: hot.has(flag::FAST_TAKEN),
            negotiated: (
                hot.has(flag::TIMESTAMPS),
                hot.has(flag::SACK),
                hot.has(flag::ECN | flag::ACCURATE),
            ),
            marks: cold.accurate.as_ref().map(|accurate| accurate.marks()),
            recovering: hot.has(flag::RECOVERY | flag::LOSS),
            congestion: if hot.cwnd > 0 { cold.options.congestion.name() } else { "" },
            failure: cold.failure,
        })
    }
}
