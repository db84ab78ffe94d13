//! The writer half: adds, removes, and makes room by displacing entries.

use std::fmt;

use super::{
    bucket::{Layout, NO_FLOW},
    reader::{FlowReader, Moves, Shared},
};
use crate::{
    OutOfMemory,
    hash::Seed,
    memory::Region,
    sync::{Arc, AtomicU64, Ordering},
};

/// Most buckets that the search for a vacant slot looks at. At the load that tables are sized for
/// it needs a few; without success by then, the table is as good as full.
const SEARCH: usize = 2048;
/// Entries that are hashed and prefetched ahead when many are added.
const AHEAD: usize = 16;

/// Why an entry was refused. The table is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// The table holds as many entries as it may, or no room can be made for this one.
    #[error("the flow table is full: it holds {held} of {capacity} entries; raise its capacity")]
    Full {
        /// Entries held.
        held: usize,
        /// Entries that it is made for.
        capacity: usize,
    },
    /// The value is the one that stands for a miss.
    #[error("value {NO_FLOW:#x} is reserved")]
    Value,
}

/// Which of many entries was refused, and why. Those before it are in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("entry {index}: {error}")]
pub struct Refused {
    /// Its place among those given.
    pub index: usize,
    /// Why.
    pub error: FlowError,
}

/// Entries by a key of `K` bytes, a multiple of 8. The writer half: one thread changes it while
/// any number look up through [`reader`](Self::reader)s.
pub struct FlowTable<const K: usize> {
    pub(super) shared: Arc<Shared<K>>,
    len: usize,
    capacity: usize,
}

/// A bucket that the search for a vacant slot has reached, by displacing `slot` of `parent`.
struct Reached {
    bucket: u32,
    parent: Option<usize>,
    slot: usize,
}

impl<const K: usize> FlowTable<K> {
    /// An empty table for `capacity` entries, with a hash that no one else can foresee.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the system refuses the memory.
    pub fn new(capacity: usize) -> Result<Self, OutOfMemory> {
        // 3/4 of the slots in use; some more, since chance weighs on small tables.
        let buckets = (capacity.saturating_mul(4) / (Layout::<K>::SLOTS * 3)).saturating_add(8);
        Self::with_buckets(capacity, buckets, Seed::random())
    }

    pub(super) fn with_buckets(
        capacity: usize,
        buckets: usize,
        seed: Seed,
    ) -> Result<Self, OutOfMemory> {
        let refused = OutOfMemory { bytes: buckets.saturating_mul(Layout::<K>::BYTES) };
        let count = u32::try_from(buckets).map_err(|_| refused)?;
        let length = buckets.checked_mul(Layout::<K>::WORDS).ok_or(refused)?;
        let words = Region::new(length)?;
        let moves = Moves(AtomicU64::new(0));
        let shared = Arc::new(Shared { words, buckets: count, seed, moves });
        Ok(Self { shared, len: 0, capacity })
    }

    /// A reader half.
    #[must_use]
    pub fn reader(&self) -> FlowReader<K> {
        FlowReader::new(Arc::clone(&self.shared))
    }

    /// Entries held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Entries that it is made for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Bytes of memory of the table.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.shared.words.len() * size_of::<u64>()
    }

    /// Value of `key`.
    #[must_use]
    pub fn get(&self, key: &[u8; K]) -> Option<u32> {
        let (bucket, slot) = self.find(key)?;
        Some(self.shared.bucket(bucket)?.value(slot))
    }

    /// Every entry, in no order.
    pub fn iter(&self) -> impl Iterator<Item = ([u8; K], u32)> {
        self.iter_from(0).map(|(_, key, value)| (key, value))
    }

    /// Places that entries can be at.
    #[must_use]
    pub fn places(&self) -> usize {
        self.shared.buckets as usize * Layout::<K>::SLOTS
    }

    /// Entries from a place on, each with the place behind it: where to go on another time. To remove
    /// entries moves no other; to insert may, so that one is seen twice or not at all.
    pub fn iter_from(&self, place: usize) -> impl Iterator<Item = (usize, [u8; K], u32)> {
        (place..self.places()).filter_map(|place| {
            let (number, slot) = (place / Layout::<K>::SLOTS, place % Layout::<K>::SLOTS);
            let bucket = self.shared.bucket(number as u32).filter(|bucket| bucket.in_use(slot))?;
            Some((place + 1, bucket.key(slot), bucket.value(slot)))
        })
    }

    /// Adds an entry, or changes the value of one; gives the value that it had.
    ///
    /// # Errors
    /// [`FlowError`] when there is no room or the value is [`NO_FLOW`]; nothing is lost then.
    pub fn insert(&mut self, key: &[u8; K], value: u32) -> Result<Option<u32>, FlowError> {
        if value == NO_FLOW {
            return Err(FlowError::Value);
        }
        if let Some((number, slot)) = self.find(key) {
            if let Some(bucket) = self.shared.bucket(number) {
                let previous = bucket.value(slot);
                bucket.set_value(slot, value);
                return Ok(Some(previous));
            }
        }
        let full = FlowError::Full { held: self.len, capacity: self.capacity };
        if self.len >= self.capacity {
            return Err(full);
        }
        let (number, slot) = self.make_room(self.shared.homes(key)).ok_or(full)?;
        self.shared.bucket(number).ok_or(full)?.fill(slot, key, value);
        self.len += 1;
        Ok(None)
    }

    /// Adds many entries, or changes their values, faster than one by one.
    ///
    /// # Errors
    /// [`Refused`] at the first entry that is refused; those before it are in the table.
    pub fn insert_batch(&mut self, entries: &[([u8; K], u32)]) -> Result<(), Refused> {
        for (number, window) in entries.chunks(AHEAD).enumerate() {
            for (key, _) in window {
                for home in self.shared.homes(key) {
                    if let Some(bucket) = self.shared.bucket(home) {
                        bucket.prefetch();
                    }
                }
            }
            for (offset, (key, value)) in window.iter().enumerate() {
                self.insert(key, *value)
                    .map_err(|error| Refused { index: number * AHEAD + offset, error })?;
            }
        }
        Ok(())
    }

    /// Takes an entry away; gives its value.
    pub fn remove(&mut self, key: &[u8; K]) -> Option<u32> {
        let (number, slot) = self.find(key)?;
        let bucket = self.shared.bucket(number)?;
        let value = bucket.value(slot);
        bucket.clear(slot);
        self.len -= 1;
        Some(value)
    }

    fn find(&self, key: &[u8; K]) -> Option<(u32, usize)> {
        self.shared
            .homes(key)
            .into_iter()
            .find_map(|home| Some((home, self.shared.bucket(home)?.slot(key)?)))
    }

    /// A vacant slot in one of `homes`, displacing entries where there is none: the shortest
    /// chain of entries, each of which moves to its other bucket.
    fn make_room(&self, homes: [u32; 2]) -> Option<(u32, usize)> {
        let mut reached: Vec<Reached> = Vec::new();
        for home in homes {
            if let Some(slot) = self.shared.bucket(home)?.vacant() {
                return Some((home, slot));
            }
            reached.push(Reached { bucket: home, parent: None, slot: 0 });
        }
        let mut next = 0;
        while reached.len() < SEARCH {
            let number = reached.get(next)?.bucket;
            for slot in 0..Layout::<K>::SLOTS {
                let key = self.shared.bucket(number)?.key(slot);
                let [first, second] = self.shared.homes(&key);
                let other = if first == number { second } else { first };
                if ancestor(&reached, next, other) {
                    continue;
                }
                if let Some(vacant) = self.shared.bucket(other)?.vacant() {
                    return self.displace(&reached, next, slot, (other, vacant));
                }
                reached.push(Reached { bucket: other, parent: Some(next), slot });
            }
            next += 1;
        }
        None
    }

    /// Moves the entries of a chain, the last one first, each into the slot that is vacant then;
    /// gives the slot that the first one leaves.
    fn displace(
        &self,
        reached: &[Reached],
        last: usize,
        slot: usize,
        vacant: (u32, usize),
    ) -> Option<(u32, usize)> {
        let (mut place, mut slot, mut vacant) = (last, slot, vacant);
        loop {
            let step = reached.get(place)?;
            let (from, to) = (self.shared.bucket(step.bucket)?, self.shared.bucket(vacant.0)?);
            to.fill(vacant.1, &from.key(slot), from.value(slot));
            self.shared.moves.0.fetch_add(1, Ordering::Release);
            from.clear(slot);
            vacant = (step.bucket, slot);
            let Some(parent) = step.parent else { return Some(vacant) };
            (place, slot) = (parent, step.slot);
        }
    }
}

/// Whether `bucket` is on the chain that leads to `place`: it must not be there twice.
fn ancestor(reached: &[Reached], place: usize, bucket: u32) -> bool {
    let chain = std::iter::successors(reached.get(place), |step| reached.get(step.parent?));
    chain.into_iter().any(|step| step.bucket == bucket)
}

impl<const K: usize> fmt::Debug for FlowTable<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowTable")
            .field("key_bytes", &K)
            .field("len", &self.len)
            .field("capacity", &self.capacity)
            .finish()
    }
}
