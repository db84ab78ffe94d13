//! The standard streams where their descriptors are sockets, so that `printf` and `scanf` reach those, too.
//!
//! The C library prints to the stream that `stdout` names, which a program may change, and so may this library: while descriptor 1 is
//! a session, it names a stream of [`stdio`]; else the C library's own. What a program has copied out of the name before stays what
//! it was.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::FILE;

use super::stdio;
use crate::kinds::Kind;
use crate::process;

/// The streams to which names led before, by descriptor. Null: the name leads there.
static OWN: [AtomicPtr<FILE>; 3] = [const { AtomicPtr::new(null_mut()) }; 3];

/// Streams that call this library, by descriptor, once there was a session.
static OURS: [AtomicPtr<FILE>; 3] = [const { AtomicPtr::new(null_mut()) }; 3];

unsafe extern "C" {
    static mut stdin: *mut FILE;
    static mut stdout: *mut FILE;
    static mut stderr: *mut FILE;

    fn fwide(stream: *mut FILE, mode: c_int) -> c_int;
    fn setvbuf(stream: *mut FILE, buffer: *mut c_char, mode: c_int, size: usize) -> c_int;
}

/// The place of a standard stream's name, and what the stream is for.
fn name(fd: c_int) -> Option<(*mut *mut FILE, &'static CStr)> {
    match fd {
        libc::STDIN_FILENO => Some((&raw mut stdin, c"r")),
        libc::STDOUT_FILENO => Some((&raw mut stdout, c"w")),
        libc::STDERR_FILENO => Some((&raw mut stderr, c"w")),
        _ => None,
    }
}

/// Called by the loader's first look, before the program runs.
pub(crate) fn follow_all() {
    (libc::STDIN_FILENO..=libc::STDERR_FILENO).for_each(follow);
}

/// A descriptor stands for another file from now on.
pub(super) fn follow(fd: c_int) {
    let Some((name, mode)) = name(fd) else { return };
    let place = fd.unsigned_abs() as usize;
    let (Some(own), Some(ours)) = (OWN.get(place), OURS.get(place)) else { return };
    let is_session = matches!(process::known(fd), Kind::Session | Kind::Elsewhere);
    match (is_session, own.load(Ordering::Relaxed).is_null()) {
        (true, true) => {
            if ours.load(Ordering::Relaxed).is_null() {
                ours.store(made(fd, mode), Ordering::Relaxed);
            }
            let stream = ours.load(Ordering::Relaxed);
            if !stream.is_null() {
                // SAFETY: a name of the C library's, of which it says that it may be assigned.
                unsafe {
                    own.store(name.read(), Ordering::Relaxed);
                    name.write(stream);
                }
            }
        }
        // What was read ahead would be lost, and this stream reads any file.
        (false, false) if fd != libc::STDIN_FILENO => {
            // SAFETY: the name leads to the stream that was made above, as long as nobody has closed it.
            unsafe {
                libc::fflush(name.read());
                name.write(own.swap(null_mut(), Ordering::Relaxed));
            }
        }
        _ => {}
    }
}

fn made(fd: c_int, mode: &CStr) -> *mut FILE {
    // SAFETY: modes of `fdopen`'s, and then a stream.
    unsafe {
        let stream = stdio::open(fd, mode.as_ptr(), close);
        if fd == libc::STDERR_FILENO && !stream.is_null() {
            // As the C library's own is; and `perror` prints to it, not to a copy of its descriptor.
            setvbuf(stream, null_mut(), libc::_IONBF, 0);
            fwide(stream, -1);
        }
        stream
    }
}

/// Nobody goes back from a stream that the program has closed.
unsafe extern "C" fn close(cookie: *mut c_void) -> c_int {
    let fd = stdio::descriptor(cookie);
    stdio::forget(fd);
    for list in [&OWN, &OURS] {
        if let Some(place) = list.get(fd.unsigned_abs() as usize) {
            place.store(null_mut(), Ordering::Relaxed);
        }
    }
    // SAFETY: no memory is involved.
    unsafe { libc::close(fd) }
}
