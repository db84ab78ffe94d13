//! Segments: memory that two processes map, handed over as a file descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat,
    ftruncate, memfd_create,
};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use crate::process::Process;
use crate::sleep::SleepWord;
use crate::sync::AtomicU32;

/// Largest segment: bytes. A peer that names a larger one is refused before anything is mapped.
const LARGEST: usize = 1 << 36;
/// A file must keep its size for ever: a side that cuts it off would kill the other with SIGBUS.
const SEALS: SealFlags = SealFlags::GROW.union(SealFlags::SHRINK);
/// Once both sides have mapped it: pages that were taken out (`fallocate`, `MADV_REMOVE`) would have to be made anew by
/// the side that touches them next, for as long as that goes on. Linux 5.1.
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
// atomics, through copies that the compiler does not see, or in place where a caller vouches for the other side.
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

    /// To be called when the other side has mapped it: from now on nobody maps it to write, nor takes pages out of it.
    ///
    /// # Errors
    /// [`SegmentError::System`] when the other side has forbidden this itself, or the kernel has no such seal.
    pub fn close(&self) -> Result<(), SegmentError> {
        fcntl_add_seals(&self.file, CLOSED)
            .map_err(|source| SegmentError::System { bytes: self.length, source: source.into() })
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
mod tests {
    use super::*;
    use crate::sync::Ordering;

    #[test]
    fn two_mappings_are_one_memory() {
        let ours = Arc::new(Segment::create("test", 10_000).unwrap());
        let file = ours.as_fd().try_clone_to_owned().unwrap();
        let theirs = Arc::new(Segment::from_file(file).unwrap());
        assert_eq!(theirs.length(), 10_000);
        let (a, b) = (ours.region(64, 100).unwrap(), theirs.region(0, 200).unwrap());
        a.word(4).unwrap().store(7, Ordering::Relaxed);
        assert_eq!(b.word(68).unwrap().load(Ordering::Relaxed), 7);
        assert!(a.word(100).is_none() && a.word(98).is_none() && a.word(usize::MAX - 3).is_none());
    }

    #[test]
    fn parts_beyond_the_end_are_refused() {
        let segment = Arc::new(Segment::create("test", 4096).unwrap());
        assert!(segment.region(0, 4096).is_some());
        assert!(segment.region(64, 4096).is_none());
        assert!(segment.region(usize::MAX & !63, 128).is_none());
        assert!(segment.region(32, 64).is_none(), "not at a cache line");
        assert!(matches!(Segment::create("test", 0), Err(SegmentError::Size(0))));
        assert!(matches!(Segment::create("test", usize::MAX), Err(SegmentError::Size(_))));
    }

    /// Bytes of it that this process can touch without a page fault.
    fn resident(segment: &Segment) -> usize {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let first = format!("{:x}-", segment.base.as_ptr() as usize);
        let mut lines = maps.lines().skip_while(|line| !line.starts_with(&first));
        let rss = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
        let kib: usize = rss.trim().strip_suffix(" kB").unwrap().parse().unwrap();
        kib * 1024
    }

    #[test]
    fn a_large_one_is_made_in_steps_and_is_whole() {
        let length = 3 * STEP + 5000;
        let mut growing = Growing::new("test", length).unwrap();
        let mut steps = 1;
        let segment = loop {
            match growing.step().unwrap() {
                Grown::Partly(rest) => growing = rest,
                Grown::Whole(segment) => break Arc::new(segment),
            }
            steps += 1;
        };
        assert_eq!((steps, segment.length()), (4, length));
        let blocks = fstat(&segment).unwrap().st_blocks as usize;
        assert!(blocks * 512 >= length, "every page is there: {blocks} blocks");
        let last = segment.region(3 * STEP + 4096, 64).unwrap();
        assert_eq!(last.word(0).unwrap().swap(7, Ordering::Relaxed), 0);
        assert_eq!(resident(&segment), length.next_multiple_of(PAGE), "and entered");
        assert!(ftruncate(&segment, 0).is_err(), "sealed");
        drop(last);
        let range = format!("{:x}-", segment.base.as_ptr() as usize);
        drop(segment);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        assert!(!maps.lines().any(|line| line.starts_with(&range) && line.contains("memfd:test")));
    }

    #[test]
    fn a_closed_segment_keeps_its_pages() {
        let ours = Arc::new(Segment::create("test", 8192).unwrap());
        let file = || ours.as_fd().try_clone_to_owned().unwrap();
        let theirs = Arc::new(Segment::from_file(file()).unwrap());
        let holes = || {
            let way = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&theirs, way, 0, 4096)
        };
        let word = |segment: &Arc<Segment>| {
            let region = segment.region(0, 64).unwrap();
            move |value| region.word(0).unwrap().swap(value, Ordering::Relaxed)
        };
        let (our_word, their_word) = (word(&ours), word(&theirs));
        our_word(7);
        assert!(holes().is_ok());
        assert_eq!(our_word(8), 0, "that page was new");
        ours.close().unwrap();
        assert!(holes().is_err());
        assert!(Segment::from_file(file()).is_err(), "too late to map it");
        assert_eq!((their_word(9), our_word(0)), (8, 9), "who has it has it");
        // One that has sealed it otherwise.
        let other = Segment::create("test", 4096).unwrap();
        fcntl_add_seals(&other, SealFlags::SEAL).unwrap();
        assert!(other.close().is_err());
    }

    #[test]
    fn a_forked_child_neither_has_the_memory_nor_unmaps_what_lies_there() {
        let segment = Segment::create("test", 4096).unwrap();
        let base = segment.base.as_ptr().cast::<libc::c_void>();
        let mapped = |page: *mut libc::c_void| {
            let mut resident = [0];
            // SAFETY: one page, one byte; the kernel only says whether it is mapped.
            unsafe { libc::mincore(page, 4096, resident.as_mut_ptr()) == 0 }
        };
        assert!(mapped(base));
        // SAFETY: the child makes system calls and drops a segment, no more.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let gone = !mapped(base);
            let flags = MapFlags::PRIVATE | MapFlags::FIXED;
            // SAFETY: nothing lies there any more.
            let other = unsafe { rustix::mm::mmap_anonymous(base, 4096, ProtFlags::READ, flags) };
            drop(segment);
            let right = gone && other == Ok(base) && mapped(base);
            // SAFETY: it ends here.
            unsafe { libc::_exit(if right { 7 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: the child just made.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 7));
        assert!(mapped(base));
    }

    #[test]
    fn a_file_that_can_shrink_is_refused() {
        let file = memfd_create("test", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, 4096).unwrap();
        assert!(matches!(Segment::from_file(file), Err(SegmentError::Unsealed)));
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        assert!(matches!(Segment::from_file(reader), Err(SegmentError::Unsealed)));
        // Ours can't be cut off by whom it is handed to.
        let segment = Segment::create("test", 4096).unwrap();
        assert!(ftruncate(&segment, 0).is_err());
    }
}
