//! Whether memory that the application names is there: a call about memory that is not says `EFAULT`, where the stack
//! would be killed as it copies.
//!
//! The first page of what a call reads or writes is looked up in a table of pages that were found good before; only a
//! page that is not in it costs a system call. Memory that was good once and is no more kills the program yet, and so
//! does a buffer that begins in good memory and ends outside of it.

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use host::Errno;

use crate::real;

/// Bytes of a page at least: where pages are larger, several entries stand for one.
const PAGE_BITS: u32 = 12;
/// Entries of the table.
const PLACES: usize = 4096;
/// `MADV_POPULATE_WRITE` (Linux 5.14).
const POPULATE_WRITE: c_int = 23;
/// What `sigprocmask` cannot do, and bytes of the kernel's set of signals.
const NO_SUCH_WAY: c_long = 99;
const SET: c_long = 8;

/// Numbers of pages, times two, plus one where they can be written.
static GOOD: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
/// Whether the kernel can be asked: not known, yes, no.
static ASKABLE: AtomicU8 = AtomicU8::new(0);
const YES: u8 = 1;
const NO: u8 = 2;

/// Memory that a call reads.
///
/// # Errors
/// [`Errno::FAULT`]: it can't.
#[inline]
pub(crate) fn readable<T>(at: *const T, bytes: usize) -> Result<(), Errno> {
    if bytes == 0 { Ok(()) } else { check(at.addr(), false) }
}

/// Memory that a call writes.
///
/// # Errors
/// [`Errno::FAULT`]: it can't.
#[inline]
pub(crate) fn writable<T>(at: *mut T, bytes: usize) -> Result<(), Errno> {
    if bytes == 0 { Ok(()) } else { check(at.addr(), true) }
}

/// Whether what a call reads is there, or is not given at all.
#[inline]
pub(crate) fn is_given_or_null<T>(at: *const T) -> bool {
    at.is_null() || readable(at, size_of::<T>()).is_ok()
}

#[inline]
fn check(at: usize, writes: bool) -> Result<(), Errno> {
    let page = (at >> PAGE_BITS) as u64;
    let known = entry(page).load(Ordering::Relaxed);
    if known == page << 1 | 1 || known == page << 1 && known != 0 && !writes {
        return Ok(());
    }
    ask(page, writes)
}

fn entry(page: u64) -> &'static AtomicU64 {
    #[expect(clippy::indexing_slicing, reason = "no more than there are")]
    &GOOD[page as usize % PLACES]
}

#[cold]
fn ask(page: u64, writes: bool) -> Result<(), Errno> {
    if page == 0 {
        // Nothing, to the call below.
        return Err(Errno::FAULT);
    }
    let errno = crate::errno::get();
    let at = std::ptr::without_provenance_mut((page as usize) << PAGE_BITS);
    let is_there = can_be_read(at) && (!writes || can_be_written(at) || !is_askable());
    crate::errno::set(errno);
    if !is_there {
        return Err(Errno::FAULT);
    }
    entry(page).store(page << 1 | u64::from(writes), Ordering::Relaxed);
    Ok(())
}

/// The kernel reads there, and then refuses what the call asks for. A stack grows by it, as by any access.
fn can_be_read(at: *mut c_void) -> bool {
    let (number, nothing) = (libc::SYS_rt_sigprocmask, 0);
    // SAFETY: the kernel reads a set of signals; what it is to do with it is not known to it.
    unsafe { real::syscall(number, NO_SUCH_WAY, at.addr() as c_long, nothing, SET, 0, 0) };
    crate::errno::get() != Errno::FAULT
}

/// Of memory that can be read.
fn can_be_written(at: *mut c_void) -> bool {
    // SAFETY: no memory changes but for being there.
    let done = unsafe { libc::madvise(at, 1, POPULATE_WRITE) };
    // Other errors say nothing of the page.
    done == 0 || crate::errno::get() != Errno::INVAL
}

/// Whether the kernel knows the question; where pages are larger than expected, it refuses it too.
fn is_askable() -> bool {
    let known = ASKABLE.load(Ordering::Relaxed);
    if known != 0 {
        return known == YES;
    }
    let mut own = 0_u64;
    let page = (&raw mut own).map_addr(|at| at >> PAGE_BITS << PAGE_BITS);
    let is_known = can_be_written(page.cast());
    ASKABLE.store(if is_known { YES } else { NO }, Ordering::Relaxed);
    is_known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_found() {
        let mut own = [0_u8; 16];
        assert_eq!(readable(own.as_ptr(), own.len()), Ok(()));
        assert_eq!(writable(own.as_mut_ptr(), own.len()), Ok(()));
        for bad in [0, 1, 8, 4095, 1 << 46, usize::MAX, usize::MAX / 2 + 1] {
            let at = std::ptr::without_provenance_mut::<u8>(bad);
            assert_eq!(readable(at, 1), Err(Errno::FAULT), "{bad:#x}");
            assert_eq!(writable(at, 1), Err(Errno::FAULT), "{bad:#x}");
            assert_eq!(writable(at, 0), Ok(()), "nothing is written");
            assert_eq!(is_given_or_null(at), bad == 0, "{bad:#x}");
        }
    }

    #[test]
    fn what_can_only_be_read_cannot_be_written() {
        // SAFETY: a page of its own.
        let page = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, flags, -1, 0)
        };
        for _ in 0..2 {
            assert_eq!(readable(page, 1), Ok(()));
            assert_eq!(writable(page, 1), Err(Errno::FAULT));
        }
        // SAFETY: the same page.
        unsafe { libc::mprotect(page, 4096, libc::PROT_NONE) };
        let other = page.wrapping_byte_add(PLACES << PAGE_BITS);
        let _ = readable(other, 1);
        assert_eq!(writable(page, 1), Err(Errno::FAULT));
    }
}
