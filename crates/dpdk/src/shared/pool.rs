//! The pool of one receive queue, whose buffers' memory can be lent.

use shm::Region;
use shm::attach::Reference;

use super::SharedBuffer;
use crate::ffi::Mbuf;
use crate::{Buffer, BufferPool, DeviceMemory, HEADROOM, PoolError, free_bulk};

/// Buffers of a pool that are looked at in one step of [`SharedPool::sweep`].
const SWEEP: usize = 32;
/// Bytes of a cache line: places begin at one.
const LINE: usize = 64;

/// The region has no place for every buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{needed} bytes of memory are needed for a queue's buffers, there are {given}")]
pub struct NoPlace {
    /// Bytes.
    pub needed: usize,
    /// Bytes.
    pub given: usize,
}

/// Buffers for one receive queue; see its module. It belongs to the queue's thread.
///
/// Buffers move into lent memory and out of it one by one, whenever they pass through our hands: those in a device's
/// ring stay where they are until a packet has come in them. A region is held as long as a buffer lies in it.
#[derive(Debug)]
pub struct SharedPool {
    pool: BufferPool,
    /// Bytes of a place.
    size: usize,
    /// Where buffers are to lie; `None`: at home.
    current: Option<Loan>,
    /// What was lent before and is not empty yet.
    earlier: Vec<Loan>,
    /// Packets that the last burst left in memory that is not ours alone.
    received: Vec<SharedBuffer>,
    /// Buffers in the pool that may have to move.
    unswept: u32,
}

/// Memory of somebody's, with buffers in it.
#[derive(Debug)]
struct Loan {
    region: Region,
    /// Devices that reach memory by themselves reach it.
    mapped: bool,
    /// I/O addresses of the buffers' own memory, by place.
    homes: Vec<u64>,
    /// Buffers that lie in it now.
    inside: u32,
}

impl Loan {
    /// The place where a buffer lies in it.
    #[inline]
    fn place(&self, mbuf: &Mbuf, size: usize) -> Option<u32> {
        let distance = (mbuf.buf_addr as usize).wrapping_sub(self.region.base().as_ptr() as usize);
        // A region has less than 4 GiB, so that the short division does.
        let place = u32::try_from(distance).ok()? / size as u32;
        (place < self.homes.len() as u32).then_some(place)
    }
}

/// Where a buffer's own memory begins: right behind its books. A reference to those reaches no further than they do, but all of the
/// pool's memory is DPDK's, which knows its addresses.
#[inline]
fn home(mbuf: &Mbuf) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(std::ptr::from_ref(mbuf).addr() + size_of::<Mbuf>())
}

#[inline]
fn is_home(mbuf: &Mbuf) -> bool {
    mbuf.buf_addr == home(mbuf)
}

impl SharedPool {
    /// A pool as [`BufferPool::new`] makes one, its buffers at home.
    ///
    /// # Errors
    /// As there.
    pub fn new(
        name: &str,
        count: u32,
        data_room: u16,
        socket: Option<u32>,
    ) -> Result<Self, PoolError> {
        // Without caches of threads: every free buffer is where `sweep` finds it.
        let pool = BufferPool::new(name, count, data_room, 0, socket)?;
        let size = (usize::from(data_room) + usize::from(HEADROOM)).next_multiple_of(LINE);
        let (earlier, received) = (Vec::new(), Vec::new());
        Ok(Self { pool, size, current: None, earlier, received, unswept: 0 })
    }

    /// What a receive queue is set up with.
    pub(crate) fn inner(&self) -> &BufferPool {
        &self.pool
    }

    /// Buffers, and so places that a region must have.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.pool.capacity()
    }

    /// Buffers that nobody holds now.
    #[must_use]
    pub fn available(&self) -> u32 {
        self.pool.available()
    }

    /// Bytes of a place.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes of memory that a region must have.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.capacity() as usize * self.size
    }

    /// Regions of before in which buffers still lie: they come back as packets arrive in them.
    #[must_use]
    pub fn earlier(&self) -> usize {
        self.earlier.len()
    }

    /// From now on buffers move into `memory`; to be followed by [`sweep`](Self::sweep).
    ///
    /// # Errors
    /// [`NoPlace`]: it is too short, or longer than 4 GiB.
    pub fn lend(&mut self, memory: &DeviceMemory) -> Result<(), NoPlace> {
        let region = memory.region().clone();
        let (needed, given) = (self.bytes(), region.length());
        if given < needed || u32::try_from(given).is_err() {
            return Err(NoPlace { needed, given });
        }
        self.withdraw();
        let homes = Vec::with_capacity(self.capacity() as usize);
        self.current = Some(Loan { region, mapped: memory.is_mapped(), homes, inside: 0 });
        Ok(())
    }

    /// From now on buffers move home; to be followed by [`sweep`](Self::sweep).
    pub fn withdraw(&mut self) {
        self.earlier.extend(self.current.take().filter(|loan| loan.inside > 0));
        self.unswept = self.capacity();
    }

    /// Moves some of the buffers that nobody holds to where they belong. Gives whether there may be more.
    pub fn sweep(&mut self) -> bool {
        if self.unswept == 0 {
            return false;
        }
        let mut slots = [const { None }; SWEEP];
        let count = (self.pool.available() as usize).min(SWEEP);
        let Some(slots) = slots.get_mut(..count) else { return false };
        let found = self.pool.alloc_bulk(slots) as u32;
        for buffer in slots.iter_mut().flatten() {
            self.settle(buffer.mbuf_mut());
        }
        // To the end of the pool's line: the next step sees others.
        free_bulk(slots);
        self.unswept = if found == 0 { 0 } else { self.unswept.saturating_sub(found) };
        self.unswept > 0
    }

    /// Takes out of a burst what lies in memory that is not ours alone; the others move to the front. Gives how many
    /// these are.
    #[inline]
    pub(crate) fn sort(&mut self, burst: &mut [Option<Buffer>]) -> usize {
        if self.current.is_none() && self.earlier.is_empty() {
            return burst.len();
        }
        let mut kept = 0;
        for at in 0..burst.len() {
            let Some(buffer) = burst[at].take() else { continue };
            if segments(&buffer).all(is_home) {
                burst[kept] = Some(buffer);
                kept += 1;
            } else {
                self.received.push(SharedBuffer::new(buffer));
            }
        }
        kept
    }

    /// What the last burst of the queue left in memory that is not ours alone.
    #[inline]
    pub fn received(&mut self) -> &mut Vec<SharedBuffer> {
        &mut self.received
    }

    /// Where a packet lies in the region that is lent now. `None`: it lies elsewhere, or in pieces.
    #[inline]
    #[must_use]
    pub fn reference(&self, buffer: &SharedBuffer) -> Option<Reference> {
        let mbuf = buffer.mbuf();
        let place = self.current.as_ref()?.place(mbuf, self.size)?;
        let (offset, length) = (mbuf.data_off.into(), mbuf.pkt_len);
        (mbuf.nb_segs == 1).then_some(Reference { place, offset, length })
    }

    /// Whether what is lent now is mapped for devices that reach memory by themselves:
    /// [`TxQueue::sends_shared`](crate::TxQueue::sends_shared).
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.current.as_ref().is_some_and(|loan| loan.mapped)
    }

    /// Frees a packet; its buffers move to where they belong.
    pub fn take_back(&mut self, buffer: SharedBuffer) {
        self.free(buffer.into_inner());
    }

    /// Frees a packet of this pool that lies at home; its buffers move to where they belong.
    pub fn free(&mut self, mut buffer: Buffer) {
        let mut next: *mut Mbuf = buffer.mbuf_mut();
        for _ in 0..buffer.mbuf().nb_segs {
            // SAFETY: the chain is live and ours, and has as many segments as its first one says or ends with a null
            // pointer.
            let Some(mbuf) = (unsafe { next.as_mut() }) else { break };
            next = mbuf.next;
            if mbuf.pool == self.pool.as_ptr() {
                self.settle(mbuf);
            }
        }
    }

    /// Moves a buffer to where it belongs: out of what was lent before, into what is lent now.
    fn settle(&mut self, mbuf: &mut Mbuf) {
        if !is_home(mbuf) {
            let size = self.size;
            if self.current.as_ref().is_some_and(|loan| loan.place(mbuf, size).is_some()) {
                return;
            }
            let found = self.earlier.iter().position(|loan| loan.place(mbuf, size).is_some());
            let Some(at) = found else { return };
            let Some(loan) = self.earlier.get_mut(at) else { return };
            let place = loan.place(mbuf, size).unwrap_or(0);
            mbuf.buf_iova = loan.homes.get(place as usize).copied().unwrap_or(u64::MAX);
            mbuf.buf_addr = home(mbuf);
            loan.inside -= 1;
            if loan.inside == 0 {
                self.earlier.swap_remove(at);
            }
        }
        let Some(loan) = &mut self.current else { return };
        let place = loan.homes.len();
        // Each buffer enters a region once, so there are places enough.
        if place < self.pool.capacity() as usize {
            // SAFETY: `lend` saw that the region has a place for each buffer. The loan keeps the region while a buffer lies in it.
            mbuf.buf_addr = unsafe { loan.region.base().add(place * self.size) }.as_ptr();
            loan.homes.push(mbuf.buf_iova);
            mbuf.buf_iova = mbuf.buf_addr as u64;
            loan.inside += 1;
        }
    }
}

impl Drop for SharedPool {
    fn drop(&mut self) {
        self.received.clear();
        // Buffers may be anywhere, and the memory that they lie in must stay.
        for loan in self.current.take().into_iter().chain(self.earlier.drain(..)) {
            if loan.inside > 0 {
                std::mem::forget(loan.region);
            }
        }
    }
}

/// The books of all segments of a packet.
fn segments(buffer: &Buffer) -> impl Iterator<Item = &Mbuf> {
    let mut next = Some(buffer.mbuf());
    let mut left = buffer.mbuf().nb_segs;
    std::iter::from_fn(move || {
        let mbuf = next.filter(|_| left > 0)?;
        left -= 1;
        // SAFETY: the chain is live and ours while `buffer` is borrowed; its last segment has a null pointer.
        next = unsafe { mbuf.next.as_ref() };
        Some(mbuf)
    })
}
