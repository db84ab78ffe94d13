//! A table that takes memory as entries come.

use std::fmt;

use super::{FlowError, FlowReader, FlowTable, NO_FLOW};
use crate::OutOfMemory;

/// Entries that the first table is made for: 29 KB with keys of 16 bytes.
const FIRST: usize = 1024;
/// Entries that move to a larger table with each that is added. Twice as large, it has them all long before it is full.
const STEP: usize = 4;

/// Entries by a key of `K` bytes like a [`FlowTable`], for one thread: sized for the entries that it holds instead of
/// for all that it may. It doubles where it is full; entries then move a few at a time, so that no insertion takes
/// long. Memory is not given back before the table is dropped, except that of a table that was outgrown.
pub struct GrowingFlowTable<const K: usize> {
    table: FlowTable<K>,
    reader: FlowReader<K>,
    outgrown: Option<Outgrown<K>>,
    most: usize,
}

/// A table whose entries move to the next one.
struct Outgrown<const K: usize> {
    table: FlowTable<K>,
    reader: FlowReader<K>,
    /// Entries before this place have moved.
    place: usize,
}

impl<const K: usize> GrowingFlowTable<K> {
    /// An empty table for up to `most` entries.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the system refuses the memory of a small table.
    pub fn new(most: usize) -> Result<Self, OutOfMemory> {
        let table = FlowTable::new(most.min(FIRST))?;
        let reader = table.reader();
        Ok(Self { table, reader, outgrown: None, most })
    }

    /// Entries held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len() + self.outgrown.as_ref().map_or(0, |old| old.table.len())
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory of the table.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let outgrown = self.outgrown.as_ref().map_or(0, |old| old.table.memory_bytes());
        self.table.memory_bytes() + outgrown
    }

    /// Value of `key`, or [`NO_FLOW`].
    #[inline]
    #[must_use]
    pub fn lookup(&self, key: &[u8; K]) -> u32 {
        match (self.reader.lookup(key), &self.outgrown) {
            (NO_FLOW, Some(old)) => old.reader.lookup(key),
            (value, _) => value,
        }
    }

    /// [`lookup`](Self::lookup) of each key into the same place of `values`, with the cache misses of many under way at
    /// once. What one slice has more than the other is left alone.
    #[inline]
    pub fn lookup_batch(&self, keys: &[[u8; K]], values: &mut [u32]) {
        self.reader.lookup_batch(keys, values);
        let Some(old) = &self.outgrown else { return };
        for (key, value) in keys.iter().zip(values).filter(|(_, value)| **value == NO_FLOW) {
            *value = old.reader.lookup(key);
        }
    }

    /// Adds an entry, or changes the value of one; gives the value that it had.
    ///
    /// # Errors
    /// [`FlowError`] when there is no room or the value is [`NO_FLOW`]; nothing is lost then.
    pub fn insert(&mut self, key: &[u8; K], value: u32) -> Result<Option<u32>, FlowError> {
        if value == NO_FLOW {
            return Err(FlowError::Value);
        }
        self.advance();
        if self.len() >= self.most && self.lookup(key) == NO_FLOW {
            return Err(FlowError::Full { held: self.len(), capacity: self.most });
        }
        let inserted = match self.table.insert(key, value) {
            Err(FlowError::Full { .. }) if self.grow() => self.table.insert(key, value),
            inserted => inserted,
        }?;
        let moved = self.outgrown.as_mut().and_then(|old| old.table.remove(key));
        Ok(inserted.or(moved))
    }

    /// Takes an entry away; gives its value.
    pub fn remove(&mut self, key: &[u8; K]) -> Option<u32> {
        let removed = self.table.remove(key);
        removed.or_else(|| self.outgrown.as_mut()?.table.remove(key))
    }

    /// A table of twice the size takes over. Gives whether there is one.
    fn grow(&mut self) -> bool {
        if self.outgrown.is_some() {
            return false;
        }
        let capacity = self.table.capacity().saturating_mul(2).min(self.most);
        if capacity <= self.table.capacity() {
            return false;
        }
        let Ok(table) = FlowTable::new(capacity) else { return false };
        let reader = table.reader();
        let table = std::mem::replace(&mut self.table, table);
        let reader = std::mem::replace(&mut self.reader, reader);
        self.outgrown = Some(Outgrown { table, reader, place: 0 });
        true
    }

    /// Some entries move to the larger table.
    fn advance(&mut self) {
        let Some(old) = &mut self.outgrown else { return };
        for _ in 0..STEP {
            let Some((place, key, value)) = old.table.iter_from(old.place).next() else {
                self.outgrown = None;
                return;
            };
            if self.table.insert(&key, value).is_err() {
                // It stays where it is found as well.
                return;
            }
            old.table.remove(&key);
            old.place = place;
        }
    }
}

impl<const K: usize> fmt::Debug for GrowingFlowTable<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrowingFlowTable")
            .field("key_bytes", &K)
            .field("len", &self.len())
            .field("most", &self.most)
            .finish()
    }
}
