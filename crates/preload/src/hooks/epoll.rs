//! `epoll`: an instance is the kernel's, for the kernel's files; what it watches of sessions is kept in memory, so that
//! registering one is no system call.

use std::ffi::c_int;
use std::ops::ControlFlow::{self, Break, Continue};
use std::slice;

use host::{Errno, Mask};
use libc::{epoll_event, pollfd, sigset_t};

use super::datagrams;
use crate::clock::{self, Alarm};
use crate::kinds::{self, Kind};
use crate::process::{self, Shared};
use crate::sleeping::{Wait, poll, wait_while};
use crate::state::State;
use crate::{arrival, call, errno, memory, real, uncancelled};

/// Events of one call at most (`EP_MAX_EVENTS`); the kernel refuses more.
const MOST: c_int = c_int::MAX / size_of::<epoll_event>() as c_int;

/// What is ready is not known yet: it may be all.
const ANYTHING: Mask = Mask(u32::MAX);

/// What may be asked for together with `EPOLLEXCLUSIVE` (`EPOLLEXCLUSIVE_OK_BITS`).
const EXCLUSIVE: u32 = (libc::EPOLLIN
    | libc::EPOLLOUT
    | libc::EPOLLERR
    | libc::EPOLLHUP
    | libc::EPOLLWAKEUP
    | libc::EPOLLET
    | libc::EPOLLEXCLUSIVE) as u32;

/// `epoll_create1(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: no memory is involved.
    let fd = process::undisturbed(|| unsafe { real::epoll_create1(flags) });
    if fd >= 0 {
        kinds::set_epoll(fd);
    }
    fd
}

/// `epoll_create(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_create(size: c_int) -> c_int {
    if size <= 0 {
        errno::set(Errno::INVAL);
        return -1;
    }
    // SAFETY: no memory is involved.
    unsafe { epoll_create1(0) }
}

/// `epoll_ctl(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_ctl(
    epoll: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    if let Some(refused) = process::refuse(fd) {
        return refused;
    }
    if operation != libc::EPOLL_CTL_DEL && memory::readable(event, 1).is_err() {
        errno::set(Errno::FAULT);
        return -1;
    }
    // What is watched no more need not come here.
    let ends = operation == libc::EPOLL_CTL_DEL;
    let mut kind = match if ends { process::known(fd) } else { process::kind(fd) } {
        Kind::Elsewhere => Kind::Session,
        kind => kind,
    };
    if operation == libc::EPOLL_CTL_ADD && kind == Kind::Kernel {
        kind = super::sockets::inherited(fd);
    }
    let listens = kind == Kind::Listener;
    let is_datagrams = kind == Kind::Datagrams;
    let is_epoll = kind == Kind::Epoll && kinds::get(epoll) == Kind::Epoll;
    // One that is watched before the program has a socket may get some yet.
    if is_epoll && process::attached().is_none() {
        // SAFETY: the caller's promise.
        return unsafe { real::epoll_ctl(epoll, operation, fd, event) };
    }
    let ours = kind == Kind::Session || listens || is_epoll || is_datagrams && !is_the_kernels(fd);
    let has_event = operation != libc::EPOLL_CTL_DEL;
    // SAFETY: null, or an event as the application says.
    let wanted = if has_event { unsafe { event.as_ref() }.copied() } else { None };
    let shared = match ours.then(process::attached).flatten() {
        Some(shared) => shared,
        None => {
            // SAFETY: the caller's promise.
            let done = unsafe { real::epoll_ctl(epoll, operation, fd, event) };
            if done == 0 && kind == Kind::Fresh {
                // It may be connected through the stack yet.
                if let Some(shared) = process::attached() {
                    shared.lock().note_early((epoll, operation), fd, wanted);
                }
            }
            return done;
        }
    };
    if listens || is_epoll {
        // Local clients come by the kernel, as do other files.
        // SAFETY: the caller's promise.
        let done = unsafe { real::epoll_ctl(epoll, operation, fd, event) };
        if done < 0 {
            return done;
        }
    }
    let mut state = shared.lock();
    if listens && state.adopt(fd).is_err() {
        return 0;
    }
    if is_datagrams && operation == libc::EPOLL_CTL_ADD {
        state = datagrams::watched(shared, state, fd);
    }
    if is_datagrams && state.datagrams(fd).is_none() {
        drop(state);
        // SAFETY: the caller's promise.
        return unsafe { real::epoll_ctl(epoll, operation, fd, event) };
    }
    if kinds::get(epoll) != Kind::Epoll {
        errno::set(if epoll == fd { Errno::INVAL } else { not_epoll(epoll) });
        return -1;
    }
    if is_epoll {
        let id = state.id_of(fd);
        state.waiters.nest(fd, id);
        let _ = control(&mut state, (epoll, operation), fd, wanted);
        return 0;
    }
    let done = control(&mut state, (epoll, operation), fd, wanted);
    if listens {
        if operation == libc::EPOLL_CTL_DEL {
            state.rest(fd);
        } else {
            let (waiter, id) = (state.waiters.epoll(epoll), state.id_of(fd));
            state.waiters.leave_end_to_kernel(waiter, (id, fd));
            state.serve(fd);
        }
        drop(state.tell(shared));
        return 0;
    }
    if is_datagrams && done == Err(Errno::NOENT) {
        // Registered before the stack had it.
        drop(state);
        // SAFETY: the caller's promise.
        return unsafe { real::epoll_ctl(epoll, operation, fd, event) };
    }
    errno::int(done.map(|()| 0))
}

/// Whether a UDP socket has its only peer in the kernel's world, as far as a process without a stack knows.
fn is_the_kernels(fd: c_int) -> bool {
    process::current().is_none() && crate::address::is_connected(fd)
}

/// Why a descriptor is no epoll instance.
fn not_epoll(fd: c_int) -> Errno {
    // SAFETY: no memory is involved.
    if unsafe { real::fcntl(fd, libc::F_GETFD, 0) } < 0 { Errno::BADF } else { Errno::INVAL }
}

fn control(
    state: &mut State,
    (epoll, operation): (c_int, c_int),
    fd: c_int,
    event: Option<epoll_event>,
) -> Result<(), Errno> {
    let waiter = state.waiters.epoll(epoll);
    let id = state.id_of(fd);
    let now = if state.waiters.is_awake(waiter) { ANYTHING } else { state.mask(fd) };
    let events = event.filter(|_| operation != libc::EPOLL_CTL_DEL).map_or(0, |event| event.events);
    if events & libc::EPOLLEXCLUSIVE as u32 != 0
        && (operation == libc::EPOLL_CTL_MOD || events & !EXCLUSIVE != 0)
    {
        return Err(Errno::INVAL);
    }
    match operation {
        libc::EPOLL_CTL_DEL => state.waiters.remove(waiter, (id, fd)),
        libc::EPOLL_CTL_ADD => state.waiters.add(waiter, (id, fd), event.ok_or(Errno::FAULT)?, now),
        libc::EPOLL_CTL_MOD => {
            state.waiters.change(waiter, (id, fd), event.ok_or(Errno::FAULT)?, now)
        }
        _ => Err(Errno::INVAL),
    }
}

/// `epoll_wait(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { epoll_pwait(epoll, events, most, timeout, std::ptr::null()) }
}

/// `epoll_pwait(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    let alarm = Alarm::after_ms(timeout);
    let shared = process::current();
    match takes(shared, (epoll, events, most), alarm) {
        Ok(true) => {}
        // SAFETY: the caller's promise.
        Ok(false) => return unsafe { real::epoll_pwait(epoll, events, most, timeout, mask) },
        Err(error) => return errno::int(Err(error)),
    }
    // SAFETY: room for so many events, as the application says.
    let events = unsafe { slice::from_raw_parts_mut(events, most.unsigned_abs() as usize) };
    errno::int(wait_either(shared, epoll, events, alarm, mask))
}

/// `epoll_pwait2(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait2(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: *const libc::timespec,
    mask: *const sigset_t,
) -> c_int {
    if !memory::is_given_or_null(timeout) {
        return errno::int(Err(Errno::FAULT));
    }
    // SAFETY: null, or a time as the application says.
    let alarm = match Alarm::after_time(unsafe { timeout.as_ref() }) {
        Ok(alarm) => alarm,
        Err(error) => return errno::int(Err(error)),
    };
    let shared = process::current();
    match takes(shared, (epoll, events, most), alarm) {
        Ok(true) => {}
        // SAFETY: the caller's promise.
        Ok(false) => return unsafe { real::epoll_pwait2(epoll, events, most, timeout, mask) },
        Err(error) => return errno::int(Err(error)),
    }
    // SAFETY: room for so many events, as the application says.
    let events = unsafe { slice::from_raw_parts_mut(events, most.unsigned_abs() as usize) };
    errno::int(wait_either(shared, epoll, events, alarm, mask))
}

/// Whether a call is one that the kernel would not refuse, in a process that has a state, or may have one while it waits.
///
/// # Errors
/// [`Errno::FAULT`]: a session is ready, and there is no memory to say so in. Of its own files, the kernel says that itself.
fn takes(
    shared: Option<&Shared>,
    (epoll, events, most): (c_int, *mut epoll_event, c_int),
    alarm: Alarm,
) -> Result<bool, Errno> {
    let is_valid = kinds::get(epoll) == Kind::Epoll && (1..=MOST).contains(&most);
    let is_there = memory::writable(events, 1).is_ok();
    let Some(shared) = shared.filter(|_| is_valid && !is_there) else {
        let may_be_ours = shared.is_some() || !alarm.is_over() && arrival::may_come();
        return Ok(is_valid && is_there && may_be_ours);
    };
    let mut state = shared.lock();
    state.run();
    if state.mask(epoll).has(Mask::IN) { Err(Errno::FAULT) } else { Ok(false) }
}

/// Waits, whether the process has a state already or not.
fn wait_either(
    shared: Option<&'static Shared>,
    epoll: c_int,
    events: &mut [epoll_event],
    alarm: Alarm,
    mask: *const sigset_t,
) -> Result<c_int, Errno> {
    call::begins();
    let found = match shared {
        Some(shared) => Continue(shared),
        None => await_state(epoll, events, alarm, mask)?,
    };
    match found {
        Continue(shared) => wait(shared, epoll, events, alarm, mask),
        Break(count) => Ok(count),
    }
}

/// Waits for the kernel's files only while there is no state. Gives the state, or how many events there are without.
fn await_state(
    epoll: c_int,
    events: &mut [epoll_event],
    alarm: Alarm,
    mask: *const sigset_t,
) -> Result<ControlFlow<c_int, &'static Shared>, Errno> {
    let mut hears = true;
    loop {
        let bell = if hears { arrival::bell() } else { None };
        if let Some(shared) = process::current() {
            return Ok(Continue(shared));
        }
        let event = |fd| pollfd { fd, events: libc::POLLIN, revents: 0 };
        // What is negative is passed over.
        let mut files = [event(epoll), event(bell.unwrap_or(-1))];
        let longest =
            if alarm.is_never() { u64::MAX } else { alarm.0.saturating_sub(clock::now()) };
        poll(&mut files, longest, mask)?;
        let [has_events, has_rung] = files.map(|file| file.revents != 0);
        if has_events {
            let count = kernel_events(epoll, events)?;
            if count > 0 {
                return Ok(Break(count));
            }
        } else if !has_rung {
            return Ok(Break(0));
        }
        // The application has put another file there.
        hears &= !has_rung || process::current().is_some();
    }
}

fn wait(
    shared: &Shared,
    epoll: c_int,
    events: &mut [epoll_event],
    alarm: Alarm,
    mask: *const sigset_t,
) -> Result<c_int, Errno> {
    let mut state = shared.lock();
    let waiter = state.waiters.epoll(epoll);
    let mut files = Vec::new();
    let mut ran = false;
    loop {
        if !std::mem::take(&mut ran) {
            state.run();
        }
        let State { waiters, sessions, .. } = &mut *state;
        let count = waiters.collect(waiter, sessions, events);
        if count > 0 {
            let asks = waiters.asks(waiter, epoll);
            if asks.company {
                // Told by the next call.
                state.meet_company();
            }
            let rest = events.get_mut(count..).unwrap_or_default();
            if !asks.files || rest.is_empty() {
                return Ok(count as c_int);
            }
            let more = kernel_events(epoll, rest).unwrap_or(0);
            state.waiters.asked(waiter, more > 0);
            return Ok(count as c_int + more);
        }
        files.clear();
        files.push(pollfd { fd: epoll, events: libc::POLLIN, revents: 0 });
        let files = &mut files;
        let wait = Wait { waiter, files, mask, alarm, patient: true, ran: true };
        let waited = wait_while(shared, state, wait, |state| state.waiters.may_be_ready(waiter));
        state = waited.0;
        let found = waited.1?;
        ran = found;
        if files.iter().any(|file| file.revents != 0) {
            // What of sessions is ready comes first in the next call.
            drop(state);
            let count = kernel_events(epoll, events)?;
            if count > 0 {
                return Ok(count);
            }
            state = shared.lock();
            ran = false;
        } else if !found {
            return Ok(0);
        }
    }
}

/// Events of the kernel's files, without waiting.
fn kernel_events(epoll: c_int, events: &mut [epoll_event]) -> Result<c_int, Errno> {
    if events.is_empty() {
        return Ok(0);
    }
    let most = events.len() as c_int;
    // SAFETY: room for so many.
    errno::of(unsafe { uncancelled::epoll_look(epoll, events.as_mut_ptr(), most) })
}

/// Readiness bits of `poll` as those of `epoll`: they have the same numbers.
pub(super) fn mask(events: i16) -> Mask {
    Mask(u32::from(events as u16))
}
