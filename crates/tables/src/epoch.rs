//! When memory that readers may still look at can be used again.
//!
//! Readers take no part in a change: each announces, once per turn of its loop, that it holds
//! nothing from before ([`ReaderSlot::quiescent`]). A writer that unlinks something takes the next
//! epoch as its tag, and uses the memory again once every reader has announced that epoch or a
//! later one. A reader that parks (sleeps, or leaves the loop) is not waited for.
//!
//! | slot from | to | by | ordering |
//! | --- | --- | --- | --- |
//! | free | parked | [`Epoch::register`] | - |
//! | parked | epoch e | [`ReaderSlot::quiescent`] | full fence after, so that a writer either sees the reader or the reader sees the writer's change |
//! | epoch e | epoch f >= e | [`ReaderSlot::quiescent`] | release: looks before it are done |
//! | epoch e | parked | [`ReaderSlot::park`] | release |
//! | any | free | drop | release |
//!
//! Prohibited: any step to a lower epoch; free to an epoch at once.

use std::{cell::Cell, fmt};

use crate::sync::{Arc, AtomicU64, Ordering, fence};

/// Most readers that one [`Epoch`] serves at a time.
pub const MAX_READERS: usize = if cfg!(loom) { 1 } else { 256 };

const FREE: u64 = 0;
const PARKED: u64 = 1;
const FIRST: u64 = 2;

/// All reader slots are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("all {MAX_READERS} reader slots are taken: use fewer workers")]
pub struct TooManyReaders;

/// One reader's word on cache lines of its own.
#[repr(align(128))]
struct Line(AtomicU64);

struct Shared {
    epoch: AtomicU64,
    slots: Vec<Line>,
}

/// What readers and writers of a set of tables agree on. Clones are handles on the same epoch.
#[derive(Clone)]
pub struct Epoch {
    shared: Arc<Shared>,
}

impl Default for Epoch {
    fn default() -> Self {
        Self::new()
    }
}

impl Epoch {
    /// An epoch without readers.
    #[must_use]
    pub fn new() -> Self {
        let slots = (0..MAX_READERS).map(|_| Line(AtomicU64::new(FREE))).collect();
        Self { shared: Arc::new(Shared { epoch: AtomicU64::new(FIRST), slots }) }
    }

    /// A slot for a thread that reads tables, parked at first.
    ///
    /// # Errors
    /// [`TooManyReaders`] when [`MAX_READERS`] slots are taken.
    pub fn register(&self) -> Result<ReaderSlot, TooManyReaders> {
        let free = |line: &Line| {
            line.0.compare_exchange(FREE, PARKED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let index = self.shared.slots.iter().position(free).ok_or(TooManyReaders)?;
        Ok(ReaderSlot { shared: Arc::clone(&self.shared), index, parked: Cell::new(true) })
    }

    /// A tag for what the caller unlinked from its table before this call.
    #[must_use]
    pub fn retire(&self) -> u64 {
        self.shared.epoch.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The highest tag that all readers have passed: what was tagged with it or a lower one is
    /// seen by no reader any more.
    #[must_use]
    pub fn passed(&self) -> u64 {
        // Read before the slots: what is tagged after this point is not judged by this scan.
        let newest = self.shared.epoch.load(Ordering::Acquire);
        // Pairs with the fence of a reader that stops being parked: either it sees all that was
        // unlinked before, or its epoch is seen here.
        fence(Ordering::SeqCst);
        let announced = self.shared.slots.iter().map(|line| line.0.load(Ordering::Acquire));
        announced.filter(|word| *word >= FIRST).fold(newest, u64::min)
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epoch").field("passed", &self.passed()).finish_non_exhaustive()
    }
}

/// One reading thread's place in an [`Epoch`]. Dropping it frees the place.
///
/// A thread must hold one that is not parked while it looks up tables of this epoch that another
/// thread changes. Without, a look-up can land in memory that was taken back and give another
/// entry's value; it is never unsound.
pub struct ReaderSlot {
    shared: Arc<Shared>,
    index: usize,
    parked: Cell<bool>,
}

impl ReaderSlot {
    /// Says that this thread holds no result of a look-up under way, and ends parking. To be
    /// called once per turn of the loop; costs one load and one store.
    #[inline]
    pub fn quiescent(&self) {
        let Some(line) = self.shared.slots.get(self.index) else { return };
        line.0.store(self.shared.epoch.load(Ordering::Acquire), Ordering::Release);
        if self.parked.replace(false) {
            fence(Ordering::SeqCst);
        }
    }

    /// Says that this thread looks nothing up until it calls [`quiescent`](Self::quiescent) again.
    /// To be called before sleeping.
    #[inline]
    pub fn park(&self) {
        if let Some(line) = self.shared.slots.get(self.index) {
            line.0.store(PARKED, Ordering::Release);
        }
        self.parked.set(true);
    }
}

impl Drop for ReaderSlot {
    fn drop(&mut self) {
        if let Some(line) = self.shared.slots.get(self.index) {
            line.0.store(FREE, Ordering::Release);
        }
    }
}

impl fmt::Debug for ReaderSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderSlot").field("parked", &self.parked.get()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn waits_for_every_reader_that_is_awake() {
        let epoch = Epoch::new();
        let (left, right) = (epoch.register().unwrap(), epoch.register().unwrap());
        left.quiescent();
        right.quiescent();
        let tag = epoch.retire();
        assert!(epoch.passed() < tag);
        left.quiescent();
        assert!(epoch.passed() < tag);
        right.quiescent();
        assert!(epoch.passed() >= tag);
    }

    #[test]
    fn does_not_wait_for_the_parked_and_the_gone() {
        let epoch = Epoch::new();
        let (sleeper, leaver) = (epoch.register().unwrap(), epoch.register().unwrap());
        sleeper.quiescent();
        leaver.quiescent();
        let tag = epoch.retire();
        sleeper.park();
        assert!(epoch.passed() < tag);
        drop(leaver);
        assert!(epoch.passed() >= tag);
        let later = epoch.retire();
        sleeper.quiescent();
        assert!(epoch.passed() >= later);
        assert!(epoch.passed() < epoch.retire());
    }

    #[test]
    fn slots_are_bounded_and_come_back() {
        let epoch = Epoch::new();
        let mut slots: Vec<_> = (0..MAX_READERS).map(|_| epoch.register().unwrap()).collect();
        assert_eq!(epoch.register().unwrap_err(), TooManyReaders);
        slots.pop();
        assert!(epoch.register().is_ok());
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::{sync::atomic::AtomicU32, thread};

    use super::*;

    /// What was unlinked is written again only when no reader can look at it, whether the reader
    /// was awake or parked when that happened.
    #[test]
    fn nothing_is_used_again_under_a_reader() {
        loom::model(|| {
            let epoch = Epoch::new();
            let slot = epoch.register().unwrap();
            let link = Arc::new(AtomicU32::new(0));
            let memory = Arc::new([AtomicU32::new(10), AtomicU32::new(20)]);
            let (seen_link, seen_memory) = (Arc::clone(&link), Arc::clone(&memory));
            let reading = thread::spawn(move || {
                for _ in 0..2 {
                    slot.quiescent();
                    let index = seen_link.load(Ordering::Acquire) as usize;
                    assert_ne!(seen_memory[index].load(Ordering::Relaxed), 99);
                }
                slot.park();
            });
            link.store(1, Ordering::Release);
            let tag = epoch.retire();
            if epoch.passed() >= tag {
                memory[0].store(99, Ordering::Relaxed);
            }
            reading.join().unwrap();
            assert!(epoch.passed() >= tag);
        });
    }
}
