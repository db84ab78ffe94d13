//! Handlers of signals: the application's are called by this library.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

use host::Errno;
use libc::sighandler_t;

use crate::{errno, signals};

/// `SIG_HOLD`
const HOLD: sighandler_t = 2;

/// Signals whose handlers end calls when `signal` sets them (`siginterrupt`), a bit each.
static ENDING: AtomicU64 = AtomicU64::new(0);

/// `sigaction(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { signals::set(signal, new, old) }
}

/// `sigaction(2)`, by the C library's other name for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { signals::set(signal, new, old) }
}

/// `signal(2)`, as BSD has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    let ends = ENDING.load(Ordering::Relaxed) & bit(signal) != 0;
    // It does not interrupt itself.
    set(signal, handler, if ends { 0 } else { libc::SA_RESTART }, true)
}

/// `bsd_signal(3)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsd_signal(number: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the caller's promise.
    unsafe { signal(number, handler) }
}

/// `ssignal(3)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ssignal(number: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the caller's promise.
    unsafe { signal(number, handler) }
}

/// `sysv_signal(3)`: a handler runs once, and may be interrupted by itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    set(signal, handler, libc::SA_RESETHAND | libc::SA_NODEFER, false)
}

/// `signal(2)`, in programs that are compiled for System V.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the caller's promise.
    unsafe { sysv_signal(signal, handler) }
}

/// `sigset(3)`: sets what is done with a signal and lets it come, or ([`HOLD`]) holds it back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigset(number: c_int, handler: sighandler_t) -> sighandler_t {
    let holds = handler == HOLD;
    let old = if holds { action(number) } else { set(number, handler, 0, false) };
    if old == libc::SIG_ERR {
        return old;
    }
    let how = if holds { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
    // SAFETY: all zeros are a set without signals; room for two sets, and a number of a signal.
    let was_held = unsafe {
        let (mut own, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigaddset(&raw mut own, number);
        libc::pthread_sigmask(how, &raw const own, &raw mut before);
        libc::sigismember(&raw const before, number) == 1
    };
    if was_held { HOLD } else { old }
}

/// What is done with a signal.
fn action(number: c_int) -> sighandler_t {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: room for an action.
    let done = unsafe { signals::set(number, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all zeros are an action, too.
    if done == 0 { unsafe { action.assume_init() }.sa_sigaction } else { libc::SIG_ERR }
}

/// `siginterrupt(3)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn siginterrupt(signal: c_int, ends: c_int) -> c_int {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: room for an action.
    if unsafe { signals::set(signal, std::ptr::null(), action.as_mut_ptr()) } != 0 {
        return -1;
    }
    // SAFETY: just filled.
    let mut action = unsafe { action.assume_init() };
    if ends == 0 {
        ENDING.fetch_and(!bit(signal), Ordering::Relaxed);
        action.sa_flags |= libc::SA_RESTART;
    } else {
        ENDING.fetch_or(bit(signal), Ordering::Relaxed);
        action.sa_flags &= !libc::SA_RESTART;
    }
    // SAFETY: the application's own action with another flag.
    unsafe { signals::set(signal, &raw const action, std::ptr::null_mut()) }
}

fn bit(signal: c_int) -> u64 {
    u32::try_from(signal - 1).ok().and_then(|place| 1_u64.checked_shl(place)).unwrap_or(0)
}

fn set(signal: c_int, handler: sighandler_t, flags: c_int, blocks_itself: bool) -> sighandler_t {
    if handler == libc::SIG_ERR || !(1..=64).contains(&signal) {
        errno::set(Errno::INVAL);
        return libc::SIG_ERR;
    }
    // SAFETY: all zeros are an action, and a set without signals; a number of a signal.
    let (mut new, mut old) = unsafe {
        let mut new: libc::sigaction = MaybeUninit::zeroed().assume_init();
        if blocks_itself {
            libc::sigaddset(&raw mut new.sa_mask, signal);
        }
        (new, MaybeUninit::<libc::sigaction>::zeroed())
    };
    (new.sa_sigaction, new.sa_flags) = (handler, flags);
    // SAFETY: an action, and room for one.
    let done = unsafe { signals::set(signal, &raw const new, old.as_mut_ptr()) };
    // SAFETY: filled where the call has succeeded.
    if done == 0 { unsafe { old.assume_init() }.sa_sigaction } else { libc::SIG_ERR }
}
