//! Pools of buffers.

use std::ffi::CString;
use std::ptr::NonNull;

use crate::ffi::{self, Mempool};
use crate::{Buffer, Eal, EalError};

/// Free bytes before a fresh packet's data: DPDK's compiled-in headroom.
pub const HEADROOM: u16 = 128;

/// Why a pool could not be made.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum PoolError {
    /// EAL does not run.
    #[error(transparent)]
    Eal(#[from] EalError),
    /// Its name, buffer count, size or cache is out of range.
    #[error("buffer pool `{name}`: {problem}")]
    Invalid {
        /// The pool.
        name: String,
        /// What is wrong, and what would be right.
        problem: &'static str,
    },
    /// DPDK refused.
    #[error("buffer pool `{name}` of {megabytes} MB: {reason}")]
    Refused {
        /// The pool.
        name: String,
        /// Memory that it needs: MB.
        megabytes: u64,
        /// DPDK's reason, with a remedy where there is one.
        reason: String,
    },
}

/// A pool of equal buffers in DPDK's memory, for any number of ports and threads.
///
/// The handle can be copied. The memory lives until the process ends: a buffer may be anywhere
/// (a driver's ring, another thread) when the last handle goes, so a pool is never taken down.
#[derive(Debug, Clone, Copy)]
pub struct BufferPool {
    pool: NonNull<Mempool>,
    count: u32,
    data_room: u16,
}

// SAFETY: rte_mempool may be used from any thread; only its per-lcore caches are not shared, and
// those are found through the calling thread's own lcore id.
unsafe impl Send for BufferPool {}
// SAFETY: as above.
unsafe impl Sync for BufferPool {}

impl BufferPool {
    /// Makes a pool of `count` buffers for packets of up to `data_room` bytes each (plus
    /// [`HEADROOM`]). Each registered thread keeps up to 1.5 times `cache` (at most 512) of them
    /// at hand. `socket` is the NUMA node, `None` for any.
    ///
    /// # Errors
    /// [`PoolError::Eal`] before [`Eal::init`], [`PoolError::Invalid`] for values out of range,
    /// [`PoolError::Refused`] when the memory is short or the name is taken.
    pub fn new(
        name: &str,
        count: u32,
        data_room: u16,
        cache: u32,
        socket: Option<u32>,
    ) -> Result<Self, PoolError> {
        Eal::get().ok_or(EalError::NotRunning)?;
        let invalid = |problem| PoolError::Invalid { name: name.to_owned(), problem };
        let c_name = CString::new(name).map_err(|_| invalid("the name holds a NUL byte"))?;
        if name.is_empty() || name.len() > 24 {
            return Err(invalid("the name must have 1 to 24 bytes"));
        }
        if count == 0 || count > 1 << 28 {
            return Err(invalid("it must have 1 to 268435456 buffers"));
        }
        if cache > 512 || u64::from(cache) * 3 / 2 > u64::from(count) {
            return Err(invalid("the cache must be at most 512 and two thirds of the buffers"));
        }
        let Some(room) = data_room.checked_add(HEADROOM) else {
            return Err(invalid("a buffer holds at most 65407 bytes"));
        };
        let node = socket.and_then(|s| i32::try_from(s).ok()).unwrap_or(-1);
        // SAFETY: EAL runs, and the name outlives the call, which copies it.
        let pool = unsafe { ffi::millrace_pool_create(c_name.as_ptr(), count, cache, room, node) };
        let pool = NonNull::new(pool).ok_or_else(|| PoolError::Refused {
            name: name.to_owned(),
            megabytes: (u64::from(count) * (u64::from(room) + 192)) >> 20,
            reason: refusal(),
        })?;
        Ok(Self { pool, count, data_room })
    }

    pub(crate) fn as_ptr(&self) -> *mut Mempool {
        self.pool.as_ptr()
    }

    /// Buffers in the pool.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.count
    }

    /// Buffers that nobody holds now. Slow: it looks at every thread's cache.
    #[must_use]
    pub fn available(&self) -> u32 {
        // SAFETY: the pool lives as long as the process.
        unsafe { ffi::rte_mempool_avail_count(self.as_ptr()) }
    }

    /// Bytes that a fresh buffer takes after its headroom.
    #[must_use]
    pub fn data_room(&self) -> u16 {
        self.data_room
    }

    /// An empty packet; `None` when the pool is empty.
    #[must_use]
    pub fn alloc(&self) -> Option<Buffer> {
        let mut slot = [None];
        self.alloc_bulk(&mut slot);
        let [buffer] = slot;
        buffer
    }

    /// Fills all of `slots` with empty packets, or none when the pool has fewer; returns how many.
    /// The slots must be empty: a buffer in one of them is lost to its pool.
    #[inline]
    pub fn alloc_bulk(&self, slots: &mut [Option<Buffer>]) -> usize {
        debug_assert!(slots.iter().all(Option::is_none));
        let Ok(n) = u32::try_from(slots.len()) else { return 0 };
        // SAFETY: `Option<Buffer>` is a nullable mbuf pointer, the pool is live; all or nothing is
        // written, and what is written are fresh mbufs that nobody else has.
        let rc = unsafe { ffi::millrace_alloc_bulk(self.as_ptr(), slots.as_mut_ptr().cast(), n) };
        if rc == 0 { slots.len() } else { 0 }
    }
}

impl Buffer {
    /// A copy in one segment of a buffer from `pool`. `None` when the pool is empty or the packet
    /// is longer than one of its buffers.
    #[must_use]
    pub fn copy(&self, pool: &BufferPool) -> Option<Self> {
        let mut copy = pool.alloc()?;
        for segment in self.segments() {
            copy.append(segment.data.len())?.copy_from_slice(segment.data);
        }
        copy.mbuf_mut().port = self.mbuf().port;
        Some(copy)
    }
}

/// Frees every packet in `slots` with one call, and empties them.
#[inline]
pub fn free_bulk(slots: &mut [Option<Buffer>]) {
    for part in slots.chunks_mut(1 << 20) {
        // SAFETY: `Option<Buffer>` is a nullable mbuf pointer; the shim frees those that are not
        // null and sets all to null, which is `None`.
        unsafe { ffi::millrace_free_bulk(part.as_mut_ptr().cast(), part.len() as u32) };
    }
}

fn refusal() -> String {
    // SAFETY: reads a thread-local number.
    match unsafe { ffi::millrace_errno() } {
        libc::ENOMEM => "not enough DPDK memory: give EAL more, or make the pool smaller".into(),
        libc::EEXIST => "a pool of this name exists".into(),
        other => std::io::Error::from_raw_os_error(other).to_string(),
    }
}
