//! Where packets leave: by links, and by the daemon.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use shm::session::TURNED_AWAY;
use shm::{Doorbell, Meta, Producer};
use transport::{Departure, Ends, Offloads, Sink};

use super::guard::turning;
use crate::session::Outbound;

/// Longest packet.
const LONGEST: usize = shm::session::LINK_LONGEST as usize;
/// Bytes of data of a packet with several segments: both headers fit in besides.
pub(super) const BATCH: u32 = 65_000;
/// A ring takes about a microsecond. The owner of a bell can have each take long, by watching it very often.
const SLOW: Duration = Duration::from_millis(2);
/// After one that took long, it is looked so often whether it is the ring that takes the time, or others that run meanwhile.
const LOOKS: u8 = 4;
/// So many slow rings are too many.
const PATIENCE: u8 = 8;

/// Where packets of one link leave.
#[derive(Debug)]
pub(super) struct Exit {
    ring: Producer,
    bell: Arc<Doorbell>,
    /// Something was pushed since the other end was last rung.
    touched: bool,
    /// Bytes of a packet that found no room; 0: all did.
    wanted: usize,
    pace: Pace,
}

/// Where packets of all links leave, by path.
#[derive(Debug)]
pub struct Exits {
    list: Vec<Option<Exit>>,
    /// Where a packet is made, before it is copied into a ring: the other end could change it meanwhile.
    packet: Box<[u8]>,
    /// The path that it is for.
    path: u16,
}

impl Default for Exits {
    fn default() -> Self {
        Self { list: Vec::new(), packet: vec![0; LONGEST].into(), path: 0 }
    }
}

impl Exit {
    pub(super) fn new(ring: Producer, bell: Arc<Doorbell>) -> Self {
        Self { ring, bell, touched: false, wanted: 0, pace: Pace::default() }
    }

    fn wake(&mut self) {
        let begun = Instant::now();
        let closely = (self.pace.looks > 0).then(thread_time);
        if self.bell.ring(self.ring.consumer_sleeps()) {
            let own = closely.map(|before| thread_time().saturating_sub(before));
            self.pace.note(begun.elapsed(), own);
        }
    }
}

/// How long the other end takes to be rung.
#[derive(Debug, Default)]
struct Pace {
    slow: u8,
    /// Rings to be looked at closely.
    looks: u8,
}

impl Pace {
    /// A ring has taken so long. `own`: processor time of it, when it was looked at closely.
    fn note(&mut self, length: Duration, own: Option<Duration>) {
        self.looks = self.looks.saturating_sub(1);
        if length <= SLOW {
            return;
        }
        // Whoever was woken may have run first.
        if own.is_some_and(|own| own > SLOW) {
            self.slow = self.slow.saturating_add(1);
        }
        self.looks = LOOKS;
    }

    /// Too many took too long.
    fn is_lame(&self) -> bool {
        self.slow >= PATIENCE
    }
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

impl Exits {
    pub(super) fn put(&mut self, at: usize, exit: Exit) {
        if self.list.len() <= at {
            self.list.resize_with(at + 1, || None);
        }
        if let Some(place) = self.list.get_mut(at) {
            *place = Some(exit);
        }
    }

    pub(super) fn take(&mut self, at: usize) {
        drop(self.list.get_mut(at).and_then(Option::take));
    }

    #[inline]
    fn exit(&mut self, path: u16) -> Option<&mut Exit> {
        self.list.get_mut(usize::from(path).checked_sub(1)?)?.as_mut()
    }

    /// Wakes those that sleep and were given something.
    #[inline]
    pub fn ring(&mut self) {
        for exit in self.list.iter_mut().flatten() {
            if std::mem::take(&mut exit.touched) {
                exit.wake();
            }
        }
    }

    /// Has those ring that had no room, when they have. Gives whether one has by now.
    pub(super) fn await_room(&mut self) -> bool {
        let mut has_room = false;
        for exit in self.list.iter_mut().flatten().filter(|exit| exit.wanted > 0) {
            exit.ring.sleeps().announce();
            if exit.ring.has_room_for(exit.wanted) {
                // Who has waited for it may want it no more.
                exit.ring.sleeps().withdraw();
                (exit.wanted, has_room) = (0, true);
            }
        }
        has_room
    }

    /// Whether a packet waits for room in a link, and for nothing else there.
    #[must_use]
    pub fn is_starved(&self) -> bool {
        self.list.iter().flatten().any(|exit| exit.wanted > 0)
    }

    pub(super) fn withdraw(&self) {
        for exit in self.list.iter().flatten().filter(|exit| exit.wanted > 0) {
            exit.ring.sleeps().withdraw();
        }
    }

    /// Paths whose other ends take too long to be rung.
    pub(super) fn lame(&self) -> Vec<u16> {
        let all = self.list.iter().zip(1..);
        let lame = |exit: &Exit| exit.pace.is_lame();
        all.filter(|(exit, _)| exit.as_ref().is_some_and(lame)).map(|(_, path)| path).collect()
    }

    #[inline]
    pub(super) fn buffer(&mut self, path: u16, length: usize) -> Option<&mut [u8]> {
        self.path = path;
        let exit = self.exit(path)?;
        if !exit.ring.has_room_for(length) {
            exit.wanted = exit.wanted.max(length);
            return None;
        }
        // A short packet may find room while a long one waits.
        if exit.wanted > 0 && exit.ring.has_room_for(exit.wanted) {
            exit.wanted = 0;
        }
        self.packet.get_mut(..length)
    }

    #[inline]
    pub(super) fn send(&mut self, length: usize) {
        let Self { list, packet, path } = self;
        let exit = list.get_mut(usize::from(*path).wrapping_sub(1)).and_then(Option::as_mut);
        if let (Some(exit), Some(packet)) = (exit, packet.get(..length)) {
            exit.touched = true;
            let _ = exit.ring.push(packet, Meta::default());
        }
    }

    /// Says that a segment is for nobody here. When there is no room, the next one is.
    pub(super) fn turn_away(&mut self, path: u16, ends: &Ends) {
        let (bytes, length) = turning(ends);
        if let (Some(exit), Some(bytes)) = (self.exit(path), bytes.get(..length)) {
            exit.touched = true;
            let _ = exit.ring.push(bytes, Meta { port: 0, flags: TURNED_AWAY });
        }
    }
}

/// All ways out of a stack.
#[derive(Debug)]
pub struct Ways<'a> {
    network: &'a mut Outbound,
    exits: &'a mut Exits,
    by_link: bool,
}

impl<'a> Ways<'a> {
    /// By the daemon, and by links.
    pub fn new(network: &'a mut Outbound, exits: &'a mut Exits) -> Self {
        Self { network, exits, by_link: false }
    }
}

impl Sink for Ways<'_> {
    fn offloads(&self) -> Offloads {
        Offloads { path_segmentation: BATCH, ..self.network.offloads() }
    }

    #[inline]
    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        self.by_link = false;
        self.network.buffer(length)
    }

    #[inline]
    fn buffer_by(&mut self, path: u16, length: usize) -> Option<&mut [u8]> {
        self.by_link = true;
        self.exits.buffer(path, length)
    }

    fn turn_away(&mut self, path: u16, ends: &Ends) {
        self.exits.turn_away(path, ends);
    }

    #[inline]
    fn send(&mut self, departure: Departure) {
        if self.by_link {
            self.exits.send(departure.length);
        } else {
            self.network.send(departure);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bell_that_takes_the_ringers_time_is_lame_one_that_waits_for_the_core_is_not() {
        let long = SLOW * 2;
        let mut pace = Pace::default();
        // The first is noticed, those after it are looked at.
        pace.note(long, None);
        assert_eq!(pace.looks, LOOKS);
        for _ in 1..PATIENCE {
            pace.note(long, Some(long));
            assert!(!pace.is_lame());
        }
        pace.note(long, Some(long));
        assert!(pace.is_lame());
        let mut busy = Pace::default();
        for _ in 0..200 {
            busy.note(long, (busy.looks > 0).then_some(SLOW / 2));
        }
        assert!(!busy.is_lame() && busy.looks == LOOKS, "others have run meanwhile");
        // It costs another clock's reading only while there is reason to.
        (0..LOOKS).for_each(|_| busy.note(SLOW, Some(SLOW)));
        assert!(busy.looks == 0 && !busy.is_lame());
    }
}
