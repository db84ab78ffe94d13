//! Paths other than the network: memory that this stack shares with another, over which the segments of a connection between
//! both need nobody in between. The network always leads there too, so a connection can return to it at any time.
//!
//! Who sits at the other end of a path can say there what it likes, but not for others: a segment that came by a path
//! concerns connections on that path only. A connection that one end has taken elsewhere is turned away there
//! ([`Sink::turn_away`]), and the other end sends by the network from then on; so does whoever hears from its peer that way.

use super::Stack;
use crate::ends::Ends;
use crate::fifo::{Buffers, ByteFifo};
use crate::handle::ConnectionId;
use crate::packet::{Packet, Sink};
use crate::reason::Reason;
use crate::tcp::Tcb;
use crate::tcp::hot::flag;
use crate::tcp::state::State;

/// A path other than the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Its number, not 0: that is the network.
    pub number: u16,
    /// Bytes of an IP packet that it takes.
    pub mtu: u16,
}

/// The network.
pub(crate) const NETWORK: u16 = 0;

impl<B: Buffers> Stack<B> {
    /// Takes packets in that came by a path other than the network: as [`input`](Self::input). Connections that they open
    /// take that path.
    pub fn input_by<S: Sink + ?Sized>(
        &mut self,
        path: Path,
        now: u64,
        packets: &[Packet<'_>],
        sink: &mut S,
    ) {
        (self.shared.path, self.shared.path_mtu) = (path.number, path.mtu);
        self.input(now, packets, sink);
        (self.shared.path, self.shared.path_mtu) = (NETWORK, self.shared.config.mtu);
    }

    /// A connection that has just been opened takes a path, from its SYN on. Gives whether there is such a connection.
    pub fn take_path(&mut self, id: ConnectionId, path: Path) -> bool {
        let Some((hot, cold)) = self.slab.get_mut(id) else { return false };
        let fresh = hot.state == State::SynSent && cold.flight.is_empty();
        if fresh {
            (cold.path, cold.path_mtu) = (path.number, path.mtu);
            hot.set(flag::ASIDE);
        }
        fresh
    }

    /// The path of a connection; 0: the network.
    #[must_use]
    pub fn path(&self, id: ConnectionId) -> u16 {
        self.slab.get(id).map_or(NETWORK, |(_, cold)| cold.path)
    }

    /// A path is there no more: its connections go by the network. Gives how many there were.
    pub fn end_path<S: Sink + ?Sized>(&mut self, path: u16, now: u64, sink: &mut S) -> usize {
        let on_it: Vec<_> =
            self.slab.ids().filter(|id| path != NETWORK && self.path(*id) == path).collect();
        self.now = self.now.max(now);
        for id in &on_it {
            self.step(id.index(), sink, |tcb| tcb.return_to_network());
        }
        on_it.len()
    }

    /// The other end of a path has turned a segment between these ends away. Gives whether there is such a connection.
    pub fn leave_path<S: Sink + ?Sized>(
        &mut self,
        path: u16,
        ends: &Ends,
        now: u64,
        sink: &mut S,
    ) -> bool {
        self.now = self.now.max(now);
        let found = self.find(ends).and_then(|index| Some((index, self.slab.at(index)?.1.path)));
        let Some((index, _)) = found.filter(|(_, on)| path != NETWORK && *on == path) else {
            return false;
        };
        self.step(index, sink, |tcb| tcb.return_to_network());
        true
    }
}

impl<F: ByteFifo, S: Sink + ?Sized> Tcb<'_, F, S> {
    /// Whether a segment may concern this connection: it came by its path, or by the network, by which the peer goes from
    /// now on.
    #[cold]
    pub(crate) fn is_from_here(&mut self) -> bool {
        if self.shared.path == self.cold.path {
            return true;
        }
        if self.shared.path != NETWORK {
            self.drop(Reason::Path);
            return false;
        }
        self.return_to_network();
        true
    }

    /// From now on it goes by the network. What is in flight may have been for nobody: it is sent again at once, which is no
    /// sign of congestion.
    #[cold]
    pub(crate) fn return_to_network(&mut self) {
        self.cold.path = NETWORK;
        self.hot.clear(flag::ASIDE);
        self.cold.path_mtu = self.cold.path_mtu.min(self.shared.config.mtu);
        match self.hot.state {
            State::Closed | State::TimeWait => return,
            State::SynSent | State::SynReceived => self.hot.set(flag::ACK_NOW),
            _ => {
                self.update_mss();
                self.cold.flight.open(self.flights);
                self.cold.flight.lose_all();
                self.hot.cwnd = self.hot.cwnd.max(u32::from(self.hot.mss));
            }
        }
        self.touch();
    }
}
