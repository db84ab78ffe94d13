//! Whether events of the kernel's files wait at an epoll instance, read from memory: a poll that goes on (`io_uring`, Linux 5.13)
//! posts a completion to a ring mapped here whenever something new has happened. `epoll_wait` without waiting would be a system
//! call each time.

use std::ffi::c_int;
use std::os::fd::AsFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io_uring::{
    IORING_OFF_SQ_RING, IORING_OFF_SQES, IoringCqeFlags, IoringEnterFlags, IoringFeatureFlags,
    IoringOp, IoringPollFlags, io_uring_cqe, io_uring_enter, io_uring_params, io_uring_setup,
    io_uring_sqe, io_uring_user_data, len_union, op_flags_union,
};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use crate::internal::Hidden;

/// Requests that a ring has room for: one poll, and once more when it has ended.
const ENTRIES: u32 = 2;
/// Polls that the kernel has ended by themselves, after which it is not asked again.
const MOST_ENDED: u32 = 64;

/// Watches one epoll instance.
#[derive(Debug)]
pub(crate) struct KernelWatch {
    ring: Hidden,
    /// Both rings, and the requests.
    rings: Map,
    requests: Map,
    places: Places,
    /// Completions that were looked at, and requests that were made.
    seen: u32,
    made: u32,
    ended: u32,
    /// Events may wait.
    pending: bool,
}

/// Where things lie in the rings: bytes; and how many completions and requests they hold.
#[derive(Debug, Clone, Copy)]
struct Places {
    head: u32,
    tail: u32,
    completions: u32,
    completion_count: u32,
    requests: u32,
    request_tail: u32,
    request_count: u32,
}

impl KernelWatch {
    /// Begins to watch. `None`: the kernel has no such rings, or does not let this process have one.
    pub(crate) fn new(epoll: c_int) -> Option<Self> {
        let mut params = io_uring_params::default();
        // SAFETY: parameters that ask for nothing special.
        let ring = Hidden::of(unsafe { io_uring_setup(ENTRIES, &mut params) }.ok()?);
        if !params.features.contains(IoringFeatureFlags::SINGLE_MMAP) {
            return None;
        }
        let completions =
            params.cq_off.cqes as usize + params.cq_entries as usize * size_of::<io_uring_cqe>();
        let submissions =
            params.sq_off.array as usize + params.sq_entries as usize * size_of::<u32>();
        let rings = Map::of(&ring, completions.max(submissions), IORING_OFF_SQ_RING)?;
        let requests = params.sq_entries as usize * size_of::<io_uring_sqe>();
        let requests = Map::of(&ring, requests, IORING_OFF_SQES)?;
        let places = Places {
            head: params.cq_off.head,
            tail: params.cq_off.tail,
            completions: params.cq_off.cqes,
            completion_count: params.cq_entries,
            requests: params.sq_off.array,
            request_tail: params.sq_off.tail,
            request_count: params.sq_entries,
        };
        let (seen, made, ended) = (0, 0, 0);
        let mut watch = Self { ring, rings, requests, places, seen, made, ended, pending: true };
        watch.poll(epoll).then_some(watch)
    }

    /// Whether events may wait: no system call, unless the poll has ended.
    #[inline]
    pub(crate) fn has_events(&mut self, epoll: c_int) -> bool {
        if self.has_news() {
            self.take(epoll);
        }
        self.pending
    }

    /// The same, for who will ask again before sleeping.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.pending || self.tail() != self.seen
    }

    /// The kernel was asked: whether it had events. As long as it has, there may be more, of which it says nothing.
    pub(crate) fn asked(&mut self, had_events: bool) {
        self.pending = had_events;
    }

    fn tail(&self) -> u32 {
        // Acquire: with the tail come the completions.
        self.rings.word(self.places.tail).load(Ordering::Acquire)
    }

    fn take(&mut self, epoll: c_int) {
        let tail = self.tail();
        let mut goes_on = true;
        while self.seen != tail {
            let place = self.seen & (self.places.completion_count - 1);
            goes_on &=
                self.rings.flags_of(self.places.completions, place).contains(IoringCqeFlags::MORE);
            self.seen = self.seen.wrapping_add(1);
            self.pending = true;
        }
        // Release: they were read.
        self.rings.word(self.places.head).store(self.seen, Ordering::Release);
        if !goes_on {
            self.ended += 1;
            if self.ended >= MOST_ENDED || !self.poll(epoll) {
                // From now on the kernel is asked each time.
                self.ended = MOST_ENDED;
            }
        }
        self.pending |= self.ended >= MOST_ENDED;
    }

    /// Whether this watch says nothing any more.
    pub(crate) fn is_over(&self) -> bool {
        self.ended >= MOST_ENDED
    }

    /// Asks for a poll that goes on.
    fn poll(&mut self, epoll: c_int) -> bool {
        let request = io_uring_sqe {
            opcode: IoringOp::PollAdd,
            fd: epoll,
            len: len_union { poll_flags: IoringPollFlags::ADD_MULTI },
            op_flags: op_flags_union { poll32_events: libc::POLLIN as u32 },
            user_data: io_uring_user_data::from_u64(1),
            ..io_uring_sqe::default()
        };
        let place = self.made & (self.places.request_count - 1);
        self.requests.put(place, request);
        self.rings.word(self.places.requests + 4 * place).store(place, Ordering::Relaxed);
        self.made = self.made.wrapping_add(1);
        // Release: with the tail goes the request.
        self.rings.word(self.places.request_tail).store(self.made, Ordering::Release);
        // SAFETY: the request names nothing but an epoll instance.
        let done = unsafe { io_uring_enter(self.ring.as_fd(), 1, 0, IoringEnterFlags::empty()) };
        done == Ok(1)
    }
}

/// Memory that is shared with the kernel; a forked child has none of it.
#[derive(Debug)]
struct Map {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: memory of the process, whichever thread looks at it; what the kernel writes is only ever seen as atomics, or behind
// one that says that it was written.
unsafe impl Send for Map {}

impl Map {
    fn of(ring: &Hidden, length: usize, offset: u64) -> Option<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a mapping of its own, wherever the kernel puts it.
        let base = unsafe { mmap(null_mut(), length, protection, flags, ring.as_fd(), offset) };
        let base = NonNull::new(base.ok()?.cast::<u8>())?;
        let map = Self { base, length };
        // SAFETY: the mapping just made.
        unsafe { madvise(base.as_ptr().cast(), length, Advice::LinuxDontFork) }.ok()?;
        Some(map)
    }

    /// The address of `size` bytes, which lie within: the kernel has said where.
    fn at(&self, offset: usize, size: usize) -> *mut u8 {
        debug_assert!(offset + size <= self.length);
        let offset = offset.min(self.length.saturating_sub(size));
        // SAFETY: within the mapping, as just made sure of, which `self` keeps.
        unsafe { self.base.add(offset) }.as_ptr()
    }

    fn word(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: a word within the mapping, aligned, as the kernel has all of them.
        unsafe { &*self.at(offset as usize, size_of::<u32>()).cast::<AtomicU32>() }
    }

    /// The flags of a completion that the kernel has posted.
    fn flags_of(&self, completions: u32, place: u32) -> IoringCqeFlags {
        let offset = completions as usize + place as usize * size_of::<io_uring_cqe>();
        let completion = self.at(offset, size_of::<io_uring_cqe>()).cast::<io_uring_cqe>();
        // SAFETY: behind the tail, so the kernel does not write it any more before the head has passed.
        unsafe { (*completion).flags }
    }

    fn put(&mut self, place: u32, request: io_uring_sqe) {
        let size = size_of::<io_uring_sqe>();
        let at = self.at(place as usize * size, size).cast::<io_uring_sqe>();
        // SAFETY: a place that the kernel does not look at before the tail has passed it.
        unsafe { at.write(request) };
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the mapping that was made; nobody else has it, as borrows of it are of `self`. In a forked child, which has no
        // such memory, the state is never dropped.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::epoll::{epoll_create1, epoll_ctl};

    /// As `epoll_wait` without waiting says.
    fn waits(epoll: c_int) -> bool {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: room for one event.
        unsafe { crate::real::epoll_pwait(epoll, &raw mut event, 1, 0, std::ptr::null()) > 0 }
    }

    #[test]
    fn events_are_seen_in_memory_as_the_kernel_tells_them() {
        // SAFETY: events that live until the calls return.
        let (epoll, file) = unsafe {
            let (epoll, file) = (epoll_create1(0), libc::eventfd(0, libc::EFD_NONBLOCK));
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 7 };
            assert_eq!(epoll_ctl(epoll, libc::EPOLL_CTL_ADD, file, &raw mut event), 0);
            (epoll, file)
        };
        let Some(mut watch) = KernelWatch::new(epoll) else {
            println!("skip: no io_uring here");
            return;
        };
        assert!(watch.has_events(epoll), "nobody has looked yet");
        watch.asked(waits(epoll));
        for _ in 0..1000 {
            assert!(!watch.has_events(epoll) && !waits(epoll));
            // SAFETY: no memory is involved.
            unsafe { libc::eventfd_write(file, 1) };
            // Posted on the way back from that call.
            assert!(watch.has_events(epoll), "not seen");
            watch.asked(waits(epoll));
            assert!(watch.has_events(epoll), "as long as it was not read, it is there");
            let mut count = 0;
            // SAFETY: room for the count.
            unsafe { libc::eventfd_read(file, &raw mut count) };
            watch.asked(waits(epoll));
        }
        // SAFETY: descriptors of this test.
        unsafe { (crate::real::close(file), crate::real::close(epoll)) };
    }
}
