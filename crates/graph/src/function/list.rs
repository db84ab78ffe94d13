//! The functions of a worker, one after the other.

use std::os::fd::BorrowedFd;

use dpdk::Buffer;

use super::account::{Account, Copying};
use super::{Function, Outgoing, Wants};
use crate::classifier::Classifier;
use crate::{CAPACITY, Exits, PortId};

/// A function with its number, and what it wants.
struct Entry {
    number: u64,
    kind: Kind,
    function: Box<dyn Function>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    All,
    Matching,
    Copies,
    Nothing,
}

/// The functions of a worker, in the order of their numbers.
pub(crate) struct Functions {
    list: Vec<Entry>,
    pub(crate) outgoing: Outgoing,
    /// The function that may send first.
    first: usize,
    /// Those that are shown packets.
    all: Shown,
    /// The same without those that get copies.
    firm: Shown,
    /// Packets of a burst that each may want, by their places.
    chosen: Vec<Vec<u16>>,
    /// Whether any gets copies; what time they may take, and the first that gets some.
    copies: bool,
    account: Account,
    turn: usize,
    /// Packets of a port that none of them was shown and that they were not told of yet.
    missed: (PortId, usize),
    /// What copies took is measured with it.
    clock: fn() -> u64,
}

impl Functions {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self::timed_by(dpdk::tsc, dpdk::tsc_hz())
    }

    fn timed_by(clock: fn() -> u64, hertz: u64) -> Self {
        Self {
            list: Vec::new(),
            outgoing: Outgoing::default(),
            first: 0,
            all: Shown::default(),
            firm: Shown::default(),
            chosen: Vec::new(),
            copies: false,
            account: Account::new(hertz),
            turn: 0,
            missed: (PortId::NONE, 0),
            clock,
        }
    }

    fn classify(&mut self) {
        for Entry { function, kind, .. } in &mut self.list {
            *kind = match function.wants() {
                Wants::All => Kind::All,
                Wants::Matching(_) => Kind::Matching,
                Wants::Copies(_) => Kind::Copies,
                Wants::Nothing => Kind::Nothing,
            };
        }
        self.all = Shown::of(&self.list, true);
        self.firm = Shown::of(&self.list, false);
        self.copies = self.list.iter().any(|entry| entry.kind == Kind::Copies);
        self.chosen = self.list.iter().map(|_| Vec::with_capacity(CAPACITY)).collect();
        self.turn = 0;
    }

    pub(crate) fn add(&mut self, number: u64, function: Box<dyn Function>) {
        let at = self.list.partition_point(|other| other.number <= number);
        self.tell();
        self.list.insert(at, Entry { number, kind: Kind::Nothing, function });
        self.classify();
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Box<dyn Function>> {
        let at = self.list.iter().position(|known| known.number == number)?;
        self.tell();
        let removed = self.list.remove(at).function;
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
        if self.missed.0 != port {
            self.tell();
        }
        let Self { list, all, firm, chosen, account, .. } = self;
        let mut copying = self.copies.then(|| Copying::begin(account, self.turn, self.clock));
        let serves = copying.as_ref().is_some_and(|copying| copying.serves);
        let Shown { places, classifier } = if serves { all } else { firm };
        let mut left = packets.len();
        // Packets that were not taken.
        let mut there = left;
        // Whether `chosen` says where packets are now.
        let mut known = false;
        for &at in &*places {
            let Some(Entry { kind, function, .. }) = list.get_mut(at) else { continue };
            let packets = &mut packets[..left];
            let gets = match (*kind, &mut copying) {
                (Kind::Copies, Some(copying)) => copying.admit(at),
                (Kind::All, Some(copying)) => {
                    copying.pause();
                    true
                }
                _ => true,
            };
            if !gets {
                function.skip(port, there);
                continue;
            }
            if *kind == Kind::All {
                left = compact(packets);
                function.receive(port, &mut packets[..left], exits, now);
                left = compact(&mut packets[..left]);
                (there, known) = (left, false);
            } else {
                if !known {
                    choose(classifier, packets, chosen);
                    known = true;
                }
                let Some(wanted) = chosen.get(at).filter(|wanted| !wanted.is_empty()) else {
                    continue;
                };
                if *kind == Kind::Matching {
                    copying.iter_mut().for_each(Copying::pause);
                }
                function.receive_chosen(port, packets, wanted, exits, now);
                there = packets.iter().flatten().count();
            }
            match (*kind, &mut copying) {
                (Kind::Copies, Some(copying)) => copying.charge(),
                (_, Some(copying)) => copying.resume(),
                _ => {}
            }
        }
        if let Some(copying) = copying {
            self.turn = copying.end();
            if serves {
                self.tell();
            } else {
                self.missed = (port, self.missed.1 + there);
            }
        }
        if there < left { compact(&mut packets[..left]) } else { left }
    }

    /// Tells those who get copies what they were not shown.
    fn tell(&mut self) {
        let (port, packets) = std::mem::take(&mut self.missed);
        if packets > 0 {
            let copies = self.list.iter_mut().filter(|entry| entry.kind == Kind::Copies);
            copies.for_each(|entry| entry.function.skip(port, packets));
        }
    }

    /// Gives how many packets they had to send, which lie in `outgoing`. `busy`: a receive queue had more than was taken in
    /// this round.
    pub(crate) fn send(&mut self, busy: bool, now: u64) -> usize {
        if !busy {
            self.tell();
            self.account.fill();
            self.turn = 0;
        }
        let Self { list, outgoing, first, .. } = self;
        outgoing.begin(busy);
        let mut found = 0;
        let mut asked = 0;
        // In a busy round the rest waits for its turn.
        while asked < list.len() && (!busy || outgoing.looks > 0) {
            let at = (*first + asked) % list.len();
            if let Some(entry) = list.get_mut(at) {
                found += entry.function.send(outgoing, now);
            }
            asked += 1;
        }
        let step = if asked < list.len() { asked } else { 1 };
        *first = (*first + step) % list.len().max(1);
        found
    }

    pub(crate) fn arm(&mut self) -> bool {
        self.list.iter_mut().fold(true, |armed, entry| entry.function.arm() & armed)
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.list.iter().filter_map(|entry| entry.function.event())
    }

    pub(crate) fn disarm(&mut self) {
        self.list.iter_mut().for_each(|entry| entry.function.disarm());
    }
}

/// Functions that are shown packets.
#[derive(Debug, Default)]
struct Shown {
    /// Their places in the list.
    places: Vec<usize>,
    /// Their filters, by these places.
    classifier: Classifier,
}

impl Shown {
    /// `copies`: with those that get copies.
    fn of(list: &[Entry], copies: bool) -> Self {
        let is_shown = |entry: &Entry| match entry.kind {
            Kind::All | Kind::Matching => true,
            Kind::Copies => copies,
            Kind::Nothing => false,
        };
        let filters = list.iter().map(|entry| match entry.function.wants() {
            Wants::Matching(filter) | Wants::Copies(filter) if is_shown(entry) => Some(filter),
            _ => None,
        });
        let classifier = Classifier::new(filters);
        let places = (0..).zip(list).filter(|(_, entry)| is_shown(entry));
        Self { places: places.map(|(at, _)| at).collect(), classifier }
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
