//! The table of learned addresses.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use graph::InterfaceId;
use tables::{Epoch, FlowReader, FlowTable, NO_FLOW, OutOfMemory};

use super::{Learn, MacKey};
use crate::indices::Indices;

/// Where an address was seen, and in which second.
struct Place {
    interface: AtomicU32,
    seen: AtomicU32,
}

/// For a worker: finds interfaces, and refreshes what it sees again.
#[derive(Clone)]
pub struct MacReader {
    table: FlowReader<16>,
    places: Arc<[Place]>,
}

impl MacReader {
    /// The interface behind which an address was learned. It need not be a member of the bridge any more.
    #[must_use]
    pub fn find(&self, key: &MacKey) -> Option<InterfaceId> {
        let place = self.place(key)?;
        Some(InterfaceId::from_bits(place.interface.load(Ordering::Relaxed)))
    }

    fn place(&self, key: &MacKey) -> Option<&Place> {
        let index = self.table.lookup(&key.bytes());
        self.places.get(index as usize).filter(|_| index != NO_FLOW)
    }

    /// Notes that an address was seen behind `interface` in this second; `false` when it is not known
    /// there.
    #[must_use]
    pub fn refresh(&self, key: &MacKey, interface: InterfaceId, second: u32) -> bool {
        let Some(place) = self.place(key) else { return false };
        if InterfaceId::from_bits(place.interface.load(Ordering::Relaxed)) != interface {
            return false;
        }
        // A store only when the second has changed: the line stays shared among the workers.
        if place.seen.load(Ordering::Relaxed) != second {
            place.seen.store(second, Ordering::Relaxed);
        }
        true
    }
}

/// A learned address, for people to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacEntry {
    /// The address.
    pub key: MacKey,
    /// Interface that it is behind.
    pub interface: InterfaceId,
    /// Seconds since it was last seen.
    pub age: u32,
}

/// For the control thread.
pub struct MacTable {
    table: FlowTable<16>,
    places: Arc<[Place]>,
    known: HashMap<MacKey, u32>,
    per_bridge: HashMap<u16, u32>,
    indices: Indices,
    epoch: Epoch,
    refused: u64,
}

impl MacTable {
    /// A table for `capacity` addresses of all bridges together.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the system refuses the memory.
    pub fn new(capacity: usize, epoch: &Epoch) -> Result<Self, OutOfMemory> {
        let place = |_| Place { interface: AtomicU32::new(0), seen: AtomicU32::new(0) };
        Ok(Self {
            table: FlowTable::new(capacity)?,
            places: (0..capacity).map(place).collect(),
            known: HashMap::new(),
            per_bridge: HashMap::new(),
            indices: Indices::new(0, u32::try_from(capacity).unwrap_or(u32::MAX)),
            epoch: epoch.clone(),
            refused: 0,
        })
    }

    /// For a worker.
    #[must_use]
    pub fn reader(&self) -> MacReader {
        MacReader { table: self.table.reader(), places: Arc::clone(&self.places) }
    }

    /// Enters what a worker has seen, or moves it to another interface. `limit`: addresses of that
    /// bridge at most; beyond it and beyond the table's capacity, frames go on being flooded.
    pub fn learn(&mut self, news: &Learn, limit: u32, second: u32) {
        if let Some(place) = self.known.get(&news.key).and_then(|at| self.places.get(*at as usize))
        {
            place.interface.store(news.interface.to_bits(), Ordering::Relaxed);
            place.seen.store(second, Ordering::Relaxed);
            return;
        }
        self.indices.reclaim(self.epoch.passed());
        let count = self.per_bridge.entry(news.key.bridge).or_default();
        let free = if *count < limit { self.indices.take() } else { None };
        let Some(index) = free else {
            self.refused += 1;
            return;
        };
        if let Some(place) = self.places.get(index as usize) {
            place.interface.store(news.interface.to_bits(), Ordering::Relaxed);
            place.seen.store(second, Ordering::Relaxed);
        }
        if self.table.insert(&news.key.bytes(), index).is_err() {
            self.indices.put_back(index);
            self.refused += 1;
            return;
        }
        *count += 1;
        self.known.insert(news.key, index);
    }

    /// Forgets what `stale` says of (address, interface, age in seconds).
    pub fn forget(&mut self, second: u32, mut stale: impl FnMut(&MacEntry) -> bool) {
        let gone: Vec<MacKey> =
            self.entries(second).filter(|entry| stale(entry)).map(|entry| entry.key).collect();
        for key in gone {
            let Some(index) = self.known.remove(&key) else { continue };
            self.table.remove(&key.bytes());
            self.indices.retire(index, self.epoch.retire());
            if let Some(count) = self.per_bridge.get_mut(&key.bridge) {
                *count -= 1;
            }
        }
    }

    /// What is known, in no order.
    pub fn entries(&self, second: u32) -> impl Iterator<Item = MacEntry> + '_ {
        self.known.iter().filter_map(move |(key, index)| {
            let place = self.places.get(*index as usize)?;
            let interface = InterfaceId::from_bits(place.interface.load(Ordering::Relaxed));
            let age = second.saturating_sub(place.seen.load(Ordering::Relaxed));
            Some(MacEntry { key: *key, interface, age })
        })
    }

    /// Addresses that were not learned, because of a limit.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }
}
