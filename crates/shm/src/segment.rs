//! Segments: memory that two processes map, handed over as a file descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::fs::{
    FallocateFlags, IFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals,
    fstat, ftruncate, ioctl_getflags, ioctl_setflags, memfd_create,
};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use crate::process::Process;
use crate::sleep::SleepWord;
use crate::sync::AtomicU32;

/// Largest segment: bytes. A peer that names a larger one is refused before anything is mapped.
const LARGEST: usize = 1 << 36;
/// A file must keep its size for ever: a side that cuts it off would kill the other with SIGBUS.
const SEALS: SealFlags = SealFlags::GROW.union(SealFlags::SHRINK);
/// Once whoever may write has mapped it: nobody else does, and nobody takes pages out. Linux 5.1.
const CLOSED: SealFlags = SealFlags::FUTURE_WRITE.union(SealFlags::SEAL);

/// Why a segment could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// No bytes, or too many.
    #[error("a segment of {0} bytes: it must have 1 byte to 64 GiB")]
    Size(usize),
    /// The system refused.
    #[error("shared memory of {bytes} bytes: {source}")]
    System {
        /// Bytes asked for.
        bytes: usize,
        /// Its reason.
        source: io::Error,
    },
    /// The file could be cut off under us.
    #[error("the file handed over is not sealed against growing and shrinking: it is refused")]
    Unsealed,
}

/// Memory that other processes may map too. It never moves and never changes its size.
///
/// A forked child does not have it (`MADV_DONTFORK`): a queue's end in two processes would be two owners of one packet.
/// There every access faults; who may be forked looks at [`process`](Self::process) first.
#[derive(Debug)]
pub struct Segment {
    file: OwnedFd,
    base: NonNull<u8>,
    length: usize,
    process: Process,
}

// SAFETY: the segment owns its mapping for its whole life; all access to what is mapped goes through
// atomics, through copies that the compiler does not see, or in place where a caller vouches for the other side
// and for this one (`trust` of queues and buffers).
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// Zeroed memory of `length` bytes, named `name` in `/proc/PID/maps`.
    ///
    /// # Errors
    /// [`SegmentError::Size`]; [`SegmentError::System`] when there is no memory or no descriptor left.
    pub fn create(name: &str, length: usize) -> Result<Self, SegmentError> {
        #[cfg(miri)]
        if (1..=LARGEST).contains(&length) {
            return Self::of_miri(length);
        }
        let mut growing = Growing::new(name, length)?;
        loop {
            match growing.step()? {
                Grown::Partly(rest) => growing = rest,
                Grown::Whole(segment) => return Ok(segment),
            }
        }
    }

    /// Miri maps no files: memory of this process alone, which both ends of a queue may use all the same.
    #[cfg(miri)]
    fn of_miri(length: usize) -> Result<Self, SegmentError> {
        let system = |source| SegmentError::System { bytes: length, source };
        let file = std::fs::File::open("/dev/null").map_err(system)?.into();
        let words = vec![0_u64; length.div_ceil(8) + LINE / 8].leak();
        let base = words.as_mut_ptr().cast::<u8>();
        // SAFETY: a line more was taken than is used.
        let base = unsafe { base.add(base.align_offset(LINE)) };
        let base = NonNull::new(base).ok_or(SegmentError::Size(length))?;
        Ok(Self { file, base, length, process: Process::current() })
    }

    /// Maps a segment that another process made.
    ///
    /// # Errors
    /// [`SegmentError::Unsealed`] when its maker could still cut it off; as [`Self::create`].
    pub fn from_file(file: OwnedFd) -> Result<Self, SegmentError> {
        let length = Self::length_of(&file)?;
        Self::map(file, length, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// The same, to read only: who writes there ends.
    ///
    /// # Errors
    /// As [`Self::from_file`].
    pub(crate) fn from_file_to_read(file: OwnedFd) -> Result<Self, SegmentError> {
        let length = Self::length_of(&file)?;
        Self::map(file, length, ProtFlags::READ)
    }

    fn length_of(file: &OwnedFd) -> Result<usize, SegmentError> {
        let system =
            |source: rustix::io::Errno| SegmentError::System { bytes: 0, source: source.into() };
        let seals = fcntl_get_seals(file).map_err(|_| SegmentError::Unsealed)?;
        if !seals.contains(SealFlags::GROW | SealFlags::SHRINK) {
            return Err(SegmentError::Unsealed);
        }
        let length = usize::try_from(fstat(file).map_err(system)?.st_size).unwrap_or(0);
        if length == 0 || length > LARGEST {
            return Err(SegmentError::Size(length));
        }
        Ok(length)
    }

    fn map(file: OwnedFd, length: usize, protection: ProtFlags) -> Result<Self, SegmentError> {
        // SAFETY: a fresh mapping at an address of the kernel's choice, of a file that keeps its size.
        let base =
            unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, &file, 0) };
        let base =
            base.map_err(|source| SegmentError::System { bytes: length, source: source.into() })?;
        let base = NonNull::new(base.cast::<u8>()).ok_or(SegmentError::Size(length))?;
        let segment = Self { file, base, length, process: Process::current() };
        // SAFETY: the mapping just made; it changes nothing in this process.
        unsafe { madvise(base.as_ptr().cast(), length, Advice::LinuxDontFork) }
            .map_err(|source| SegmentError::System { bytes: length, source: source.into() })?;
        Ok(segment)
    }

    /// The one process in which it is mapped.
    #[must_use]
    pub fn process(&self) -> Process {
        self.process
    }

    /// From now on nobody takes pages out of it (`fallocate`, `MADV_REMOVE`), which would have to be made anew by the side
    /// that touches them next, for as long as that goes on. Others map it as before.
    ///
    /// To be called before another process has the file: this takes the file's lock, which whoever has the kernel write into
    /// it holds until that is over, and the kernel lets no signal end who waits for it.
    ///
    /// # Errors
    /// [`SegmentError::System`] without `CAP_LINUX_IMMUTABLE`, and before Linux 6.0.
    pub fn make_immutable(&self) -> Result<(), SegmentError> {
        // `vfs_fallocate` asks for this ahead of any lock; neither mappings nor `write` do.
        ioctl_setflags(&self.file, IFlags::IMMUTABLE).map_err(|source| self.system(source))
    }

    /// To be called when the other side has mapped it: from now on nobody takes pages out of it. If it was [made
    /// immutable](Self::make_immutable), there is nothing to do, and nothing to wait for. Otherwise nobody maps it to write
    /// any more, and this takes the file's lock, too.
    ///
    /// # Errors
    /// [`SegmentError::System`] when the other side has forbidden this itself, or the kernel has no such seal.
    pub fn close(&self) -> Result<(), SegmentError> {
        // Without the file's lock; only a privileged process clears it.
        match ioctl_getflags(&self.file) {
            Ok(flags) if flags.contains(IFlags::IMMUTABLE) => Ok(()),
            _ => self.seal(),
        }
    }

    /// From now on nobody maps it to write, nor takes pages out of it. Takes the file's lock.
    ///
    /// # Errors
    /// As [`Self::close`].
    pub(crate) fn seal(&self) -> Result<(), SegmentError> {
        fcntl_add_seals(&self.file, CLOSED).map_err(|source| self.system(source))
    }

    fn system(&self, source: rustix::io::Errno) -> SegmentError {
        SegmentError::System { bytes: self.length, source: source.into() }
    }

    /// Bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// A part of it; `None` when it does not lie within, or does not begin at a cache line.
    #[must_use]
    pub fn region(self: &Arc<Self>, offset: usize, length: usize) -> Option<Region> {
        let end = offset.checked_add(length)?;
        let fits = end <= self.length && offset % LINE == 0;
        fits.then(|| Region { segment: Arc::clone(self), offset, length })
    }
}

impl AsFd for Segment {
    /// To hand over to another process.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // In a forked child something else may lie there by now.
        if !self.process.is_current() || cfg!(miri) {
            return;
        }
        // Step by step: all threads of the process that map or unmap something wait for each. Pages are put down first,
        // for which nobody waits since Linux 6.17, so that little is left to do while they wait.
        for offset in (0..self.length).step_by(STEP) {
            let length = STEP.min(self.length - offset);
            // SAFETY: a part of our own mapping, at a multiple of pages; every region holds the segment, so none
            // outlives it, and nothing else unmaps it.
            let _ = unsafe {
                let start = self.base.as_ptr().add(offset).cast();
                let _ = madvise(start, length, Advice::LinuxDontNeed);
                munmap(start, length)
            };
        }
    }
}

/// Bytes of a segment that are made, or taken down, without a pause: a quarter of a millisecond's work.
const STEP: usize = 1 << 20;

/// A segment that is being made, step by step, so that whoever makes a large one can do something else meanwhile.
#[derive(Debug)]
pub struct Growing {
    segment: Segment,
    done: usize,
}

/// After a step.
#[derive(Debug)]
pub enum Grown {
    /// There is more to do.
    Partly(Growing),
    /// Done.
    Whole(Segment),
}

impl Growing {
    /// Begins with one of `length` bytes.
    ///
    /// # Errors
    /// As [`Segment::create`].
    pub fn new(name: &str, length: usize) -> Result<Self, SegmentError> {
        if length == 0 || length > LARGEST {
            return Err(SegmentError::Size(length));
        }
        let system = |source: rustix::io::Errno| SegmentError::System {
            bytes: length,
            source: source.into(),
        };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create(name, flags).map_err(system)?;
        ftruncate(&file, length as u64).map_err(system)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        Ok(Self { segment: Segment::map(file, length, protection)?, done: 0 })
    }

    /// Makes the next mebibyte.
    ///
    /// # Errors
    /// [`SegmentError::System`] when there is no memory left; what was made is given back.
    pub fn step(mut self) -> Result<Grown, SegmentError> {
        let Self { segment, done } = &mut self;
        let bytes = segment.length;
        let system =
            |source: rustix::io::Errno| SegmentError::System { bytes, source: source.into() };
        let length = STEP.min(bytes - *done);
        let (offset, part) = (*done as u64, length as u64);
        // All of it now: a page that cannot be had when it is first touched ends the process that touches it.
        fallocate(&segment.file, FallocateFlags::empty(), offset, part).map_err(system)?;
        // Page by page, and not by `MADV_POPULATE_WRITE`: that holds the lock of the whole address space, for which every
        // thread waits that maps or unmaps something, a page fault since Linux 6.6 only that of this mapping.
        for page in (*done..*done + length).step_by(PAGE) {
            // SAFETY: a byte of our own mapping, zero as all of them, which nobody else has yet.
            unsafe { segment.base.add(page).write_volatile(0) };
        }
        *done += length;
        if *done < bytes {
            return Ok(Grown::Partly(self));
        }
        fcntl_add_seals(&segment.file, SEALS).map_err(system)?;
        Ok(Grown::Whole(self.segment))
    }
}

/// Bytes of the smallest pages of any machine.
const PAGE: usize = 4096;
/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// A part of a segment, which keeps the segment mapped.
#[derive(Debug, Clone)]
pub struct Region {
    segment: Arc<Segment>,
    offset: usize,
    length: usize,
}

impl Region {
    /// Bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Its first byte, aligned to a cache line. Valid for [`length`](Self::length) bytes as long as a
    /// region of the segment lives.
    #[inline(always)]
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        // SAFETY: `Segment::region` checked that the offset lies within the mapping.
        unsafe { self.segment.base.add(self.offset) }
    }

    /// The word at `offset` bytes; `None` when it does not lie within or is not aligned.
    #[inline]
    #[must_use]
    pub(crate) fn word(&self, offset: usize) -> Option<&AtomicU32> {
        let fits = offset % 4 == 0 && offset.checked_add(4).is_some_and(|end| end <= self.length);
        // SAFETY: within the mapping and aligned, as just checked; the memory is only ever seen as
        // atomics here, and outlives the borrow.
        fits.then(|| unsafe { self.base().add(offset).cast::<AtomicU32>().as_ref() })
    }

    /// The word at `offset` bytes as that of a doorbell; `None` as [`Self::region`](Segment::region).
    #[must_use]
    pub fn sleep_word(&self, offset: usize) -> Option<SleepWord<'_>> {
        self.word(offset).map(SleepWord)
    }
}

#[cfg(test)]
mod tests;
