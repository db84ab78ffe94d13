//! What a call returns to C.

use std::ffi::c_int;

use host::Errno;

/// The error of the thread's last call.
pub(crate) fn set(error: Errno) {
    // SAFETY: the C library gives the thread's own word.
    unsafe { *libc::__errno_location() = error.0 };
}

/// The error of the thread's last call.
pub(crate) fn get() -> Errno {
    // SAFETY: as above.
    Errno(unsafe { *libc::__errno_location() })
}

/// A result of type `int`.
pub(crate) fn int(result: Result<c_int, Errno>) -> c_int {
    result.unwrap_or_else(|error| {
        set(error);
        -1
    })
}

/// A result of type `ssize_t`.
pub(crate) fn size(result: Result<usize, Errno>) -> libc::ssize_t {
    match result {
        Ok(count) => count as libc::ssize_t,
        Err(error) => {
            set(error);
            -1
        }
    }
}

/// What a function of the C library has returned.
pub(crate) fn of(result: c_int) -> Result<c_int, Errno> {
    if result < 0 { Err(get()) } else { Ok(result) }
}
