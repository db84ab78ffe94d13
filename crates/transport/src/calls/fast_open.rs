//! Fast Open (RFC 7413) beyond its options.

use std::net::IpAddr;

use crate::fast_open::{FastOpenKeys, Plan};
use crate::fifo::Buffers;
use crate::options::Options;
use crate::stack::Stack;

/// Bytes of TCP options in a SYN at most.
const MOST_OPTIONS: u16 = 40;

impl<B: Buffers> Stack<B> {
    /// Bytes of data that a SYN to `peer` takes along at least, when they are written before it leaves: what
    /// `sendto` with `MSG_FASTOPEN` may promise. 0: none, since no cookie of the peer's is known, Fast Open is
    /// off or paused. Afterwards [`Info::syn_data`](crate::Info::syn_data) says what was taken.
    #[must_use]
    pub fn fast_open_room(&self, now: u64, peer: IpAddr, options: &Options) -> usize {
        let mss = match self.shared.servers.plan(peer, now.max(self.now)) {
            _ if !options.fast_open => return 0,
            Plan::Send(_, mss) => mss,
            Plan::Ask if options.fast_open_without_cookie => u16::MAX,
            Plan::Ask | Plan::Plain => return 0,
        };
        let headers = if peer.is_ipv4() { 40 } else { 60 };
        let room = self.shared.config.mtu.saturating_sub(headers).min(mss);
        usize::from(room.saturating_sub(MOST_OPTIONS)).min(options.transmit_buffer as usize)
    }

    /// Makes and judges cookies with these keys from now on, as several servers that answer for one address
    /// must; `None`: with the stack's own, which changes once a day.
    pub fn set_fast_open_keys(&mut self, keys: Option<FastOpenKeys>) {
        self.shared.keys.give(keys);
    }
}
