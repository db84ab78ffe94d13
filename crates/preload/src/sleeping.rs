//! Sleeping until a session, the stack or a file of the kernel's needs a thread.

use std::ffi::c_int;
use std::time::Duration;

use host::{Errno, Mask};
use libc::pollfd;

use crate::clock::{self, Alarm, SECOND};
use crate::kinds::{self, Kind};
use crate::process::{Held, Shared};
use crate::state::State;
use crate::{real, signals};

/// `spin_loop` hints between two looks.
const PAUSES: usize = 8;
/// How long a thread looks before it leaves its core to others between two looks: ns. What it waits for may be made by one of
/// them.
const ALONE: u64 = 2_000;
/// Two processes that wait for the same connection take turns: how long each leaves it to the other.
pub(crate) const MOMENT: Duration = Duration::from_millis(10);

/// The lock again, and how the wait ended.
pub(crate) type Waited<'a> = (Held<'a>, Result<bool, Errno>);

/// A wait.
pub(crate) struct Wait<'w> {
    /// Who waits.
    pub(crate) waiter: usize,
    /// Files of the kernel's, any of which ends it.
    pub(crate) files: &'w mut Vec<pollfd>,
    pub(crate) mask: *const libc::sigset_t,
    pub(crate) alarm: Alarm,
    /// The files are not looked at when it is over at once, or soon: whoever waits looks at them now and then.
    pub(crate) patient: bool,
    /// The stack was run just now.
    pub(crate) ran: bool,
}

/// What others know of a thread while it waits. One that is cancelled then (`pthread_cancel`) unwinds, and they forget it.
struct Waiting<'a> {
    shared: &'a Shared,
    waiter: usize,
    /// It counts among those that sleep.
    sleeps: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if self.sleeps {
            state.wake_up(self.waiter, false, false);
        }
        state.waiters.abandon(self.waiter);
        // What it was woken for, if it was, nobody else does.
        state.run();
    }
}

/// Waits until `is_over` says so, one of `files` has an event, or the alarm. Gives the lock back, and whether one of the
/// first two was so.
///
/// # Errors
/// `EINTR`: a signal came.
pub(crate) fn wait_for<'a>(
    shared: &'a Shared,
    state: Held<'a>,
    waiter: usize,
    (files, mask): (&mut Vec<pollfd>, *const libc::sigset_t),
    alarm: Alarm,
    is_over: impl FnMut(&mut State) -> bool,
) -> Waited<'a> {
    let wait = Wait { waiter, files, mask, alarm, patient: false, ran: false };
    wait_while(shared, state, wait, is_over)
}

/// The same, in all its variety.
pub(crate) fn wait_while<'a>(
    shared: &'a Shared,
    mut state: Held<'a>,
    Wait { waiter, files, mask, alarm, patient, mut ran }: Wait<'_>,
    mut is_over: impl FnMut(&mut State) -> bool,
) -> Waited<'a> {
    let own = files.len();
    // Who never waits for the kernel's files would never see them.
    let mut asked = (own == 0 && state.company_bell().is_none()) || (patient && alarm.is_far());
    let handlers = signals::so_far();
    loop {
        if !std::mem::take(&mut ran) {
            state.run();
        }
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
            let budget = state.spin.budget();
            if budget > 0 {
                let looked = look(shared, state, (waiter, budget), alarm);
                state = looked.0;
                if looked.1 && asked {
                    continue;
                }
            }
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
        files.push(event(state.link()));
        files.push(event(state.link_bells()));
        files.extend(state.company_bell().map(event));
        drop(state);
        let waiting = Waiting { shared, waiter, sleeps: sleep.is_some() };
        let begin = clock::now();
        // A handler that has run since this call began ends it as one that runs while it sleeps does.
        let ready = if sleep.is_some() && signals::came_since(handlers) {
            Err(Errno::INTR)
        } else {
            poll(files, sleep.unwrap_or(0), mask)
        };
        // It goes on.
        std::mem::forget(waiting);
        state = shared.lock();
        asked = true;
        let is_set = |at: usize| files.get(at).is_some_and(|file| file.revents != 0);
        if sleep.is_some() {
            let (rung, kicked) = (is_set(own), is_set(own + 1));
            state.wake_up(waiter, ready.is_ok() && rung, ready.is_ok() && kicked);
            let rung = rung || is_set(own + 3);
            // Only packets would have been found by looking.
            state.spin.slept(if rung { clock::now() - begin } else { u64::MAX });
            let broken = libc::POLLHUP | libc::POLLERR;
            let ends = files.get(own).into_iter().chain(files.get(own + 2));
            if ready.is_ok() && ends.clone().any(|end| end.revents & broken != 0) {
                state.doubt_daemon();
            }
        }
        if ready.is_ok() && is_set(own + 2) {
            state.heed();
        }
        if ready.is_ok() && is_set(own + 3) {
            state.heed_links();
        }
        if ready.is_ok() && is_set(own + 4) {
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

/// Looks for packets for so long (ns), without the lock in between. Gives the lock back, and whether there is something.
fn look<'a>(
    shared: &'a Shared,
    mut state: Held<'a>,
    (waiter, budget): (usize, u64),
    alarm: Alarm,
) -> (Held<'a>, bool) {
    let begin = clock::now();
    state.courtesy.begin();
    let deadline = state.sessions.next_deadline().unwrap_or(u64::MAX);
    let end = (begin + budget).min(deadline).min(alarm.0);
    loop {
        if state.has_news() || state.waiters.may_be_ready(waiter) {
            state.spin.found();
            return (state, true);
        }
        let now = clock::now();
        if state.waiters.kernel_has_news(waiter) || now >= end {
            return (state, false);
        }
        let leaves = now >= begin + ALONE && state.courtesy.leaves();
        drop(state);
        if leaves {
            std::thread::yield_now();
        } else {
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
        state = shared.lock();
        if leaves {
            state.courtesy.was_away(clock::now() - now);
        }
    }
}

/// Waits until a session is ready for `wanted`, has failed or has ended; else as [`wait_for`].
///
/// # Errors
/// What [`State::watch`] says.
pub(crate) fn wait_ready<'a>(
    shared: &'a Shared,
    mut state: Held<'a>,
    fd: c_int,
    wanted: Mask,
    alarm: Alarm,
) -> Result<Waited<'a>, Errno> {
    let waiter = state.waiters.take();
    state.watch(waiter, fd, wanted)?;
    let ended = if wanted == Mask::IN { Mask::RDHUP | Mask::HUP } else { Mask::NONE };
    // What has hung up is writable, too, unless it was shut down before the connect that is under way.
    let over = wanted | ended | Mask::ERR;
    let files = (&mut Vec::new(), std::ptr::null());
    let (mut state, waited) =
        wait_for(shared, state, waiter, files, alarm, |state| state.is_ready(fd, over));
    state.unwatch(waiter, fd);
    Ok((state, waited))
}

/// In the middle of a call about a session that another process has taken meanwhile: leaves it to that for a moment, and fetches
/// it then. `None`: it is lost.
#[cold]
pub(crate) fn regained<'a>(shared: &'a Shared, state: Held<'a>, fd: c_int) -> Option<Held<'a>> {
    drop(state);
    if kinds::get(fd) == Kind::Elsewhere {
        std::thread::sleep(MOMENT);
    }
    let mut state = shared.lock();
    let is_here = state.fetch(fd) == Kind::Session && state.sessions.has(state.id_of(fd));
    is_here.then_some(state)
}

/// Whether a call that has waited for a session tries again: it is ready, or a signal came whose handler lets the call go on
/// (`SA_RESTART`), which no time limit does.
///
/// # Errors
/// `EAGAIN`: the time is over. `EINTR`. What the wait has failed with.
pub(crate) fn again(waited: Result<bool, Errno>, alarm: Alarm) -> Result<(), Errno> {
    match waited {
        Ok(true) => Ok(()),
        Err(Errno::INTR) if alarm.is_never() && signals::restart() => Ok(()),
        Ok(false) => Err(Errno::AGAIN),
        Err(error) => Err(error),
    }
}

/// Waits for files of the kernel's for so long (ns; `u64::MAX`: for ever). Gives how many have events.
pub(crate) fn poll(
    files: &mut [pollfd],
    longest: u64,
    mask: *const libc::sigset_t,
) -> Result<c_int, Errno> {
    let timeout = libc::timespec {
        tv_sec: i64::try_from(longest / SECOND).unwrap_or(i64::MAX),
        tv_nsec: (longest % SECOND) as i64,
    };
    let timeout = if longest == u64::MAX { std::ptr::null() } else { &raw const timeout };
    let count = files.len() as libc::nfds_t;
    // SAFETY: as many files as it says, a time or none, and the application's mask or none.
    crate::errno::of(unsafe { real::ppoll(files.as_mut_ptr(), count, timeout, mask) })
}

#[cfg(test)]
mod tests;
