//! Looking keys up.

use std::fmt;

use super::bucket::{Bucket, Layout, NO_FLOW, word};
use crate::{
    hash::Seed,
    memory::Region,
    sync::{Arc, AtomicU64, Ordering, fence},
};

/// Keys that go through the stages of a batch together.
const GROUP: usize = 64;
/// The same where there are few: what the stages keep is less to clear.
const FEW: usize = 8;

/// What writer and readers share.
pub(super) struct Shared<const K: usize> {
    pub(super) words: Region<AtomicU64>,
    pub(super) buckets: u32,
    pub(super) seed: Seed,
    pub(super) moves: Moves,
}

/// Count of displaced entries, away from the cache lines of what never changes.
#[repr(align(128))]
pub(super) struct Moves(pub(super) AtomicU64);

impl<const K: usize> Shared<K> {
    /// The two buckets that `key` may lie in; they differ.
    #[inline(always)]
    pub(super) fn homes(&self, key: &[u8; K]) -> [u32; 2] {
        let hash = self.seed.hash(Layout::<K>::KEY, |index| word(key, index));
        let scale = |half: u32| ((u64::from(half) * u64::from(self.buckets)) >> 32) as u32;
        let (first, second) = (scale((hash >> 32) as u32), scale(hash as u32));
        if first != second {
            return [first, second];
        }
        [first, if second + 1 < self.buckets { second + 1 } else { 0 }]
    }

    #[inline(always)]
    pub(super) fn bucket(&self, number: u32) -> Option<Bucket<'_, K>> {
        Bucket::at(&self.words, number)
    }

    #[inline(always)]
    fn find(&self, number: u32, key: &[u8; K]) -> u32 {
        self.bucket(number).map_or(NO_FLOW, |bucket| bucket.find(key))
    }

    #[inline(always)]
    fn prefetch(&self, number: u32) {
        if let Some(bucket) = self.bucket(number) {
            bucket.prefetch();
        }
    }

    /// Value of `key`, found however it moves.
    fn lookup(&self, key: &[u8; K]) -> u32 {
        let homes = self.homes(key);
        loop {
            let moves = self.moves.0.load(Ordering::Acquire);
            for home in homes {
                let value = self.find(home, key);
                if value != NO_FLOW {
                    return value;
                }
            }
            if !self.moved_since(moves) {
                return NO_FLOW;
            }
        }
    }

    /// Whether an entry was displaced since the count was `moves`, as far as the reads above go.
    fn moved_since(&self, moves: u64) -> bool {
        fence(Ordering::Acquire);
        self.moves.0.load(Ordering::Relaxed) != moves
    }
}

/// Reads a [`FlowTable`](super::FlowTable) while its writer half changes it. Cloning is cheap.
pub struct FlowReader<const K: usize> {
    shared: Arc<Shared<K>>,
}

impl<const K: usize> Clone for FlowReader<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<const K: usize> fmt::Debug for FlowReader<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowReader").field("key_bytes", &K).finish_non_exhaustive()
    }
}

impl<const K: usize> FlowReader<K> {
    pub(super) fn new(shared: Arc<Shared<K>>) -> Self {
        Self { shared }
    }

    /// Value of `key`, or [`NO_FLOW`].
    #[must_use]
    pub fn lookup(&self, key: &[u8; K]) -> u32 {
        self.shared.lookup(key)
    }

    /// [`lookup`](Self::lookup) of each key into the same place of `values`, with the cache misses
    /// of many under way at once. What one slice has more than the other is left alone.
    pub fn lookup_batch(&self, keys: &[[u8; K]], values: &mut [u32]) {
        if keys.len() <= FEW {
            return self.lookup_group::<FEW>(keys, values);
        }
        for (keys, values) in keys.chunks(GROUP).zip(values.chunks_mut(GROUP)) {
            self.lookup_group::<GROUP>(keys, values);
        }
    }

    #[inline(always)]
    fn lookup_group<const GROUP: usize>(&self, keys: &[[u8; K]], values: &mut [u32]) {
        let shared = &*self.shared;
        let mut homes = [[0; 2]; GROUP];
        for (key, homes) in keys.iter().zip(&mut homes) {
            *homes = shared.homes(key);
            shared.prefetch(homes[0]);
        }
        let moves = shared.moves.0.load(Ordering::Acquire);
        let mut waiting = [0u8; GROUP];
        let mut count = 0;
        let asked = keys.iter().zip(values.iter_mut()).zip(&homes).enumerate();
        for (place, ((key, value), homes)) in asked {
            *value = shared.find(homes[0], key);
            if *value == NO_FLOW {
                shared.prefetch(homes[1]);
                waiting[count % GROUP] = place as u8;
                count += 1;
            }
        }
        let mut missed = false;
        for place in waiting.iter().take(count).map(|place| usize::from(*place)) {
            if let (Some(key), Some(value)) = (keys.get(place), values.get_mut(place)) {
                *value = shared.find(homes[place % GROUP][1], key);
                missed |= *value == NO_FLOW;
            }
        }
        if missed && shared.moved_since(moves) {
            for (key, value) in keys.iter().zip(values.iter_mut()) {
                if *value == NO_FLOW {
                    *value = shared.lookup(key);
                }
            }
        }
    }
}
