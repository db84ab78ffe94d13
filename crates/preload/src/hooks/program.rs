//! Starting another program: it is served too, whatever its environment.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::null;

use crate::{environment, real};

/// `execve(2)`: a program that clears its environment before, as NGINX does for a new binary, keeps this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(
    path: *const c_char,
    arguments: *const *const c_char,
    variables: *const *const c_char,
) -> c_int {
    let mut with = Vec::new();
    let mut at = variables;
    // SAFETY: a list of strings that ends with null, as the application says.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            with.push(*at);
            at = at.add(1);
        }
    }
    let theirs = with.clone();
    let has = |name: &[u8]| {
        // SAFETY: strings of the application's.
        theirs.iter().any(|entry| unsafe { CStr::from_ptr(*entry) }.to_bytes().starts_with(name))
    };
    with.extend(environment::missing(has).map(CStr::as_ptr));
    with.push(null());
    // SAFETY: the caller's promise, and a list that ends with null.
    unsafe { real::execve(path, arguments, with.as_ptr()) }
}

/// `execv(3)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, arguments: *const *const c_char) -> c_int {
    // SAFETY: the caller's promise, and the process's own environment.
    unsafe { execve(path, arguments, environ.cast()) }
}

unsafe extern "C" {
    static environ: *const *const c_char;
}
