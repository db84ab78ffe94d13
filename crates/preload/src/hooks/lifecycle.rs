//! Forking and ending.

use std::ffi::c_int;

use libc::pid_t;

use crate::clock::Alarm;
use crate::process;
use crate::real;
use crate::signals;
use crate::sleeping::wait_for;

/// How long a process that ends stays for what it has sent to be acknowledged, at most: ns.
const FAREWELL: u64 = 1_000_000_000;

/// `fork(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fork() -> pid_t {
    // SAFETY: the caller's promise.
    let child = unsafe { real::fork() };
    if child > 0 {
        if let Some(shared) = process::current() {
            shared.lock().forked = true;
        }
    }
    child
}

/// `sigaction(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the caller's promise.
    let done = unsafe { real::sigaction(signal, new, old) };
    // SAFETY: null, or an action as the application says.
    if let (0, Some(new)) = (done, unsafe { new.as_ref() }) {
        let has_handler = !matches!(new.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN);
        signals::handled(signal, has_handler && new.sa_flags & libc::SA_RESTART == 0);
    }
    done
}

/// `vfork(2)`: as `fork`. A child that shares its parent's memory would close its parent's sessions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vfork() -> pid_t {
    // SAFETY: the child may do all that a child of `vfork` may, and more.
    unsafe { fork() }
}

/// Run when the process ends by `exit`, or by returning from `main`.
extern "C" fn farewell() {
    let Some(shared) = process::current() else { return };
    let Some(mut state) = shared.try_lock() else { return };
    state.close_all();
    let Ok(waiter) = state.waiters.take() else { return };
    let files = (&mut Vec::new(), std::ptr::null());
    let alarm = Alarm::after(FAREWELL);
    let (state, _) =
        wait_for(shared, state, waiter, files, alarm, |state| state.sessions.is_drained());
    drop(state);
}

/// Called by the loader when the process ends.
#[used]
#[unsafe(link_section = ".fini_array")]
static FAREWELL_HOOK: extern "C" fn() = farewell;
