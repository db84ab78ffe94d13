//! Forking, another root, and ending.

use std::ffi::{c_char, c_int};
use std::time::Duration;

use libc::pid_t;

use crate::clock::{self, Alarm};
use crate::kinds::{self, Kind};
use crate::process::{self, Held, Shared};
use crate::real;
use crate::sleeping::wait_for;

/// How long a process that ends stays for what it has sent to be acknowledged, where the daemon does not take that over: ns.
const FAREWELL: u64 = 1_000_000_000;
/// How often a process that ends tries to have the lock, and the time between two attempts.
const LOOKS: usize = 20;
const BREATH: Duration = Duration::from_millis(1);

/// `fork(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fork() -> pid_t {
    stand_by();
    // SAFETY: the caller's promise.
    unsafe { fork_sharing() }
}

/// What has inherited listeners and forks keeps them open for its children, as NGINX's master does when it has become a daemon
/// or the upgrade of another: connections that come while there are none of them wait here.
fn stand_by() {
    let listeners = || kinds::all().filter(|(_, kind)| *kind == Kind::Listener).map(|(fd, _)| fd);
    if listeners().next().is_none() {
        return;
    }
    let Some(shared) = process::attached() else { return };
    let mut state = shared.lock();
    for fd in listeners() {
        // Where the stack can't, the kernel listens nevertheless.
        let _ = state.adopt(fd);
    }
}

/// # Safety
/// As for `fork`.
unsafe fn fork_sharing() -> pid_t {
    share();
    // SAFETY: the caller's promise.
    let child = unsafe { real::fork() };
    if child == 0 {
        // The parent's files are closed before the child has a second thread, which may make files of its own.
        let _ = process::current();
    }
    if child > 0 {
        if let Some(shared) = process::current() {
            let mut state = shared.lock();
            state.forked = Some(clock::now());
            state.rest_or_work();
        }
    }
    child
}

/// The child will have this process's sessions too.
pub(super) fn share() {
    kinds::touch_all();
    if let Some(shared) = process::current() {
        shared.lock().carry_all();
    }
}

/// `vfork(2)`: as `fork`. A child that shares its parent's memory would close its parent's sessions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vfork() -> pid_t {
    // SAFETY: the child may do all that a child of `vfork` may, and more.
    unsafe { fork_sharing() }
}

/// `chroot(2)`: the daemon's socket is out of reach from there. So the process meets the daemon before, if it has not yet, as a
/// worker that HAProxy has forked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chroot(path: *const c_char) -> c_int {
    let _ = process::attached();
    // SAFETY: the caller's promise.
    unsafe { real::chroot(path) }
}

/// Run when the process ends by `exit`, or by returning from `main`.
extern "C" fn farewell() {
    let Some(shared) = process::current() else { return };
    let Some(mut state) = last_lock(shared) else { return };
    if state.leave() {
        return;
    }
    // The daemon does not go on with it: the process stays for a moment.
    let waiter = state.waiters.take();
    let files = (&mut Vec::new(), std::ptr::null());
    let alarm = Alarm::after(FAREWELL);
    let (state, _) =
        wait_for(shared, state, waiter, files, alarm, |state| state.sessions.is_drained());
    drop(state);
}

/// `None`: a thread that is no more may have had the lock, or this one, in a signal's handler.
fn last_lock(shared: &Shared) -> Option<Held<'_>> {
    for _ in 0..LOOKS {
        if let Some(state) = shared.try_lock() {
            return Some(state);
        }
        std::thread::sleep(BREATH);
    }
    shared.try_lock()
}

/// `_exit(2)`: what ends without its functions for that ends orderly nevertheless.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    farewell();
    // SAFETY: the caller's promise.
    unsafe { real::_exit(status) };
    std::process::abort()
}

/// `_Exit(3)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the caller's promise.
    unsafe { _exit(status) }
}

/// Called by the loader when the process ends.
#[used]
#[unsafe(link_section = ".fini_array")]
static FAREWELL_HOOK: extern "C" fn() = farewell;
