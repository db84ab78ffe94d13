//! The C library's streams (`FILE`) on sessions, and `dprintf`.
//!
//! The C library reads and writes files of its streams without calling its public functions, so a stream on a socket
//! is one that calls this library, by its public names: `fopencookie(3)`.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null_mut, slice_from_raw_parts};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use host::Errno;
use libc::{FILE, off64_t, size_t, ssize_t};

use crate::arguments::{INTEGERS, List, Overflow, Saved};
use crate::kinds::Kind;
use crate::{errno, process, real};

/// `cookie_io_functions_t`
#[repr(C)]
struct Functions {
    read: unsafe extern "C" fn(*mut c_void, *mut c_char, size_t) -> ssize_t,
    write: unsafe extern "C" fn(*mut c_void, *const c_char, size_t) -> ssize_t,
    seek: unsafe extern "C" fn(*mut c_void, *mut off64_t, c_int) -> c_int,
    close: Close,
}

unsafe extern "C" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut FILE;
    fn vasprintf(text: *mut *mut c_char, format: *const c_char, arguments: *mut c_void) -> c_int;
}

unsafe extern "C" {
    fn ftrylockfile(stream: *mut FILE) -> c_int;
    fn funlockfile(stream: *mut FILE);
    fn fflush_unlocked(stream: *mut FILE) -> c_int;
}

/// Streams that call this library, by their descriptors. Nobody waits for it: in a forked child, a thread that there is none of may
/// have it.
static OPEN: Mutex<Vec<(c_int, AtomicPtr<FILE>)>> = Mutex::new(Vec::new());

/// Where a stream of glibc's has its descriptor (`_fileno`), on machines with pointers of 64 bits.
const DESCRIPTOR: usize = 112;
/// A stream that stands for no file has one of these there.
const NO_FILE: [c_int; 2] = [-1, -2];

/// What is called when a stream is closed.
type Close = unsafe extern "C" fn(*mut c_void) -> c_int;

pub(super) fn descriptor(cookie: *mut c_void) -> c_int {
    cookie.addr() as c_int
}

unsafe extern "C" fn read(cookie: *mut c_void, target: *mut c_char, count: size_t) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { libc::read(descriptor(cookie), target.cast(), count) }
}

/// Writes all, as streams on files do, unless it fails.
unsafe extern "C" fn write(cookie: *mut c_void, source: *const c_char, count: size_t) -> ssize_t {
    // SAFETY: the caller's promise.
    let source = unsafe { &*slice_from_raw_parts(source.cast::<u8>(), count) };
    write_all(descriptor(cookie), source) as ssize_t
}

/// Gives how much was written.
fn write_all(fd: c_int, source: &[u8]) -> usize {
    let mut rest = source;
    while !rest.is_empty() {
        // SAFETY: bytes that can be read.
        let written = unsafe { libc::write(fd, rest.as_ptr().cast(), rest.len()) };
        let Ok(written) = usize::try_from(written) else { break };
        rest = rest.get(written..).unwrap_or_default();
    }
    source.len() - rest.len()
}

/// As `lseek` of a socket.
unsafe extern "C" fn seek(_: *mut c_void, _: *mut off64_t, _: c_int) -> c_int {
    errno::set(Errno(libc::ESPIPE));
    -1
}

unsafe extern "C" fn close(cookie: *mut c_void) -> c_int {
    forget(descriptor(cookie));
    // SAFETY: no memory is involved.
    unsafe { libc::close(descriptor(cookie)) }
}

/// The program closes a stream.
pub(super) fn forget(fd: c_int) {
    let Ok(mut open) = OPEN.try_lock() else { return };
    if let Some(at) = open.iter().position(|(of, _)| *of == fd) {
        open.swap_remove(at);
    }
}

/// Writes what streams hold back: the program ends, and the C library does so only when there are no sessions any more. What another
/// thread is busy with stays.
pub(super) fn flush_all() {
    let Ok(open) = OPEN.try_lock() else { return };
    for (_, stream) in &*open {
        let stream = stream.load(Ordering::Relaxed);
        // SAFETY: a stream that nobody has closed.
        unsafe {
            if ftrylockfile(stream) == 0 {
                fflush_unlocked(stream);
                funlockfile(stream);
            }
        }
    }
}

/// Whether a stream on it has to call this library: it is, or may become, a session.
fn may_be_ours(fd: c_int) -> bool {
    matches!(
        process::known(fd),
        Kind::Fresh | Kind::Session | Kind::Elsewhere | Kind::Datagrams | Kind::Stale
    )
}

/// `fdopen(3)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    if !may_be_ours(fd) {
        // SAFETY: the caller's promise.
        return unsafe { real::fdopen(fd, mode) };
    }
    // SAFETY: the caller's promise.
    unsafe { open(fd, mode, close) }
}

/// A stream on a descriptor that calls this library. Null: there is none.
///
/// # Safety
/// `mode` is one of `fdopen`'s.
pub(super) unsafe fn open(fd: c_int, mode: *const c_char, close: Close) -> *mut FILE {
    let functions = Functions { read, write, seek, close };
    let cookie = std::ptr::without_provenance_mut(fd.unsigned_abs() as usize);
    // SAFETY: the caller's promise.
    let stream = unsafe { fopencookie(cookie, mode, functions) };
    if stream.is_null() {
        return null_mut();
    }
    // SAFETY: glibc's streams have their descriptor there; others have no such number there.
    unsafe {
        let place = stream.byte_add(DESCRIPTOR).cast::<c_int>();
        if NO_FILE.contains(&place.read()) {
            // For `fileno(3)`.
            place.write(fd);
        }
    }
    if let Ok(mut open) = OPEN.try_lock() {
        open.push((fd, AtomicPtr::new(stream)));
    }
    stream
}

/// `vdprintf(3)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdprintf(
    fd: c_int,
    format: *const c_char,
    arguments: *mut c_void,
) -> c_int {
    if !may_be_ours(fd) {
        // SAFETY: the caller's promise.
        return unsafe { real::vdprintf(fd, format, arguments) };
    }
    let mut text = null_mut();
    // SAFETY: the caller's promise.
    let length = unsafe { vasprintf(&raw mut text, format, arguments) };
    let Ok(count) = usize::try_from(length) else { return -1 };
    // SAFETY: so long, as just said.
    let bytes = unsafe { &*slice_from_raw_parts(text.cast::<u8>(), count) };
    let written = write_all(fd, bytes);
    let error = errno::get();
    // SAFETY: just allocated, and used no more.
    unsafe { libc::free(text.cast()) };
    if written < count {
        errno::set(error);
        return -1;
    }
    length
}

/// `vdprintf(3)`, as programs that check their buffers call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __vdprintf_chk(
    fd: c_int,
    _: c_int,
    format: *const c_char,
    arguments: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { vdprintf(fd, format, arguments) }
}

/// Defines a variadic function that prints: `$named` arguments of which `$format` is the last, ahead of others.
macro_rules! prints {
    ($(#[$docs:meta])* $name:ident($($named:ident: $type:ty),*); ($($integer:ident)*); ($($float:ident)*); ($($word:ident)*)) => {
        $(#[$docs])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            fd: c_int, $($named: $type,)* format: *const c_char,
            $($integer: usize,)* $($float: f64,)* $($word: usize),*
        ) -> c_int {
            $(let _ = $named;)*
            let given = [$($integer),*];
            let mut integers = [0; INTEGERS];
            let named = INTEGERS - given.len();
            if let Some(place) = integers.get_mut(named..) {
                place.copy_from_slice(&given);
            }
            let saved = Saved { integers, floats: [$([$float, 0.0]),*] };
            let stack = Overflow([$($word),*]);
            let mut list = List::new(&saved, &stack, named);
            // SAFETY: the caller's promise, and its arguments.
            unsafe { vdprintf(fd, format, (&raw mut list).cast()) }
        }
    };
}

macro_rules! all_print {
    ($($word:ident)*) => {
        #[cfg(target_arch = "x86_64")]
        prints! { /// `dprintf(3)`
            dprintf(); (i2 i3 i4 i5); (f0 f1 f2 f3 f4 f5 f6 f7); ($($word)*) }
        #[cfg(target_arch = "aarch64")]
        prints! { /// `dprintf(3)`
            dprintf(); (i2 i3 i4 i5 i6 i7); (f0 f1 f2 f3 f4 f5 f6 f7); ($($word)*) }
        #[cfg(target_arch = "x86_64")]
        prints! { /// `dprintf(3)`, as programs that check their buffers call it.
            __dprintf_chk(flag: c_int); (i3 i4 i5); (f0 f1 f2 f3 f4 f5 f6 f7); ($($word)*) }
        #[cfg(target_arch = "aarch64")]
        prints! { /// `dprintf(3)`, as programs that check their buffers call it.
            __dprintf_chk(flag: c_int); (i3 i4 i5 i6 i7); (f0 f1 f2 f3 f4 f5 f6 f7); ($($word)*) }
    };
}

// More words than callers write down, and no more of the stack than lies under every function.
all_print! {
    s0 s1 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 s12 s13 s14 s15 s16 s17 s18 s19 s20 s21 s22 s23 s24 s25 s26 s27 s28 s29 s30 s31
    s32 s33 s34 s35 s36 s37 s38 s39 s40 s41 s42 s43 s44 s45 s46 s47
}
