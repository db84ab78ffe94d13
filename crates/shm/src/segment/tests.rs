//! Segments made, shared, closed, forked and refused.

use rustix::io::Errno;

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
fn an_immutable_segment_keeps_its_pages_without_a_seal() {
    let file = memfd_create("able", MemfdFlags::CLOEXEC).unwrap();
    let able = ioctl_setflags(&file, IFlags::IMMUTABLE).is_ok();
    let ours = Arc::new(Segment::create("test", 8192).unwrap());
    assert_eq!(ours.make_immutable().is_ok(), able);
    if !able {
        return;
    }
    let theirs = ours.as_fd().try_clone_to_owned().unwrap();
    let theirs = Arc::new(Segment::from_file(theirs).unwrap());
    let way = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(fallocate(&theirs, way, 0, 4096), Err(Errno::PERM));
    // SAFETY: a page of a mapping that lives on, which the kernel may empty: atomics alone look at it.
    let removed = unsafe { madvise(theirs.base.as_ptr().cast(), 4096, Advice::LinuxRemove) };
    assert_eq!(removed, Err(Errno::PERM));
    let word = |segment: &Arc<Segment>, value| {
        let region = segment.region(0, 64).unwrap();
        region.word(0).unwrap().swap(value, Ordering::Relaxed)
    };
    assert_eq!((word(&ours, 7), word(&theirs, 8), word(&ours, 9)), (0, 7, 8));
    // The lock of the file, which another process may hold, is not taken any more.
    theirs.close().unwrap();
    ours.close().unwrap();
    assert!(!fcntl_get_seals(&ours).unwrap().contains(SealFlags::FUTURE_WRITE));
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
