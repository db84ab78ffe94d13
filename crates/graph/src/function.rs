//! Packet functions: code that sees what a receive queue gave before the graph does, and may send packets
//! of its own. They come and go between two vectors.

use std::os::fd::BorrowedFd;

use dpdk::Buffer;

use crate::client::SPARE;
use crate::{Exits, PortId};

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

/// What functions have to send in one round.
#[derive(Debug)]
pub struct Outgoing {
    /// To leave by a port.
    pub(crate) transmit: Vec<(Buffer, PortId)>,
    /// To enter the graph as if just received by the port that the buffer names.
    pub(crate) enter: Vec<Buffer>,
    /// Slots that clients may send in this round besides what they were given.
    pub(crate) spare: i32,
}

impl Default for Outgoing {
    /// Nothing yet.
    fn default() -> Self {
        Self { transmit: Vec::new(), enter: Vec::new(), spare: SPARE }
    }
}

impl Outgoing {
    /// The packet leaves by `port`.
    #[inline]
    pub fn transmit(&mut self, buffer: Buffer, port: PortId) {
        self.transmit.push((buffer, port));
    }

    /// The packet enters the graph as if just received by `port`.
    #[inline]
    pub fn enter(&mut self, mut buffer: Buffer, port: PortId) {
        buffer.set_port(port);
        self.enter.push(buffer);
    }
}

/// The functions of a worker, in the order of their numbers.
#[derive(Default)]
pub(crate) struct Functions {
    list: Vec<(u64, Box<dyn Function>)>,
    pub(crate) outgoing: Outgoing,
    /// The function that may send first.
    first: usize,
}

impl Functions {
    pub(crate) fn add(&mut self, number: u64, function: Box<dyn Function>) {
        let at = self.list.partition_point(|(other, _)| *other <= number);
        self.list.insert(at, (number, function));
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Box<dyn Function>> {
        let at = self.list.iter().position(|(known, _)| *known == number)?;
        Some(self.list.remove(at).1)
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Gives how many packets are left; they are moved to the front.
    #[cold]
    #[inline(never)]
    pub(crate) fn receive(
        &mut self,
        port: PortId,
        packets: &mut [Option<Buffer>],
        exits: &mut Exits,
        now: u64,
    ) -> usize {
        let mut left = packets.len();
        for (_, function) in &mut self.list {
            let packets = &mut packets[..left];
            function.receive(port, packets, exits, now);
            left = compact(packets);
        }
        left
    }

    /// Gives how many packets they had to send, which lie in `outgoing`.
    pub(crate) fn send(&mut self, now: u64) -> usize {
        let Self { list, outgoing, first } = self;
        outgoing.spare = SPARE;
        let mut found = 0;
        for turn in 0..list.len() {
            let at = (*first + turn) % list.len();
            if let Some((_, function)) = list.get_mut(at) {
                found += function.send(outgoing, now);
            }
        }
        *first = first.wrapping_add(1);
        found
    }

    pub(crate) fn arm(&mut self) -> bool {
        self.list.iter_mut().fold(true, |armed, (_, function)| function.arm() & armed)
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.list.iter().filter_map(|(_, function)| function.event())
    }

    pub(crate) fn disarm(&mut self) {
        self.list.iter_mut().for_each(|(_, function)| function.disarm());
    }
}

/// Moves the packets to the front, in order; gives how many there are.
fn compact(packets: &mut [Option<Buffer>]) -> usize {
    let mut count = 0;
    for at in 0..packets.len() {
        if packets[at].is_some() {
            packets.swap(count, at);
            count += 1;
        }
    }
    count
}
