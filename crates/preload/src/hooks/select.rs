//! `select` and `pselect`.

use std::ffi::{c_int, c_ulong};

use host::Errno;
use libc::{fd_set, pollfd, sigset_t, timespec, timeval};

use super::poll::{concerns_us, wait};
use super::sockets::meet_inherited;
use crate::clock::Alarm;
use crate::process::{self, Shared};
use crate::{errno, kinds, memory, real};

/// `select(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    count: c_int,
    reads: *mut fd_set,
    writes: *mut fd_set,
    others: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    let sets = Sets { count, all: [reads, writes, others] };
    // SAFETY: the caller's promise.
    let Some(shared) = (unsafe { sets.served(timeout) }) else {
        // SAFETY: the caller's promise.
        return unsafe { real::select(count, reads, writes, others, timeout) };
    };
    // SAFETY: null, or a time as the application says.
    let time = unsafe { timeout.as_ref() }.map(whole_seconds);
    let alarm = match Alarm::after_time(time.as_ref()) {
        Ok(alarm) => alarm,
        Err(error) => return errno::int(Err(error)),
    };
    // SAFETY: the caller's promise.
    let done = unsafe { sets.wait(shared, alarm, std::ptr::null()) };
    // Linux says how much time was left, however the call has ended, unless it cannot be written there
    // (`poll_select_finish`).
    if !timeout.is_null() && memory::writable(timeout, 1).is_ok() {
        let left = alarm.left();
        // SAFETY: as above.
        unsafe { timeout.write(timeval { tv_sec: left.tv_sec, tv_usec: left.tv_nsec / 1000 }) };
    }
    errno::int(done)
}

/// `pselect(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    count: c_int,
    reads: *mut fd_set,
    writes: *mut fd_set,
    others: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let sets = Sets { count, all: [reads, writes, others] };
    // SAFETY: the caller's promise.
    let Some(shared) = (unsafe { sets.served(timeout) }) else {
        // SAFETY: the caller's promise.
        return unsafe { real::pselect(count, reads, writes, others, timeout, mask) };
    };
    // SAFETY: null, or a time as the application says.
    let alarm = Alarm::after_time(unsafe { timeout.as_ref() });
    // SAFETY: the caller's promise.
    errno::int(alarm.and_then(|alarm| unsafe { sets.wait(shared, alarm, mask) }))
}

/// A time of `select`, whose microseconds may be seconds and more, unlike the nanoseconds of all other calls.
fn whole_seconds(time: &timeval) -> timespec {
    let tv_sec = time.tv_sec.saturating_add(time.tv_usec / 1_000_000);
    // Negative ones are no time.
    let rest = if time.tv_usec < 0 { time.tv_usec } else { time.tv_usec % 1_000_000 };
    timespec { tv_sec, tv_nsec: rest.saturating_mul(1000) }
}

/// What each set of `select` asks for, and which events are the answer.
const ASKED: [(i16, i16); 3] = [
    (libc::POLLIN, libc::POLLIN | libc::POLLHUP | libc::POLLERR),
    (libc::POLLOUT, libc::POLLOUT | libc::POLLERR),
    (libc::POLLPRI, libc::POLLPRI),
];

/// Bits of a set's word.
const WORD: usize = c_ulong::BITS as usize;

/// Where a number is in a set: sets may be longer than their type.
fn place(set: *mut fd_set, fd: c_int) -> (*mut c_ulong, c_ulong) {
    let at = fd.unsigned_abs() as usize;
    (set.cast::<c_ulong>().wrapping_add(at / WORD), 1 << (at % WORD))
}

/// The sets of a call: those to be read, written, and looked at for urgent data.
struct Sets {
    count: c_int,
    all: [*mut fd_set; 3],
}

impl Sets {
    /// Numbers that are looked at: none beyond the table of descriptors (`core_sys_select`), as in calls for as many as a
    /// process may ever have.
    fn numbers(&self) -> std::ops::Range<c_int> {
        0..self.count.clamp(0, kinds::room().max(libc::FD_SETSIZE as c_int))
    }

    /// Whether each set is there, or not given.
    fn are_there(&self) -> bool {
        let bytes = self.numbers().len().div_ceil(8);
        self.all.iter().all(|set| set.is_null() || memory::writable(*set, bytes).is_ok())
    }

    /// The state, where the call is not the kernel's alone, nor for the kernel to refuse.
    ///
    /// # Safety
    /// Each set is null, or as long as `count` says.
    unsafe fn served<T>(&self, timeout: *const T) -> Option<&'static Shared> {
        if !self.are_there() || !memory::is_given_or_null(timeout) {
            return None;
        }
        // SAFETY: the caller's promise.
        unsafe {
            meet_inherited(|| self.all_numbers());
            process::for_files(|| self.all_numbers()).filter(|_| self.has_ours())
        }
    }

    /// # Safety
    /// As for [`served`](Self::served).
    unsafe fn has(&self, set: usize, fd: c_int) -> bool {
        let set = self.all.get(set).copied().unwrap_or(std::ptr::null_mut());
        let (word, bit) = place(set, fd);
        // SAFETY: the caller's promise, and one of its numbers.
        !set.is_null() && unsafe { word.read() } & bit != 0
    }

    /// # Safety
    /// As for [`served`](Self::served).
    unsafe fn all_numbers(&self) -> impl Iterator<Item = c_int> {
        // SAFETY: the caller's promise.
        self.numbers().filter(|fd| (0..3).any(|set| unsafe { self.has(set, *fd) }))
    }

    /// # Safety
    /// As for [`served`](Self::served).
    unsafe fn has_ours(&self) -> bool {
        // SAFETY: the caller's promise.
        self.numbers().any(|fd| concerns_us(fd) && (0..3).any(|set| unsafe { self.has(set, fd) }))
    }

    /// # Safety
    /// As for [`served`](Self::served).
    unsafe fn wait(
        &self,
        shared: &Shared,
        alarm: Alarm,
        mask: *const sigset_t,
    ) -> Result<c_int, Errno> {
        if self.count < 0 {
            return Err(Errno::INVAL);
        }
        let mut files = Vec::new();
        for fd in self.numbers() {
            let mut events = 0;
            for (set, (asked, _)) in ASKED.iter().enumerate() {
                // SAFETY: the caller's promise.
                if unsafe { self.has(set, fd) } {
                    events |= asked;
                }
            }
            if events != 0 {
                files.push(pollfd { fd, events, revents: 0 });
            }
        }
        wait(shared, &mut files, alarm, mask)?;
        if files.iter().any(|file| file.revents & libc::POLLNVAL != 0) {
            return Err(Errno::BADF);
        }
        let mut count = 0;
        for (set, (asked, answer)) in ASKED.iter().enumerate() {
            let Some(set) = self.all.get(set).copied().filter(|set| !set.is_null()) else {
                continue;
            };
            for file in &files {
                if file.events & asked == 0 {
                    continue;
                }
                if file.revents & answer == 0 {
                    let (word, bit) = place(set, file.fd);
                    // SAFETY: the caller's promise, and one of its numbers.
                    unsafe { word.write(word.read() & !bit) };
                } else {
                    count += 1;
                }
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_may_be_more_than_a_second() {
        let whole = |tv_sec, tv_usec| {
            let time = whole_seconds(&timeval { tv_sec, tv_usec });
            (time.tv_sec, time.tv_nsec)
        };
        assert_eq!(whole(0, 3_000_000), (3, 0));
        assert_eq!(whole(1, 1_000_001), (2, 1000));
        assert!(whole(5, -2_000_000).1 < 0, "no time");
    }

    #[test]
    fn sets_are_as_long_as_the_table_of_descriptors() {
        // A number that no test opens.
        let fd = 3000;
        kinds::set(fd, kinds::Kind::Internal);
        kinds::set(fd, kinds::Kind::Kernel);
        let mut bits: [c_ulong; 64] = [0; 64];
        bits[46] = 1 << 56;
        let set = bits.as_mut_ptr().cast::<fd_set>();
        let sets = Sets { count: fd + 1, all: [std::ptr::null_mut(), set, std::ptr::null_mut()] };
        // SAFETY: a set of 4096 bits.
        let (numbers, has) = unsafe { (sets.all_numbers().collect::<Vec<_>>(), sets.has(0, fd)) };
        assert_eq!((numbers, has), (vec![fd], false));
    }
}
