//! Starting another program: it is served too, whatever its environment.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::null;
use std::sync::OnceLock;

use crate::real;

/// Variables that a program started by this one has to have.
const KEPT: [&str; 3] = ["LD_PRELOAD", "MILLRACE_SESSIONS", "MILLRACE_DEBUG"];

/// As they were when this library was loaded.
static SAVED: OnceLock<Vec<(String, CString)>> = OnceLock::new();

fn saved() -> &'static [(String, CString)] {
    SAVED.get_or_init(|| {
        let found = KEPT.iter().filter_map(|name| {
            let value = std::env::var(name).ok()?;
            Some((format!("{name}="), CString::new(format!("{name}={value}")).ok()?))
        });
        found.collect()
    })
}

/// Called by the loader.
extern "C" fn remember() {
    saved();
}

#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER_HOOK: extern "C" fn() = remember;

/// `execve(2)`: a program that clears its environment before, as NGINX does for a new binary, keeps this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    let mut with = Vec::new();
    let mut at = environment;
    // SAFETY: a list of strings that ends with null, as the application says.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            with.push(*at);
            at = at.add(1);
        }
    }
    for (name, whole) in saved() {
        let has = with.iter().any(|entry| {
            // SAFETY: a string of the application's.
            unsafe { CStr::from_ptr(*entry) }.to_bytes().starts_with(name.as_bytes())
        });
        if !has {
            with.push(whole.as_ptr());
        }
    }
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
