//! Fixed arrays of zeroed atomics that never move; large ones in huge pages where the system has any.

#[cfg(not(loom))]
pub(crate) use mapped::Region;
#[cfg(loom)]
pub(crate) use modelled::Region;

/// The system refused the memory for a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no memory for a table of {bytes} bytes: lower its capacity or free memory")]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub bytes: usize,
}

#[cfg(not(loom))]
mod mapped {
    use core::{
        ops::Deref,
        ptr::{self, NonNull},
    };

    use super::OutOfMemory;
    use crate::sync::{AtomicU32, AtomicU64};

    /// Size and alignment of a huge page on x86-64 and aarch64 with 4 KiB base pages.
    const HUGE: usize = 2 << 20;
    /// What mappings are aligned to everywhere.
    const PAGE: usize = 4096;

    /// Types that a zeroed mapping holds validly and that threads may share.
    ///
    /// # Safety
    /// All-zero bytes are a value, there is no drop glue, and shared access is sound.
    pub(crate) unsafe trait Word: Sync + Send {}
    // SAFETY: an atomic integer has the layout of the integer; zero is a value of it.
    unsafe impl Word for AtomicU32 {}
    // SAFETY: as above.
    unsafe impl Word for AtomicU64 {}

    /// `len` zeroed words. Address space is taken at once, memory as it is touched.
    pub(crate) struct Region<T: Word> {
        mapping: NonNull<libc::c_void>,
        mapping_bytes: usize,
        base: NonNull<T>,
        len: usize,
    }

    // SAFETY: the region owns its mapping, and hands out shared references to words only, which
    // `Word` says may be shared and sent.
    unsafe impl<T: Word> Send for Region<T> {}
    // SAFETY: as above.
    unsafe impl<T: Word> Sync for Region<T> {}

    impl<T: Word> Region<T> {
        /// Reserves `len` zeroed words, aligned to a huge page if they fill one. Memory is taken as it is touched.
        pub(crate) fn new(len: usize) -> Result<Self, OutOfMemory> {
            let bytes = len.saturating_mul(size_of::<T>());
            let refused = OutOfMemory { bytes };
            let huge = bytes >= HUGE;
            let (page, slack) = if huge { (HUGE, HUGE) } else { (PAGE, 0) };
            let rounded = bytes.max(1).checked_next_multiple_of(page).ok_or(refused)?;
            let mapping_bytes = rounded.checked_add(slack).ok_or(refused)?;
            // SAFETY: a fresh anonymous mapping at an address of the kernel's choice.
            let mapping = unsafe {
                libc::mmap(
                    ptr::null_mut(),
                    mapping_bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if mapping == libc::MAP_FAILED {
                return Err(refused);
            }
            let mapping = NonNull::new(mapping).ok_or(refused)?;
            let skip = mapping.as_ptr().align_offset(page);
            // SAFETY: `skip` < HUGE, and the mapping is HUGE longer than what is used of it; 0 without `huge`.
            let base = unsafe { mapping.byte_add(skip) }.cast::<T>();
            if huge {
                // Transparent huge pages, since they come as the table grows and leave the reserved ones
                // to the buffers of the ports.
                // SAFETY: advice on our own mapping; a refusal leaves base pages, which do.
                unsafe { libc::madvise(base.as_ptr().cast(), rounded, libc::MADV_HUGEPAGE) };
            }
            Ok(Self { mapping, mapping_bytes, base, len })
        }
    }

    impl<T: Word> Deref for Region<T> {
        type Target = [T];

        #[inline(always)]
        fn deref(&self) -> &[T] {
            // SAFETY: `base` starts `len` words inside the mapping, zeroed at first (so valid,
            // see `Word`), never unmapped before drop, and only ever accessed as shared words.
            unsafe { core::slice::from_raw_parts(self.base.as_ptr(), self.len) }
        }
    }

    impl<T: Word> Drop for Region<T> {
        fn drop(&mut self) {
            // SAFETY: our own mapping, to which no reference outlives `self`.
            unsafe { libc::munmap(self.mapping.as_ptr(), self.mapping_bytes) };
        }
    }
}

#[cfg(loom)]
mod modelled {
    use core::ops::Deref;

    use super::OutOfMemory;

    pub(crate) struct Region<T>(Box<[T]>);

    impl<T: Default> Region<T> {
        pub(crate) fn new(len: usize) -> Result<Self, OutOfMemory> {
            Ok(Self((0..len).map(|_| T::default()).collect()))
        }
    }

    impl<T> Deref for Region<T> {
        type Target = [T];

        fn deref(&self) -> &[T] {
            &self.0
        }
    }
}
