//! Where the writer takes blocks from and gives them back to.

use std::collections::VecDeque;

use crate::Epoch;

/// Entries in a unit, the smallest block: one cache line.
pub(super) const UNIT: usize = 16;
/// Largest stride of a block.
const MAX_STRIDE: usize = 12;

/// A block that was unlinked and that readers may still look at.
struct Retired {
    tag: u64,
    stride: u8,
    unit: u32,
}

/// Block numbers count units from the start of the trie's array. Blocks of one stride are only
/// ever used again for the same stride.
pub(super) struct Arena {
    epoch: Epoch,
    next: u32,
    limit: u32,
    free: [Vec<u32>; MAX_STRIDE + 1],
    retired: VecDeque<Retired>,
}

fn units(stride: u8) -> u32 {
    ((1usize << stride) / UNIT) as u32
}

impl Arena {
    /// Blocks lie in units `first..limit`.
    pub(super) fn new(epoch: Epoch, first: u32, limit: u32) -> Self {
        Self { epoch, next: first, limit, free: Default::default(), retired: VecDeque::new() }
    }

    /// Whether one block of each of these strides can be taken.
    pub(super) fn has(&mut self, strides: impl Iterator<Item = u8> + Clone) -> bool {
        self.fits(strides.clone()) || (self.reclaim() && self.fits(strides))
    }

    fn fits(&self, strides: impl Iterator<Item = u8>) -> bool {
        let mut taken = [0usize; MAX_STRIDE + 1];
        let mut left = self.limit - self.next;
        for stride in strides {
            let slot = usize::from(stride);
            match (self.free.get(slot), taken.get_mut(slot)) {
                (Some(free), Some(taken)) if *taken < free.len() => *taken += 1,
                _ => match left.checked_sub(units(stride)) {
                    Some(rest) => left = rest,
                    None => return false,
                },
            }
        }
        true
    }

    /// A block of `2^stride` entries, as its unit's number; its entries hold anything.
    pub(super) fn take(&mut self, stride: u8) -> Option<u32> {
        if let Some(unit) = self.free.get_mut(usize::from(stride))?.pop() {
            return Some(unit);
        }
        let unit = self.next;
        let next = unit.checked_add(units(stride)).filter(|next| *next <= self.limit)?;
        self.next = next;
        Some(unit)
    }

    /// Gives back a block that no entry refers to any more.
    pub(super) fn give(&mut self, stride: u8, unit: u32) {
        self.retired.push_back(Retired { tag: self.epoch.retire(), stride, unit });
        self.reclaim();
    }

    /// Makes free what all readers have passed; whether there was any.
    fn reclaim(&mut self) -> bool {
        if self.retired.is_empty() {
            return false;
        }
        let passed = self.epoch.passed();
        let before = self.retired.len();
        while let Some(block) = self.retired.front().filter(|block| block.tag <= passed) {
            if let Some(free) = self.free.get_mut(usize::from(block.stride)) {
                free.push(block.unit);
            }
            self.retired.pop_front();
        }
        self.retired.len() < before
    }

    /// Entries from the start of the array that were ever in use.
    pub(super) fn used_entries(&self) -> usize {
        self.next as usize * UNIT
    }

    /// Bytes of memory of the lists.
    pub(super) fn memory_bytes(&self) -> usize {
        let free: usize = self.free.iter().map(|list| list.capacity() * size_of::<u32>()).sum();
        free + self.retired.capacity() * size_of::<Retired>()
    }
}
