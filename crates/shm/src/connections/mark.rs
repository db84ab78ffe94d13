//! A record's first word, by which a reader knows that it has seen a whole record: a sequence lock whose reader gives up.

use crate::sync::{AtomicU64, Ordering, fence};

/// The lowest bits of a mark say what is there; the rest counts changes, the removal of a record too: a mark never comes again.
const STATE: u64 = 3;
/// No record. Fresh memory is that.
const EMPTY: u64 = 0;
/// A record that is being written.
const CHANGING: u64 = 1;
/// A whole record.
const WHOLE: u64 = 2;
/// How often a reader begins anew while the record changes under it: a writer that never ends is left alone.
const ATTEMPTS: usize = 4;

/// What a reader has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A whole record: it is in the target.
    Whole,
    /// No record.
    Nothing,
    /// It changed each time.
    Changing,
}

/// The mark that follows, with that state.
fn after(mark: u64, state: u64) -> u64 {
    (mark | STATE).wrapping_add(1) | state
}

/// Writes a record. One writer only.
pub(super) fn write(mark: &AtomicU64, words: &[AtomicU64], values: &[u64]) {
    let changing = after(mark.load(Ordering::Relaxed), CHANGING);
    mark.store(changing, Ordering::Relaxed);
    // Who sees one of the new words sees that the mark has changed.
    fence(Ordering::Release);
    for (word, value) in words.iter().zip(values) {
        word.store(*value, Ordering::Relaxed);
    }
    mark.store(after(changing, WHOLE), Ordering::Release);
}

/// Removes a record. The same writer only.
pub(super) fn clear(mark: &AtomicU64) {
    mark.store(after(mark.load(Ordering::Relaxed), EMPTY), Ordering::Release);
}

/// Reads a record, each word once in each attempt.
pub(super) fn read(mark: &AtomicU64, words: &[AtomicU64], target: &mut [u64]) -> Found {
    for _ in 0..ATTEMPTS {
        let before = mark.load(Ordering::Acquire);
        let state = before & STATE;
        if state == EMPTY {
            return Found::Nothing;
        }
        if state != WHOLE {
            #[cfg(loom)]
            loom::thread::yield_now();
            #[cfg(not(loom))]
            core::hint::spin_loop();
            continue;
        }
        for (word, place) in words.iter().zip(target.iter_mut()) {
            *place = word.load(Ordering::Relaxed);
        }
        fence(Ordering::Acquire);
        if mark.load(Ordering::Relaxed) == before {
            return Found::Whole;
        }
    }
    Found::Changing
}
