//! A record's first word, by which a reader knows that it has seen a whole record: a sequence lock whose reader gives up.

use crate::sync::{AtomicU64, Ordering, fence};

/// The mark of a place without a record.
const EMPTY: u64 = 0;
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

/// Writes a record: the mark is odd meanwhile, and another even one afterwards. One writer only.
pub(super) fn write(mark: &AtomicU64, words: &[AtomicU64], values: &[u64]) {
    let old = mark.load(Ordering::Relaxed);
    let changing = old.wrapping_add(1) | 1;
    mark.store(changing, Ordering::Relaxed);
    // Who sees one of the new words sees that the mark has changed.
    fence(Ordering::Release);
    for (word, value) in words.iter().zip(values) {
        word.store(*value, Ordering::Relaxed);
    }
    let whole = changing.wrapping_add(1);
    mark.store(if whole == EMPTY { 2 } else { whole }, Ordering::Release);
}

/// Removes a record.
pub(super) fn clear(mark: &AtomicU64) {
    mark.store(EMPTY, Ordering::Release);
}

/// Reads a record, each word once in each attempt.
pub(super) fn read(mark: &AtomicU64, words: &[AtomicU64], target: &mut [u64]) -> Found {
    for _ in 0..ATTEMPTS {
        let before = mark.load(Ordering::Acquire);
        if before == EMPTY {
            return Found::Nothing;
        }
        if before & 1 == 1 {
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
