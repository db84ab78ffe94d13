//! Sleeping until a session, the stack or a file of the kernel's needs a thread.

use std::ffi::c_int;
use std::sync::MutexGuard;

use host::{Errno, Mask};
use libc::pollfd;

use crate::clock::{Alarm, SECOND};
use crate::process::Shared;
use crate::real;
use crate::state::State;

/// The lock again, and how the wait ended.
pub(crate) type Waited<'a> = (MutexGuard<'a, State>, Result<bool, Errno>);

/// Waits until `is_over` says so, one of `files` has an event, or the alarm. Gives the lock back, and whether one of the
/// first two was so.
///
/// # Errors
/// `EINTR`: a signal came.
pub(crate) fn wait_for<'a>(
    shared: &'a Shared,
    mut state: MutexGuard<'a, State>,
    waiter: usize,
    (files, mask): (&mut Vec<pollfd>, *const libc::sigset_t),
    alarm: Alarm,
    mut is_over: impl FnMut(&mut State) -> bool,
) -> Waited<'a> {
    let own = files.len();
    let mut asked = own == 0 && state.company_bell().is_none();
    loop {
        state.run();
        let over = is_over(&mut state);
        // The kernel's files are asked once at least.
        if over && asked {
            return (state, Ok(true));
        }
        if !over {
            // Another thread may have taken what this one was told of.
            state.waiters.drop_stale(waiter);
        }
        let sleep = if over || alarm.is_over() {
            if asked {
                return (state, Ok(false));
            }
            None
        } else {
            let slept = state.fall_asleep(waiter, alarm);
            if slept.is_none() && asked {
                continue;
            }
            slept
        };
        let event = |fd| pollfd { fd, events: libc::POLLIN, revents: 0 };
        files.truncate(own);
        files.push(event(state.doorbell()));
        files.push(event(state.waiters.kick_of(waiter)));
        files.extend(state.company_bell().map(event));
        drop(state);
        let ready = poll(files, sleep.unwrap_or(0), mask);
        state = shared.lock();
        asked = true;
        let is_set = |at: usize| files.get(at).is_some_and(|file| file.revents != 0);
        if sleep.is_some() {
            let (rung, kicked) = (is_set(own), is_set(own + 1));
            state.wake_up(waiter, ready.is_ok() && rung, ready.is_ok() && kicked);
            let broken = libc::POLLHUP | libc::POLLERR;
            if ready.is_ok() && files.get(own).is_some_and(|bell| bell.revents & broken != 0) {
                state.doubt_daemon();
            }
        }
        if ready.is_ok() && is_set(own + 2) {
            state.meet_company();
        }
        let found = files.iter().take(own).any(|file| file.revents != 0);
        files.truncate(own);
        match ready {
            Err(error) => return (state, Err(error)),
            Ok(_) if found => return (state, Ok(true)),
            Ok(_) => {}
        }
    }
}

/// Waits until a session is ready for `wanted`, has failed or has ended; else as [`wait_for`].
///
/// # Errors
/// No descriptor is left to wait with.
pub(crate) fn wait_ready<'a>(
    shared: &'a Shared,
    mut state: MutexGuard<'a, State>,
    fd: c_int,
    wanted: Mask,
    alarm: Alarm,
) -> Result<Waited<'a>, Errno> {
    let waiter = state.waiters.take()?;
    state.watch(waiter, fd, wanted)?;
    let ended = if wanted == Mask::IN { Mask::RDHUP } else { Mask::NONE };
    let over = wanted | ended | Mask::ERR | Mask::HUP;
    let files = (&mut Vec::new(), std::ptr::null());
    let (mut state, waited) =
        wait_for(shared, state, waiter, files, alarm, |state| state.is_ready(fd, over));
    state.unwatch(waiter, fd);
    Ok((state, waited))
}

fn poll(files: &mut [pollfd], longest: u64, mask: *const libc::sigset_t) -> Result<c_int, Errno> {
    let timeout = libc::timespec {
        tv_sec: i64::try_from(longest / SECOND).unwrap_or(i64::MAX),
        tv_nsec: (longest % SECOND) as i64,
    };
    let timeout = if longest == u64::MAX { std::ptr::null() } else { &raw const timeout };
    let count = files.len() as libc::nfds_t;
    // SAFETY: as many files as it says, a time or none, and the application's mask or none.
    crate::errno::of(unsafe { real::ppoll(files.as_mut_ptr(), count, timeout, mask) })
}
