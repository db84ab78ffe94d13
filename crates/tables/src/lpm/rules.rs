//! The routes as they were given: one hash map per prefix length.

use std::collections::HashMap;

use super::{Address, Prefix};
use crate::hash::Keyed;

/// All routes of a table, exact.
pub(super) struct Rules<A> {
    by_len: Vec<HashMap<A, u32, Keyed>>,
    len: usize,
}

impl<A: Address> Rules<A> {
    pub(super) fn new() -> Self {
        let keyed = Keyed::default();
        let by_len = (0..=A::WIDTH).map(|_| HashMap::with_hasher(keyed.clone())).collect();
        Self { by_len, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, prefix: Prefix<A>) -> Option<u32> {
        self.by_len.get(usize::from(prefix.len()))?.get(&prefix.bits()).copied()
    }

    pub(super) fn insert(&mut self, prefix: Prefix<A>, value: u32) -> Option<u32> {
        let previous = self.by_len.get_mut(usize::from(prefix.len()))?.insert(prefix.bits(), value);
        self.len += usize::from(previous.is_none());
        previous
    }

    pub(super) fn remove(&mut self, prefix: Prefix<A>) -> Option<u32> {
        let previous = self.by_len.get_mut(usize::from(prefix.len()))?.remove(&prefix.bits());
        self.len -= usize::from(previous.is_some());
        previous
    }

    /// The longest route with a length among `lengths` that `address` is in.
    pub(super) fn covering(
        &self,
        address: A,
        lengths: std::ops::Range<u8>,
    ) -> Option<(Prefix<A>, u32)> {
        lengths.rev().find_map(|len| {
            let rules = self.by_len.get(usize::from(len)).filter(|rules| !rules.is_empty())?;
            let value = *rules.get(&address.truncate(len))?;
            Some((Prefix::covering(address, len).ok()?, value))
        })
    }

    /// Every route, shortest prefixes first, in no order among equally long ones.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Prefix<A>, u32)> {
        (0..=A::WIDTH).zip(&self.by_len).flat_map(|(len, rules)| {
            rules
                .iter()
                .filter_map(move |(bits, value)| Some((Prefix::new(*bits, len).ok()?, *value)))
        })
    }

    /// Bytes of memory that the maps hold.
    pub(super) fn memory_bytes(&self) -> usize {
        // A bucket is the pair and one control byte; 7 of 8 buckets are usable.
        let bucket = size_of::<(A, u32)>() + 1;
        self.by_len.iter().map(|rules| rules.capacity() * 8 / 7 * bucket).sum()
    }
}
