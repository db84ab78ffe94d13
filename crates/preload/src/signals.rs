//! Whether a call that a signal has ended begins again (`SA_RESTART`).

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

/// Signals whose handlers end calls, by their numbers.
static ENDING: AtomicU64 = AtomicU64::new(0);

fn bit(signal: c_int) -> u64 {
    u32::try_from(signal - 1).ok().and_then(|place| 1_u64.checked_shl(place)).unwrap_or(0)
}

/// The application has a handler for `signal`, or none any more.
pub(crate) fn handled(signal: c_int, ends_calls: bool) {
    if ends_calls {
        ENDING.fetch_or(bit(signal), Ordering::Relaxed);
    } else {
        ENDING.fetch_and(!bit(signal), Ordering::Relaxed);
    }
}

/// Whether a call that a signal has ended begins again. Nobody says which signal it was: with a handler that ends calls
/// beside others that do not, each ends them.
pub(crate) fn restart() -> bool {
    ENDING.load(Ordering::Relaxed) == 0
}

/// Signals of this thread are held back until it is dropped.
pub(crate) struct Held {
    before: libc::sigset_t,
}

impl Held {
    /// Holds back all.
    pub(crate) fn all() -> Self {
        // SAFETY: room for two sets, which the calls fill.
        unsafe {
            let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Self { before }
        }
    }

    /// The set that was held back before, for a call that lets the others through while it waits.
    pub(crate) fn before(&self) -> *const libc::sigset_t {
        &raw const self.before
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the set that `all` has filled.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut())
        };
    }
}
