//! The memory of a queue's slots.

use core::mem::MaybeUninit;

use super::layout::{CONSUMER_SLEEPS, Layout, LayoutError, MARK, PRODUCER_SLEEPS, SLOTS};
use crate::copy::{read_shared_into, write_shared};
use crate::segment::Region;
use crate::sleep::SleepWord;
use crate::sync::AtomicU32;

/// Slots by position; positions wrap around the ring. The layout is this side's own knowledge: nothing
/// in the memory can lead out of it.
#[derive(Debug)]
pub(super) struct Slots {
    region: Region,
    mask: u32,
    stride: usize,
    capacity: usize,
}

impl Slots {
    pub(super) fn new(region: Region, layout: Layout) -> Result<Self, LayoutError> {
        let (needed, given) = (layout.bytes(), region.length());
        if given < needed {
            return Err(LayoutError::Memory { needed, given });
        }
        let (mask, stride) = (layout.slots() - 1, layout.stride());
        Ok(Self { region, mask, stride, capacity: layout.capacity() as usize })
    }

    #[inline(always)]
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn count(&self) -> u32 {
        self.mask + 1
    }

    #[inline(always)]
    fn slot(&self, position: u32) -> *mut u8 {
        let offset = SLOTS + (position & self.mask) as usize * self.stride;
        // SAFETY: the masked position is less than the number of slots, for which `new` saw room.
        unsafe { self.region.base().add(offset).as_ptr() }
    }

    #[inline(always)]
    pub(super) fn mark(&self, position: u32) -> &AtomicU32 {
        // SAFETY: a slot begins at a cache line with its mark, which is only ever seen as an atomic; the region keeps it mapped
        // as long as the borrow of `self`.
        unsafe { &*self.slot(position).cast::<AtomicU32>() }
    }

    /// The packet's bytes, `capacity` of them.
    #[inline(always)]
    fn data(&self, position: u32) -> *mut u8 {
        // SAFETY: the mark and `capacity` bytes lie within the stride.
        unsafe { self.slot(position).add(MARK) }
    }

    /// Writes a packet, as much of it as fits.
    #[inline(always)]
    pub(super) fn write(&self, position: u32, bytes: &[u8]) {
        let bytes = bytes.get(..self.capacity).unwrap_or(bytes);
        // SAFETY: `capacity` bytes fit behind the mark; `bytes` are the caller's own memory. It is this side's turn; the
        // other side may look or write all the same, for which `write_shared` is made.
        unsafe { write_shared(bytes, self.data(position)) };
    }

    /// Copies the first bytes of a packet out, as many as are asked for and fit.
    #[inline(always)]
    pub(super) fn read(&self, position: u32, target: &mut [MaybeUninit<u8>]) {
        let length = target.len().min(self.capacity);
        let Some(target) = target.get_mut(..length) else { return };
        // SAFETY: `length` bytes stand behind the mark; the target is the caller's own memory. The other side may write
        // all the same, for which `read_shared_into` is made.
        unsafe { read_shared_into(self.data(position), target) };
    }

    /// The first `length` bytes of a packet, in place.
    ///
    /// # Safety
    /// The other side keeps to the protocol, and it is this side's turn for as long as the borrow lives, in which nothing else on
    /// this side writes there.
    #[inline(always)]
    pub(super) unsafe fn bytes(&self, position: u32, length: usize) -> &[u8] {
        // SAFETY: within the slot; nobody writes meanwhile, says the caller.
        unsafe { std::slice::from_raw_parts(self.data(position), length.min(self.capacity)) }
    }

    /// The same, to change.
    ///
    /// # Safety
    /// As above, nothing else on this side reads there, and no other borrow of the slot's bytes lives.
    #[inline(always)]
    #[expect(
        clippy::mut_from_ref,
        reason = "the memory is not ours alone: the protocol says whose turn it is"
    )]
    pub(super) unsafe fn bytes_mut(&self, position: u32, length: usize) -> &mut [u8] {
        // SAFETY: within the slot; nobody reads or writes meanwhile, says the caller.
        unsafe { std::slice::from_raw_parts_mut(self.data(position), length.min(self.capacity)) }
    }

    /// Asks for the line with the mark ahead of time.
    #[inline(always)]
    pub(super) fn prefetch(&self, position: u32) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a hint that touches nothing, on every x86-64.
        unsafe {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(
                self.slot(position).cast(),
            );
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = position;
    }

    fn word_at(&self, offset: usize) -> SleepWord<'_> {
        // SAFETY: both words lie ahead of the slots, for which `new` saw room, aligned as the region is, to a cache line; they
        // are only ever seen as atomics.
        SleepWord(unsafe { &*self.region.base().add(offset).as_ptr().cast::<AtomicU32>() })
    }

    pub(super) fn consumer_sleeps(&self) -> SleepWord<'_> {
        self.word_at(CONSUMER_SLEEPS)
    }

    pub(super) fn producer_sleeps(&self) -> SleepWord<'_> {
        self.word_at(PRODUCER_SLEEPS)
    }
}
