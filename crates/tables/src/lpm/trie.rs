//! What readers see: the array of entries, and how an address is looked up in it.

use std::marker::PhantomData;

use super::{Address, arena::UNIT};
use crate::{
    memory::Region,
    prefetch::prefetch,
    sync::{Arc, AtomicU32, Ordering},
};

/// The value of an address that no route covers.
pub const MISS: u32 = 0;
/// The largest value that a route can have.
pub const MAX_VALUE: u32 = CHILD - 1;
/// Set in an entry that is the number of a block instead of a value.
pub(super) const CHILD: u32 = 1 << 31;
/// Addresses that go through the levels together: enough to cover a cache miss, few enough that
/// all their lines stay in the first-level cache.
const GROUP: usize = 64;

/// The array of entries: the root's, then blocks.
pub(super) struct Trie {
    pub(super) entries: Region<AtomicU32>,
}

impl Trie {
    #[inline(always)]
    pub(super) fn load(&self, index: usize) -> u32 {
        self.entries.get(index).map_or(MISS, |entry| entry.load(Ordering::Acquire))
    }

    pub(super) fn store(&self, index: usize, entry: u32) {
        if let Some(word) = self.entries.get(index) {
            word.store(entry, Ordering::Release);
        }
    }

    #[inline(always)]
    fn prefetch(&self, index: usize) {
        if let Some(word) = self.entries.get(index) {
            prefetch(word);
        }
    }
}

/// First entry of the block that `entry` refers to.
#[inline(always)]
pub(super) fn block(entry: u32) -> usize {
    (entry & MAX_VALUE) as usize * UNIT
}

/// Reads routes while the writer half changes them. Cloning is cheap.
///
/// A thread that reads while another one writes holds a [`ReaderSlot`](crate::ReaderSlot) of the
/// epoch that the table was made with.
pub struct LpmReader<A> {
    trie: Arc<Trie>,
    width: PhantomData<A>,
}

impl<A> Clone for LpmReader<A> {
    fn clone(&self) -> Self {
        Self { trie: Arc::clone(&self.trie), width: PhantomData }
    }
}

impl<A> std::fmt::Debug for LpmReader<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LpmReader").finish_non_exhaustive()
    }
}

impl<A: Address> LpmReader<A> {
    pub(super) fn new(trie: Arc<Trie>) -> Self {
        Self { trie, width: PhantomData }
    }

    /// Value of the longest prefix that `address` is in, or [`MISS`].
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: A) -> u32 {
        let mut entry = CHILD;
        let mut from = 0;
        for &to in A::LEVELS {
            entry = self.trie.load(block(entry) + address.field(from, to));
            if entry & CHILD == 0 {
                break;
            }
            from = to;
        }
        entry
    }

    /// [`lookup`](Self::lookup) of each address into the same place of `values`, in the time of
    /// few: their cache misses overlap. What one slice has more than the other is left alone.
    pub fn lookup_batch(&self, addresses: &[A], values: &mut [u32]) {
        for (addresses, values) in addresses.chunks(GROUP).zip(values.chunks_mut(GROUP)) {
            self.lookup_group(addresses, values);
        }
    }

    #[inline(always)]
    fn lookup_group(&self, addresses: &[A], values: &mut [u32]) {
        let Some((&root, levels)) = A::LEVELS.split_first() else { return };
        for address in addresses {
            self.trie.prefetch(address.field(0, root));
        }
        let mut waiting = [(0u32, 0u8); GROUP];
        let mut count = 0;
        let next = levels.first().copied().unwrap_or(root);
        for (slot, (address, value)) in addresses.iter().zip(values.iter_mut()).enumerate() {
            let entry = self.trie.load(address.field(0, root));
            *value = entry;
            let index = block(entry) + address.field(root, next);
            self.trie.prefetch(index);
            waiting[count % GROUP] = (index as u32, slot as u8);
            count += (entry >> 31) as usize;
        }
        for (level, &from) in levels.iter().enumerate() {
            if count == 0 {
                return;
            }
            let to = levels.get(level + 1).copied().unwrap_or(A::WIDTH);
            let mut kept = 0;
            for place in 0..count {
                let (index, slot) = waiting[place % GROUP];
                let slot = usize::from(slot);
                let (Some(address), Some(value)) = (addresses.get(slot), values.get_mut(slot))
                else {
                    continue;
                };
                let entry = self.trie.load(index as usize);
                *value = entry;
                let index = block(entry) + if from < to { address.field(from, to) } else { 0 };
                self.trie.prefetch(index);
                waiting[kept % GROUP] = (index as u32, slot as u8);
                kept += (entry >> 31) as usize;
            }
            count = kept;
        }
    }
}
