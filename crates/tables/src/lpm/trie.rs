//! What readers see: the array of entries, and how an address is looked up in it.

use std::marker::PhantomData;

use super::{Address, arena::UNIT};
use crate::{
    memory::Region,
    prefetch::prefetch_line,
    sync::{Arc, AtomicU32, Ordering},
};

/// The value of an address that no route covers.
pub const MISS: u32 = 0;
/// The largest value that a route can have.
pub const MAX_VALUE: u32 = CHILD - 1;
/// Set in an entry that is the number of a block instead of a value.
pub(super) const CHILD: u32 = 1 << 31;
/// Bits of an address that the first level takes, of either family.
const ROOT: u8 = 16;
/// Addresses that go through the levels together: enough to cover a cache miss, few enough that
/// all their lines stay in the first-level cache.
const GROUP: usize = 64;
/// A group of which at most one address in so many has been found goes to the next level as a whole.
const MOST: usize = 4;

/// The array of entries: the root's, then blocks.
pub(super) struct Trie {
    pub(super) entries: Region<AtomicU32>,
}

impl Trie {
    #[inline(always)]
    pub(super) fn load(&self, index: usize) -> u32 {
        load(&self.entries, index)
    }

    pub(super) fn store(&self, index: usize, entry: u32) {
        if let Some(word) = self.entries.get(index) {
            word.store(entry, Ordering::Release);
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
        let entries = &*self.trie.entries;
        for (addresses, values) in addresses.chunks(GROUP).zip(values.chunks_mut(GROUP)) {
            lookup_group(entries, addresses, values);
        }
    }

    /// Where look-ups begin, for a caller that knows addresses some time before it looks them up.
    #[inline]
    #[must_use]
    pub fn root(&self) -> LpmRoot<'_> {
        LpmRoot(&self.trie.entries)
    }
}

/// The first entries of a table: each look-up begins at one of them, and they are too many for a first-level cache.
#[derive(Clone, Copy)]
pub struct LpmRoot<'a>(&'a [AtomicU32]);

impl LpmRoot<'_> {
    /// Asks the cache for the entry that a look-up of this address begins at. Nothing waits for it, so this may stand in a long
    /// loop, of which the processor has too few turns in flight to hide the way of an entry that is read.
    #[inline(always)]
    pub fn ask<A: Address>(self, address: A) {
        ask(self.0, address.field(0, ROOT) as u32);
    }
}

/// Looks up at most [`GROUP`] addresses, level by level: while one level's entries are on their way
/// to the cache, the others' are asked for.
#[inline(always)]
fn lookup_group<A: Address>(entries: &[AtomicU32], addresses: &[A], values: &mut [u32]) {
    let [ROOT, second, deeper @ ..] = A::LEVELS else { return };
    let Some(top) = entries.first_chunk::<{ 1 << ROOT }>() else { return };
    let mut places = [0u32; GROUP];
    for ((address, place), value) in addresses.iter().zip(&mut places).zip(values.iter_mut()) {
        let index = address.field(0, ROOT) % top.len();
        *value = top[index].load(Ordering::Acquire);
        let below = block(*value) + address.field(ROOT, *second);
        // Without a block below, the same entry is read once more and ignored (it may have changed
        // by then): cheaper than a branch, which the processor would often guess wrong.
        *place = if *value & CHILD == 0 { index } else { below } as u32;
        ask(entries, *place);
    }
    let mut any = 0;
    for (place, value) in places.iter().zip(values.iter_mut()) {
        let entry = load(entries, *place as usize);
        *value = if *value & CHILD == 0 { *value } else { entry };
        any |= *value;
    }
    if any & CHILD != 0 {
        lookup_deeper(entries, addresses, values, *second, deeper);
    }
}

/// Takes those of `values` that refer to a block ending at bit `from` through `levels`.
#[inline(never)]
fn lookup_deeper<A: Address>(
    entries: &[AtomicU32],
    addresses: &[A],
    values: &mut [u32],
    mut from: u8,
    mut levels: &[u8],
) {
    while let [to, deeper @ ..] = levels {
        let count = waiting(values);
        if count == 0 {
            return;
        }
        // Sorting out those that have been found takes about as long as a level, so it has to spare enough of the work below.
        if count * MOST < values.len() * (MOST - 1) {
            return descend_some(entries, addresses, values, from, levels);
        }
        descend_all(entries, addresses, values, from, *to);
        (from, levels) = (*to, deeper);
    }
}

/// How many of `values` refer to a block.
#[inline(always)]
fn waiting(values: &[u32]) -> usize {
    values.iter().map(|value| value >> 31).sum::<u32>() as usize
}

/// Takes all of `values` one level down, which changes none but those that refer to a block.
#[inline(always)]
fn descend_all<A: Address>(
    entries: &[AtomicU32],
    addresses: &[A],
    values: &mut [u32],
    from: u8,
    to: u8,
) {
    let mut places = [0u32; GROUP];
    for ((address, place), value) in addresses.iter().zip(&mut places).zip(values.iter()) {
        let below = (block(*value) + address.field(from, to)) as u32;
        *place = if *value & CHILD == 0 { 0 } else { below };
        ask(entries, *place);
    }
    for (place, value) in places.iter().zip(values) {
        let entry = load(entries, *place as usize);
        *value = if *value & CHILD == 0 { *value } else { entry };
    }
}

/// Takes those of `values` that refer to a block through `levels`, and only those.
#[inline(always)]
fn descend_some<A: Address>(
    entries: &[AtomicU32],
    addresses: &[A],
    values: &mut [u32],
    mut from: u8,
    levels: &[u8],
) {
    let mut slots = [0u8; GROUP];
    let mut count = 0;
    for (slot, value) in values.iter().enumerate() {
        slots[count % GROUP] = slot as u8;
        count += (value >> 31) as usize;
    }
    let mut places = [0u32; GROUP];
    for &to in levels {
        for (slot, place) in slots.iter().zip(&mut places).take(count) {
            let slot = usize::from(*slot);
            let (Some(address), Some(value)) = (addresses.get(slot), values.get(slot)) else {
                continue;
            };
            *place = (block(*value) + address.field(from, to)) as u32;
            ask(entries, *place);
        }
        let mut kept = 0;
        for index in 0..count {
            let slot = slots[index % GROUP];
            let entry = load(entries, places[index % GROUP] as usize);
            if let Some(value) = values.get_mut(usize::from(slot)) {
                *value = entry;
            }
            slots[kept % GROUP] = slot;
            kept += (entry >> 31) as usize;
        }
        if kept == 0 {
            return;
        }
        (count, from) = (kept, to);
    }
}

#[inline(always)]
fn load(entries: &[AtomicU32], index: usize) -> u32 {
    entries.get(index).map_or(MISS, |entry| entry.load(Ordering::Acquire))
}

/// An address beyond the entries does no harm: it is only asked for.
#[inline(always)]
fn ask(entries: &[AtomicU32], index: u32) {
    prefetch_line(entries.as_ptr().wrapping_add(index as usize));
}
