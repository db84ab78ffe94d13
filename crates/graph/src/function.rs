//! Packet functions: code that sees what a receive queue gave before the graph does, and may send packets
//! of its own. They come and go between two vectors.

mod account;
mod list;

use std::os::fd::BorrowedFd;

use dpdk::Buffer;

use crate::{Exits, Filter, PortId};

pub(crate) use list::Functions;

/// A packet function of one worker.
pub trait Function: Send {
    /// Treats what a receive queue of `port` gave. What it leaves in its place goes on, to the next function
    /// and then into the graph; what it takes is its own. Drops are counted by [`Exits::drop`]. `now`: TSC
    /// cycles.
    fn receive(
        &mut self,
        port: PortId,
        packets: &mut [Option<Buffer>],
        exits: &mut Exits,
        now: u64,
    );

    /// Which packets it is shown.
    fn wants(&self) -> Wants<'_> {
        Wants::All
    }

    /// In place of [`receive`](Self::receive) for one that [`wants`](Self::wants) some, with the places of packets that may match its filter; a function before this one
    /// may have taken some.
    fn receive_chosen(
        &mut self,
        port: PortId,
        packets: &mut [Option<Buffer>],
        chosen: &[u16],
        exits: &mut Exits,
        now: u64,
    ) {
        let _ = chosen;
        self.receive(port, packets, exits, now);
    }

    /// For one that [`wants`](Self::wants) copies: so many packets of a burst went by unseen, as the worker had no time.
    fn skip(&mut self, port: PortId, packets: usize) {
        let _ = (port, packets);
    }

    /// Once in a round: what it has to send. Gives how many packets it had.
    fn send(&mut self, outgoing: &mut Outgoing, now: u64) -> usize {
        let _ = (outgoing, now);
        0
    }

    /// The worker is about to sleep, and looks at everything once more after this. `false`: nothing will wake
    /// it when this function has something to send, so that it has to look again soon.
    fn arm(&mut self) -> bool {
        true
    }

    /// What becomes readable when it has something to send.
    fn event(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The worker is awake again.
    fn disarm(&mut self) {}
}

/// Which packets a function is shown.
#[derive(Debug, Clone, Copy)]
pub enum Wants<'a> {
    /// Every burst, by [`Function::receive`].
    All,
    /// Those that may match, by [`Function::receive_chosen`]. All filters of a worker are looked up at once.
    Matching(&'a Filter),
    /// Copies of those: it leaves every packet in its place, and is shown them, by [`Function::receive_chosen`], while the
    /// worker has time.
    Copies(&'a Filter),
    /// None.
    Nothing,
}

/// Slots that clients may send in a round besides what they were given: while the worker has time to spare, and while it is
/// busy. A round of a busy worker forwards 64 packets of others, which take some 60 cycles each; a slot that another core has
/// just written takes 110 and more.
pub(crate) const SPARE: i32 = 8;
const BUSY_SPARE: i32 = 2;
/// Channels of all clients that are looked at in one round: each look may wait for a line from another core. A round of a busy
/// worker takes some microseconds, so that all channels that one user may have are looked at within 1/5,000 of a second.
const LOOKS: usize = 16;
const BUSY_LOOKS: usize = 4;

/// Slots that clients may send in a round besides what they were given.
pub(crate) fn spare(busy: bool) -> i32 {
    if busy { BUSY_SPARE } else { SPARE }
}

/// What functions have to send in one round.
#[derive(Debug)]
pub struct Outgoing {
    /// To leave by a port.
    pub(crate) transmit: Vec<(Buffer, PortId)>,
    /// To enter the graph as if just received by the port that the buffer names.
    pub(crate) enter: Vec<Buffer>,
    /// Slots that clients may send in this round besides what they were given.
    pub(crate) spare: i32,
    /// Channels of clients that may be looked at in this round.
    pub(crate) looks: usize,
    /// A receive queue had more than was taken in this round.
    pub(crate) busy: bool,
}

impl Default for Outgoing {
    /// Nothing yet.
    fn default() -> Self {
        let (transmit, enter) = (Vec::new(), Vec::new());
        Self { transmit, enter, spare: SPARE, looks: LOOKS, busy: false }
    }
}

impl Outgoing {
    /// A round begins.
    pub(crate) fn begin(&mut self, busy: bool) {
        (self.spare, self.busy) = (spare(busy), busy);
        self.looks = if busy { BUSY_LOOKS } else { LOOKS };
    }

    /// The packet leaves by `port`.
    #[inline]
    pub fn transmit(&mut self, buffer: Buffer, port: PortId) {
        self.transmit.push((buffer, port));
    }

    /// The packet enters the graph as if just received by `port`.
    #[inline]
    pub fn enter(&mut self, mut buffer: Buffer, port: PortId) {
        port.mark(&mut buffer);
        self.enter.push(buffer);
    }
}
