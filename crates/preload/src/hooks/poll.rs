//! `poll` and `ppoll`.

use std::ffi::c_int;
use std::slice;

use host::{Errno, Mask};
use libc::{epoll_event, nfds_t, pollfd, sigset_t, timespec};

use super::datagrams;
use super::descriptors::is_within_limit;
use super::epoll::mask as bits;
use super::sockets::meet_inherited;
use crate::clock::Alarm;
use crate::kinds::{self, Kind};
use crate::process::{self, Shared};
use crate::sleeping::{MOMENT, wait_for};
use crate::state::State;
use crate::{call, errno, memory, real};

/// Files of one call at most: more than a process can have.
const MOST: usize = 1 << 20;
/// So many files may be there whatever the limit is: asking for it costs a system call.
const FEW: usize = 64;
/// What `poll` reports whether it was asked for or not.
const ALWAYS: Mask = Mask(Mask::ERR.0 | Mask::HUP.0);

/// `poll(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(files: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { poll_for(files, count, timeout) }
}

/// # Safety
/// As for `poll`.
pub(super) unsafe fn poll_for(files: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    let time = timespec {
        tv_sec: i64::from(timeout) / 1000,
        tv_nsec: i64::from(timeout) % 1000 * 1_000_000,
    };
    let time = if timeout < 0 { std::ptr::null() } else { &raw const time };
    // SAFETY: the caller's promise.
    unsafe { poll_until(files, count, time, std::ptr::null()) }
}

/// `poll(2)`, as programs that check their buffers call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __poll_chk(
    files: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
    _: libc::size_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { poll(files, count, timeout) }
}

/// `ppoll(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    files: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { poll_until(files, count, timeout, mask) }
}

/// # Safety
/// As for `ppoll`.
unsafe fn poll_until(
    files: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let length = usize::try_from(count).unwrap_or(0);
    // The kernel says what is wrong with what is none of ours, and with more files than there may be.
    let is_short = length <= FEW;
    let fits = is_short || length <= MOST && is_within_limit(length as c_int - 1);
    let is_list = fits && memory::writable(files, length).is_ok();
    let is_time = memory::is_given_or_null(timeout);
    let list = if length == 0 || !is_list {
        &mut []
    } else {
        // SAFETY: so many files, as the application says.
        unsafe { slice::from_raw_parts_mut(files, length) }
    };
    meet_inherited(|| list.iter().map(|file| file.fd));
    let shared = process::for_files(|| list.iter().map(|file| file.fd));
    if let Some(shared) = shared.filter(|_| is_list && is_time) {
        // SAFETY: null, or a time as the application says.
        let waits =
            unsafe { timeout.as_ref() }.is_none_or(|time| time.tv_sec != 0 || time.tv_nsec != 0);
        // Who waits, for whatever, runs the stack meanwhile.
        if waits || list.iter().any(|file| concerns_us(file.fd)) {
            // SAFETY: null, or a time as the application says.
            let alarm = Alarm::after_time(unsafe { timeout.as_ref() });
            return errno::int(alarm.and_then(|alarm| wait(shared, list, alarm, mask)));
        }
    }
    // SAFETY: the caller's promise.
    unsafe { real::ppoll(files, count, timeout, mask) }
}

/// `ppoll(2)`, as programs that check their buffers call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __ppoll_chk(
    files: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    _: libc::size_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { ppoll(files, count, timeout, mask) }
}

fn is_ours(fd: c_int) -> bool {
    matches!(process::known(fd), Kind::Session | Kind::Listener | Kind::Datagrams | Kind::Epoll)
}

/// Whether a call about it has to be looked at here.
pub(super) fn concerns_us(fd: c_int) -> bool {
    is_ours(fd) || !process::is_open(fd)
}

/// Who says what a descriptor is ready for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Kernels,
    Stacks,
    Both,
}

/// Who says it of `fd`; the application waits for it. `untold`: the daemon is to be told that it takes connections there.
fn whose(state: &mut State, fd: c_int, untold: &mut bool) -> Whose {
    match process::known(fd) {
        Kind::Session => Whose::Stacks,
        Kind::Listener => {
            *untold |= state.adopt(fd).is_ok() && state.serve(fd);
            Whose::Both
        }
        Kind::Epoll => {
            let id = state.id_of(fd);
            state.waiters.nest(fd, id);
            Whose::Both
        }
        Kind::Datagrams if state.datagrams(fd).is_some() => {
            state.accompany(fd);
            Whose::Stacks
        }
        _ => Whose::Kernels,
    }
}

/// What sessions say. Gives how many have something to say.
fn look(state: &mut State, list: &mut [pollfd], owners: &[Whose]) -> c_int {
    let mut count = 0;
    for (file, owner) in list.iter_mut().zip(owners) {
        if *owner != Whose::Kernels {
            let wanted = bits(file.events) | ALWAYS;
            file.revents |= (state.mask(file.fd) & wanted).0 as i16;
        }
        count += c_int::from(file.revents != 0);
    }
    count
}

/// Waits for files of either kind. Gives how many have events.
pub(super) fn wait(
    shared: &Shared,
    list: &mut [pollfd],
    alarm: Alarm,
    mask: *const sigset_t,
) -> Result<c_int, Errno> {
    call::begins();
    loop {
        let count = wait_once(shared, list, alarm, mask)?;
        if count > 0 || alarm.is_over() || !list.iter().any(|file| is_elsewhere(file.fd)) {
            return Ok(count);
        }
        // Another process has taken one of them meanwhile: it has it for a moment.
        std::thread::sleep(MOMENT);
        process::for_files(|| list.iter().map(|file| file.fd));
    }
}

fn is_elsewhere(fd: c_int) -> bool {
    kinds::any_elsewhere() && kinds::get(fd) == Kind::Elsewhere
}

/// Whether another process has taken one of those that were here.
fn moved(list: &[pollfd], owners: &[Whose]) -> bool {
    let mut here = list.iter().zip(owners).filter(|(_, owner)| **owner == Whose::Stacks);
    here.any(|(file, _)| is_elsewhere(file.fd))
}

fn wait_once(
    shared: &Shared,
    list: &mut [pollfd],
    alarm: Alarm,
    mask: *const sigset_t,
) -> Result<c_int, Errno> {
    let mut state = shared.lock();
    for file in list.iter().filter(|file| process::known(file.fd) == Kind::Datagrams) {
        state = datagrams::adopt(shared, state, file.fd).0;
    }
    let waiter = state.waiters.take();
    let mut untold = false;
    let owner = |file: &pollfd| whose(&mut state, file.fd, &mut untold);
    let owners: Vec<Whose> = list.iter().map(owner).collect();
    let known = |file: &pollfd| {
        // Any number that nobody has: the kernel says so of it.
        if process::is_open(file.fd) { *file } else { pollfd { fd: c_int::MAX, ..*file } }
    };
    let theirs = list.iter().zip(&owners).filter(|(_, owner)| **owner != Whose::Stacks);
    let mut kernels: Vec<pollfd> = theirs.map(|(file, _)| known(file)).collect();
    let mut watched: usize = 0;
    for (file, owner) in list.iter_mut().zip(&owners) {
        file.revents = 0;
        if *owner == Whose::Kernels {
            continue;
        }
        let (id, fd) = (state.id_of(file.fd), file.fd);
        let event = epoll_event { events: (bits(file.events) | ALWAYS).0, u64: 0 };
        let now = state.mask(fd);
        // The same descriptor may be there twice: one watch is enough for both.
        if state.waiters.add(waiter, (id, fd), event, now).is_err() {
            let all = epoll_event { events: Mask::ALL.0, u64: 0 };
            let _ = state.waiters.change(waiter, (id, fd), all, now);
        } else {
            watched += 1;
        }
    }
    if untold {
        state = state.tell(shared);
    }
    let waited = wait_for(shared, state, waiter, (&mut kernels, mask), alarm, |state| {
        state.waiters.may_be_ready(waiter) && look(state, &mut list.to_vec(), &owners) > 0
            || kinds::any_elsewhere() && moved(list, &owners)
    });
    let (mut state, waited) = waited;
    for (file, owner) in list.iter().zip(&owners) {
        if *owner != Whose::Kernels {
            let id = state.id_of(file.fd);
            watched -= usize::from(state.waiters.remove(waiter, (id, file.fd)).is_ok());
        }
    }
    if watched > 0 {
        // Another thread has closed a descriptor, and what it stood for may go on.
        state.waiters.forget(waiter);
    }
    state.waiters.release(waiter);
    let mut kernels = kernels.into_iter();
    for (file, owner) in list.iter_mut().zip(&owners) {
        if *owner != Whose::Stacks {
            file.revents = kernels.next().map_or(0, |found| found.revents);
        }
    }
    let count = look(&mut state, list, &owners);
    match waited {
        Err(error) if count == 0 => Err(error),
        _ => Ok(count),
    }
}
