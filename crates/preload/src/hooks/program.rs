//! Starting another program: it is served too, whatever its environment.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::null;

use libc::{FILE, pid_t, posix_spawn_file_actions_t, posix_spawnattr_t};

use super::lifecycle::share;
use crate::kinds::Kind;
use crate::{environment, process, real};

/// The list of an environment, with what this library needs.
///
/// # Safety
/// `variables` is null, or a list of strings that ends with null; they are there as long as the list is used.
unsafe fn completed(variables: *const *const c_char) -> Vec<*const c_char> {
    let mut with = Vec::new();
    let mut at = variables;
    // SAFETY: the caller's promise.
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
    with
}

/// The program to be started has this process's sessions, if they survive that. Where it does not start, they come back when they
/// are used.
fn leave_to_program() {
    if let Some(shared) = process::current() {
        shared.lock().deposit_all();
    }
}

/// `execve(2)`: a program that clears its environment before, as NGINX does for a new binary, keeps this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(
    path: *const c_char,
    arguments: *const *const c_char,
    variables: *const *const c_char,
) -> c_int {
    leave_to_program();
    // SAFETY: the caller's promise, and a list that ends with null.
    unsafe { real::execve(path, arguments, completed(variables).as_ptr()) }
}

/// `execvpe(3)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(
    file: *const c_char,
    arguments: *const *const c_char,
    variables: *const *const c_char,
) -> c_int {
    leave_to_program();
    // SAFETY: as above.
    unsafe { real::execvpe(file, arguments, completed(variables).as_ptr()) }
}

/// `execvp(3)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, arguments: *const *const c_char) -> c_int {
    // SAFETY: the caller's promise, and the process's own environment.
    unsafe { execvpe(file, arguments, environ.cast()) }
}

/// `fexecve(3)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fexecve(
    file: c_int,
    arguments: *const *const c_char,
    variables: *const *const c_char,
) -> c_int {
    leave_to_program();
    // SAFETY: as above.
    unsafe { real::fexecve(file, arguments, completed(variables).as_ptr()) }
}

/// `execveat(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execveat(
    folder: c_int,
    path: *const c_char,
    arguments: *const *const c_char,
    variables: *const *const c_char,
    flags: c_int,
) -> c_int {
    leave_to_program();
    // SAFETY: as above.
    unsafe { real::execveat(folder, path, arguments, completed(variables).as_ptr(), flags) }
}

/// `posix_spawn(3)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    child: *mut pid_t,
    path: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    arguments: *const *mut c_char,
    variables: *const *mut c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { spawn(real::posix_spawn, child, path, (actions, attributes), (arguments, variables)) }
}

/// `posix_spawnp(3)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    child: *mut pid_t,
    file: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    arguments: *const *mut c_char,
    variables: *const *mut c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { spawn(real::posix_spawnp, child, file, (actions, attributes), (arguments, variables)) }
}

/// One of the C library's two functions that start a program in a new process.
type Spawn = unsafe fn(
    *mut pid_t,
    *const c_char,
    *const posix_spawn_file_actions_t,
    *const posix_spawnattr_t,
    *const *mut c_char,
    *const *mut c_char,
) -> c_int;

/// # Safety
/// As for `posix_spawn`.
unsafe fn spawn(
    by: Spawn,
    child: *mut pid_t,
    file: *const c_char,
    (actions, attributes): (*const posix_spawn_file_actions_t, *const posix_spawnattr_t),
    (arguments, variables): (*const *mut c_char, *const *mut c_char),
) -> c_int {
    share();
    // SAFETY: the caller's promise, and a list that ends with null.
    unsafe {
        let variables = completed(variables.cast());
        by(child, file, actions, attributes, arguments, variables.as_ptr().cast())
    }
}

/// `system(3)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn system(command: *const c_char) -> c_int {
    share_streams();
    // SAFETY: the caller's promise.
    unsafe { real::system(command) }
}

/// `popen(3)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn popen(command: *const c_char, mode: *const c_char) -> *mut FILE {
    share_streams();
    // SAFETY: the caller's promise.
    unsafe { real::popen(command, mode) }
}

/// A shell has the standard streams, which may be a connection by now, as where a server has `dup2` put one there.
fn share_streams() {
    let mut streams = libc::STDIN_FILENO..=libc::STDERR_FILENO;
    if streams.any(|fd| process::known(fd) == Kind::Session) {
        share();
    }
}

/// `execv(3)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, arguments: *const *const c_char) -> c_int {
    // SAFETY: the caller's promise, and the process's own environment.
    unsafe { execve(path, arguments, environ.cast()) }
}

unsafe extern "C" {
    /// The C library writes it, too: `setenv`, `clearenv`.
    static mut environ: *const *const c_char;
}
