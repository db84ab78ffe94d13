//! Packet functions: code that sees what a receive queue gave before the graph does, and may send packets
//! of its own. They come and go between two vectors.

use std::os::fd::BorrowedFd;

use dpdk::Buffer;

use crate::classifier::Classifier;
use crate::{CAPACITY, Exits, Filter, PortId};

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
    /// None.
    Nothing,
}

/// Slots that clients may send in a round besides what they were given. A round of a busy worker forwards 64 packets
/// of others, which take some 60 cycles each; a slot that another core has just written takes 110 and more.
pub(crate) const SPARE: i32 = 8;
/// Channels of all clients that are looked at in one round: each look may wait for a line from another core.
const ALL_LOOKS: usize = 16;

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
}

impl Default for Outgoing {
    /// Nothing yet.
    fn default() -> Self {
        Self { transmit: Vec::new(), enter: Vec::new(), spare: SPARE, looks: ALL_LOOKS }
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

/// Copies that clients may be given while the worker has no time to spare: this many from each burst, all clients together,
/// and this many at most after a time in which it had.
const COPIES: i32 = 8;
const SAVED_COPIES: i32 = 4096;

/// The functions of a worker, in the order of their numbers.
pub(crate) struct Functions {
    list: Vec<(u64, Box<dyn Function>)>,
    pub(crate) outgoing: Outgoing,
    /// The function that may send first.
    first: usize,
    /// Their filters, by their places in the list.
    classifier: Classifier,
    /// Packets of a burst that each may want, by their places.
    chosen: Vec<Vec<u16>>,
    /// Packets of a burst that says that more wait.
    full: usize,
    copies: i32,
}

impl Functions {
    /// `full`: packets that a receive queue gives at once when more wait.
    pub(crate) fn new(full: usize) -> Self {
        Self {
            list: Vec::new(),
            outgoing: Outgoing::default(),
            first: 0,
            classifier: Classifier::default(),
            chosen: Vec::new(),
            full,
            copies: SAVED_COPIES,
        }
    }

    fn classify(&mut self) {
        let filters = self.list.iter().map(|(_, function)| match function.wants() {
            Wants::Matching(filter) => Some(filter),
            Wants::All | Wants::Nothing => None,
        });
        self.classifier = Classifier::new(filters);
        self.chosen = self.list.iter().map(|_| Vec::with_capacity(CAPACITY)).collect();
    }

    pub(crate) fn add(&mut self, number: u64, function: Box<dyn Function>) {
        let at = self.list.partition_point(|(other, _)| *other <= number);
        self.list.insert(at, (number, function));
        self.classify();
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Box<dyn Function>> {
        let at = self.list.iter().position(|(known, _)| *known == number)?;
        let removed = self.list.remove(at).1;
        self.classify();
        Some(removed)
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
        let more = if packets.len() < self.full { SAVED_COPIES } else { COPIES };
        exits.copies = (self.copies + more).min(SAVED_COPIES);
        let Self { list, classifier, chosen, .. } = self;
        let mut left = packets.len();
        // Whether `chosen` says where packets are now.
        let mut known = false;
        for (at, (_, function)) in list.iter_mut().enumerate() {
            let packets = &mut packets[..left];
            match function.wants() {
                Wants::Nothing => continue,
                Wants::All => {
                    left = compact(packets);
                    function.receive(port, &mut packets[..left], exits, now);
                    left = compact(&mut packets[..left]);
                    known = false;
                    continue;
                }
                Wants::Matching(_) if known => {}
                Wants::Matching(_) => {
                    choose(classifier, packets, chosen);
                    known = true;
                }
            }
            match chosen.get(at) {
                Some(wanted) if !wanted.is_empty() => {
                    function.receive_chosen(port, packets, wanted, exits, now);
                }
                _ => {}
            }
        }
        self.copies = exits.copies;
        if known { compact(&mut packets[..left]) } else { left }
    }

    /// Gives how many packets they had to send, which lie in `outgoing`.
    pub(crate) fn send(&mut self, now: u64) -> usize {
        let Self { list, outgoing, first, .. } = self;
        (outgoing.spare, outgoing.looks) = (SPARE, ALL_LOOKS);
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

/// Finds out who may want what.
#[inline]
fn choose(classifier: &Classifier, packets: &[Option<Buffer>], chosen: &mut [Vec<u16>]) {
    chosen.iter_mut().for_each(Vec::clear);
    for (at, packet) in packets.iter().enumerate() {
        let Some(packet) = packet else { continue };
        classifier.find(packet.data(), |owner| {
            if let Some(list) = chosen.get_mut(usize::from(owner)) {
                // An address of either end may be both.
                if list.last() != Some(&(at as u16)) {
                    list.push(at as u16);
                }
            }
        });
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

#[cfg(test)]
mod tests;
