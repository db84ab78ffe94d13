//! Slots for the model checker: marks are its atomics, and packets its cells, which tell when two
//! threads touch one at the same time.

use core::mem::MaybeUninit;

use loom::cell::UnsafeCell;
use loom::sync::Arc;

use super::Layout;
use crate::sync::AtomicU32;

type Slot = (AtomicU32, UnsafeCell<Vec<u8>>);

#[derive(Debug, Clone)]
pub(super) struct Slots {
    slots: Arc<Vec<Slot>>,
    capacity: usize,
}

// SAFETY: the cells are reached by the checker's calls only, and it ends the test where two threads touch one at the same time.
unsafe impl Send for Slots {}

impl Slots {
    pub(super) fn new(layout: Layout) -> Self {
        let slot = |_| (AtomicU32::new(0), UnsafeCell::new(Vec::new()));
        let slots = Arc::new((0..layout.slots()).map(slot).collect());
        Self { slots, capacity: layout.capacity() as usize }
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn count(&self) -> u32 {
        self.slots.len() as u32
    }

    fn slot(&self, position: u32) -> &Slot {
        &self.slots[position as usize & (self.slots.len() - 1)]
    }

    pub(super) fn mark(&self, position: u32) -> &AtomicU32 {
        &self.slot(position).0
    }

    pub(super) fn write(&self, position: u32, bytes: &[u8]) {
        // SAFETY: the checker sees to it that nobody else is at it.
        self.slot(position).1.with_mut(|data| unsafe { *data = bytes.to_vec() });
    }

    pub(super) fn read(&self, position: u32, target: &mut [MaybeUninit<u8>]) {
        self.slot(position).1.with(|data| {
            // SAFETY: as above.
            let data = unsafe { &*data };
            for (target, byte) in target.iter_mut().zip(data) {
                target.write(*byte);
            }
        });
    }

    pub(super) fn prefetch(&self, _: u32) {}
}
