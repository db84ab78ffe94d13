//! Many descriptors closed at once, and the table of all.

use std::ffi::{c_int, c_uint};

use host::Errno;

use super::close;
use crate::process::{self, Shared};
use crate::{caretaker, errno, kinds, real};

/// `CLOSE_RANGE_UNSHARE` and `CLOSE_RANGE_CLOEXEC` (`uapi/linux/close_range.h`).
const UNSHARE: c_int = 2;
const CLOSE_ON_EXEC: c_int = 4;

/// `close_range(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let shared = process::current();
    let flags = match without_unsharing(shared, flags, UNSHARE) {
        Ok(flags) => flags,
        Err(error) => return errno::int(Err(error)),
    };
    let ours: Vec<c_int> = kinds::all()
        .filter(|(fd, _)| (first..=last).contains(&fd.unsigned_abs()))
        .map(|(fd, _)| fd)
        .collect();
    let (unshares, how) = (flags & UNSHARE != 0, flags & !UNSHARE);
    if let (Some(shared), CLOSE_ON_EXEC) = (shared, how) {
        let mut state = shared.lock();
        ours.iter().for_each(|fd| state.place(*fd).close_on_exec = true);
    }
    if ours.is_empty() || how != 0 {
        // SAFETY: the caller's promise.
        return unsafe { real::close_range(first, last, flags) };
    }
    if unshares {
        // The thread has a table of its own from here on, in which this library's files stay open too.
        // SAFETY: no memory is involved.
        let done = unsafe { real::unshare(libc::CLONE_FILES) };
        if done < 0 {
            return done;
        }
    }
    let mut from = first;
    for fd in ours {
        let at = fd.unsigned_abs();
        if at > from {
            // SAFETY: the caller's promise; none of them is ours.
            unsafe { real::close_range(from, at - 1, 0) };
        }
        // SAFETY: the caller's promise.
        unsafe { close(fd) };
        from = at + 1;
    }
    if from <= last {
        // SAFETY: the caller's promise; none of them is ours.
        return unsafe { real::close_range(from, last, 0) };
    }
    0
}

/// `unshare(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unshare(flags: c_int) -> c_int {
    match without_unsharing(process::current(), flags, libc::CLONE_FILES) {
        // SAFETY: the caller's promise.
        Ok(flags) => unsafe { real::unshare(flags) },
        Err(error) => errno::int(Err(error)),
    }
}

/// The flags of a call, without the one by which the thread gets a table of descriptors of its own (`unshares`): where there is a
/// state, a number must mean the same file to all threads, of which the caretaker is one. A thread that is the application's only
/// one takes nothing from others.
///
/// # Errors
/// `ENOSYS`, as before Linux 5.9: the application has other threads, whose descriptors must stay.
fn without_unsharing(
    shared: Option<&Shared>,
    flags: c_int,
    unshares: c_int,
) -> Result<c_int, Errno> {
    if shared.is_none() || flags & unshares == 0 {
        return Ok(flags);
    }
    if caretaker::minds_one_thread() { Ok(flags & !unshares) } else { Err(Errno(libc::ENOSYS)) }
}

/// `closefrom(3)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closefrom(first: c_int) {
    // SAFETY: the caller's promise.
    unsafe { close_range(first.max(0).unsigned_abs(), c_uint::MAX, 0) };
}
