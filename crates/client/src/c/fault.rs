//! Statuses, and the words behind them.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Error;

/// Status: a pointer is null, or an option makes no sense to the library.
pub const MILLRACE_INVALID: c_int = -1;
/// Status: nobody listens at the attach socket, or this process may not connect.
pub const MILLRACE_NO_DAEMON: c_int = -2;
/// Status: library and daemon are of different versions; millrace_error() names both.
pub const MILLRACE_VERSION_MISMATCH: c_int = -3;
/// Status: the daemon says no; millrace_error() says why.
pub const MILLRACE_REFUSED: c_int = -4;
/// Status: the daemon has ended; attach again when it is back, and open queues anew.
pub const MILLRACE_DAEMON_GONE: c_int = -5;
/// Status: the daemon did not answer in time, or with nonsense.
pub const MILLRACE_PROTOCOL: c_int = -6;
/// Status: the system refused memory or a file descriptor.
pub const MILLRACE_SYSTEM: c_int = -7;
/// Status: the queue to the daemon is full; send again later, or drop the packet.
pub const MILLRACE_FULL: c_int = -8;
/// Status: no bytes, or more than the queue can ever take.
pub const MILLRACE_UNSENDABLE: c_int = -9;
/// Status: the packet was sent, returned or released before, or another channel received it.
pub const MILLRACE_STALE: c_int = -10;
/// Status: a defect of the library; please report it.
pub const MILLRACE_DEFECT: c_int = -11;
/// Status: this process was forked from the one that attached, whose channels these are; millrace_reattach() attaches anew.
pub const MILLRACE_FORKED: c_int = -12;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error(transparent)]
    Library(#[from] Error),
    #[error("{0} is null")]
    Null(&'static str),
    #[error("{0} is not UTF-8 text")]
    Text(&'static str),
    #[error("{what}: '{given}' is none of {known}")]
    Option { what: &'static str, given: String, known: &'static str },
    #[error("room for {room} channels, {channels} were asked for")]
    Room { room: usize, channels: u16 },
    #[error("the packet was sent, returned or released before, or is of another channel")]
    Stale,
}

impl Fault {
    fn status(&self) -> c_int {
        match self {
            Self::Null(_) | Self::Text(_) | Self::Option { .. } | Self::Room { .. } => {
                MILLRACE_INVALID
            }
            Self::Stale | Self::Library(Error::Foreign) => MILLRACE_STALE,
            Self::Library(error) => match error {
                Error::NoDaemon { .. } => MILLRACE_NO_DAEMON,
                Error::Version { .. } => MILLRACE_VERSION_MISMATCH,
                Error::Refused(_) => MILLRACE_REFUSED,
                Error::DaemonGone => MILLRACE_DAEMON_GONE,
                Error::Silent(_) | Error::Nonsense(_) => MILLRACE_PROTOCOL,
                Error::Memory(_) | Error::System { .. } => MILLRACE_SYSTEM,
                Error::Full => MILLRACE_FULL,
                Error::Unsendable(_) => MILLRACE_UNSENDABLE,
                Error::Foreign => MILLRACE_STALE,
                Error::Forked => MILLRACE_FORKED,
            },
        }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

fn remember(text: String) {
    // An error's text has no zero byte, but for what a daemon may say.
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // A thread that ends has nobody to tell.
    let _ = LAST.try_with(|last| last.replace(text));
}

/// Runs a call: errors become statuses, panics too.
#[inline]
pub(super) fn guard(call: impl FnOnce() -> Result<c_int, Fault>) -> c_int {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(count)) => count,
        Ok(Err(Fault::Library(Error::Full))) => MILLRACE_FULL,
        Ok(Err(fault)) => {
            remember(fault.to_string());
            fault.status()
        }
        Err(_) => {
            remember("a defect of libmillrace; standard error says more".into());
            MILLRACE_DEFECT
        }
    }
}

/// A count as C gives it.
#[inline]
pub(super) fn count(number: usize) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}

/// What a pointer of C's points to, which this library has made.
///
/// # Safety
/// It is null, or points to a valid `T` that nobody else uses meanwhile.
#[inline]
pub(super) unsafe fn at<'a, T>(pointer: *mut T, name: &'static str) -> Result<&'a mut T, Fault> {
    // SAFETY: as the caller says.
    unsafe { pointer.as_mut() }.ok_or(Fault::Null(name))
}

/// Room of C's for one value, to write. What lies there need not be a value, and is never looked at.
///
/// # Safety
/// It is null, or points to room for a `T` that nobody else uses meanwhile.
#[inline]
pub(super) unsafe fn place<'a, T>(
    pointer: *mut T,
    name: &'static str,
) -> Result<&'a mut MaybeUninit<T>, Fault> {
    // SAFETY: as the caller says.
    unsafe { pointer.cast::<MaybeUninit<T>>().as_mut() }.ok_or(Fault::Null(name))
}

/// Room of C's for several values, to write, as [`place`]; null is well for none.
///
/// # Safety
/// It is null, or points to room for `length` values that nobody else uses meanwhile.
#[inline]
pub(super) unsafe fn room<'a, T>(
    pointer: *mut T,
    length: usize,
    name: &'static str,
) -> Result<&'a mut [MaybeUninit<T>], Fault> {
    match (pointer.is_null(), length) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(Fault::Null(name)),
        // SAFETY: as the caller says.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts_mut(pointer.cast(), length) }),
    }
}

/// What a pointer of C's points to, to read.
///
/// # Safety
/// It is null, or points to a `T` that nobody changes meanwhile.
#[inline]
pub(super) unsafe fn shown<'a, T>(pointer: *const T, name: &'static str) -> Result<&'a T, Fault> {
    // SAFETY: as the caller says.
    unsafe { pointer.as_ref() }.ok_or(Fault::Null(name))
}

/// An array of C's, to read; null is well when it has no items.
///
/// # Safety
/// It is null, or points to `length` values that nobody changes meanwhile.
#[inline]
pub(super) unsafe fn items<'a, T>(
    pointer: *const T,
    length: usize,
    name: &'static str,
) -> Result<&'a [T], Fault> {
    match (pointer.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Fault::Null(name)),
        // SAFETY: as the caller says.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(pointer, length) }),
    }
}

/// A string of C's; `None` for null.
///
/// # Safety
/// It is null, or ends with a zero byte and lives as long as the call.
pub(super) unsafe fn text<'a>(
    pointer: *const c_char,
    name: &'static str,
) -> Result<Option<&'a str>, Fault> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller says.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map(Some).map_err(|_| Fault::Text(name))
}

/// What was wrong with the last call of this thread that failed, and what to do. The text is valid until the
/// thread's next failure; it is never null. Not set by MILLRACE_FULL, which says all.
#[unsafe(no_mangle)]
pub extern "C" fn millrace_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The library's version.
#[unsafe(no_mangle)]
pub extern "C" fn millrace_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}
