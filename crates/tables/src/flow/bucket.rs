//! How a bucket lies in memory, and the single steps that change or read one.

use crate::{
    memory::Region,
    prefetch::prefetch_line,
    sync::{AtomicU64, Ordering, fence},
};

/// What a look-up of a key that is not there gives.
pub const NO_FLOW: u32 = u32::MAX;

/// Version of a header, above the bits for the slots.
const VERSION: u32 = 1 << 4;

/// Numbers of words of a bucket for keys of `K` bytes: the keys, then 32-bit lanes: a value for
/// each slot, then the header.
pub(super) struct Layout<const K: usize>;

impl<const K: usize> Layout<K> {
    /// Words of a key.
    pub(super) const KEY: usize = {
        assert!(K > 0 && K % 8 == 0, "keys are whole 64-bit words");
        K / 8
    };
    /// Entries of a bucket: what fills cache lines best, at most 4 (the header has 4 bits).
    pub(super) const SLOTS: usize = if K <= 16 { 3 } else { 4 };
    const LANES: usize = Self::SLOTS * Self::KEY;
    /// Words of a bucket: whole cache lines.
    pub(super) const WORDS: usize =
        (Self::LANES + (Self::SLOTS + 1).div_ceil(2)).next_multiple_of(8);
    /// Bytes of a bucket.
    pub(super) const BYTES: usize = Self::WORDS * size_of::<u64>();
}

/// Word `index` of a key.
#[inline(always)]
pub(super) fn word<const K: usize>(key: &[u8; K], index: usize) -> u64 {
    key.get(index * 8..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// A bucket of the table.
#[derive(Clone, Copy)]
pub(super) struct Bucket<'a, const K: usize> {
    words: &'a [AtomicU64],
}

impl<'a, const K: usize> Bucket<'a, K> {
    /// Bucket `number` of `words`; none beyond their end.
    #[inline(always)]
    pub(super) fn at(words: &'a Region<AtomicU64>, number: u32) -> Option<Self> {
        let first = number as usize * Layout::<K>::WORDS;
        Some(Self { words: words.get(first..first + Layout::<K>::WORDS)? })
    }

    /// Starts loading all its cache lines.
    #[inline(always)]
    pub(super) fn prefetch(self) {
        for line in self.words.chunks(8) {
            if let Some(word) = line.first() {
                prefetch_line(word);
            }
        }
    }

    #[inline(always)]
    fn lane(self, lane: usize, order: Ordering) -> u32 {
        let word = self.words[Layout::<K>::LANES + lane / 2].load(order);
        (word >> (32 * (lane % 2))) as u32
    }

    /// The writer is alone, so that it may read a word and store it back changed.
    fn set_lane(self, lane: usize, value: u32, order: Ordering) {
        let word = &self.words[Layout::<K>::LANES + lane / 2];
        let shift = 32 * (lane % 2);
        let other = word.load(Ordering::Relaxed) & !(u64::from(u32::MAX) << shift);
        word.store(other | (u64::from(value) << shift), order);
    }

    #[inline(always)]
    fn header(self, order: Ordering) -> u32 {
        self.lane(Layout::<K>::SLOTS, order)
    }

    #[inline(always)]
    fn matches(self, slot: usize, key: &[u8; K]) -> bool {
        let first = slot * Layout::<K>::KEY;
        let difference = (0..Layout::<K>::KEY).fold(0, |all, index| {
            all | (self.words[first + index].load(Ordering::Relaxed) ^ word(key, index))
        });
        difference == 0
    }

    /// Value of `key` in this bucket, or [`NO_FLOW`], whatever a writer does meanwhile.
    #[inline(always)]
    pub(super) fn find(self, key: &[u8; K]) -> u32 {
        loop {
            let before = self.header(Ordering::Acquire);
            // No branches on what is found where: the processor could only guess.
            let equal = (0..Layout::<K>::SLOTS)
                .fold(0, |equal, slot| equal | u32::from(self.matches(slot, key)) << slot);
            let found = equal & before;
            let slot = (found.trailing_zeros() as usize).min(Layout::<K>::SLOTS - 1);
            let value = self.lane(slot, Ordering::Relaxed);
            // Pairs with the fence in `fill`: if anything read above was written for another
            // entry, then the version that was raised before is seen here.
            fence(Ordering::Acquire);
            if self.header(Ordering::Relaxed) / VERSION == before / VERSION {
                return if found == 0 { NO_FLOW } else { value };
            }
        }
    }

    /// Slot of `key`, for the writer.
    pub(super) fn slot(self, key: &[u8; K]) -> Option<usize> {
        (0..Layout::<K>::SLOTS).find(|slot| self.in_use(*slot) && self.matches(*slot, key))
    }

    /// A slot that is not in use, for the writer.
    pub(super) fn vacant(self) -> Option<usize> {
        (0..Layout::<K>::SLOTS).find(|slot| !self.in_use(*slot))
    }

    pub(super) fn in_use(self, slot: usize) -> bool {
        (self.header(Ordering::Relaxed) >> slot) & 1 == 1
    }

    /// Key in a slot, for the writer.
    pub(super) fn key(self, slot: usize) -> [u8; K] {
        let mut key = [0; K];
        let first = slot * Layout::<K>::KEY;
        for (bytes, word) in key.chunks_exact_mut(8).zip(self.words.iter().skip(first)) {
            bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        key
    }

    pub(super) fn value(self, slot: usize) -> u32 {
        self.lane(slot, Ordering::Relaxed)
    }

    /// Changes the value of an entry.
    pub(super) fn set_value(self, slot: usize, value: u32) {
        self.set_lane(slot, value, Ordering::Release);
    }

    /// Puts an entry into a vacant slot.
    pub(super) fn fill(self, slot: usize, key: &[u8; K], value: u32) {
        // The header that gave the slot up goes before the words of the new entry.
        fence(Ordering::Release);
        let first = slot * Layout::<K>::KEY;
        for index in 0..Layout::<K>::KEY {
            self.words[first + index].store(word(key, index), Ordering::Relaxed);
        }
        self.set_lane(slot, value, Ordering::Relaxed);
        let header = self.header(Ordering::Relaxed) | 1 << slot;
        self.set_lane(Layout::<K>::SLOTS, header, Ordering::Release);
    }

    /// Gives a slot up.
    pub(super) fn clear(self, slot: usize) {
        let header = self.header(Ordering::Relaxed) & !(1 << slot);
        self.set_lane(Layout::<K>::SLOTS, header.wrapping_add(VERSION), Ordering::Release);
    }
}
