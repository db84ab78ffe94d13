//! The C library's own functions. A hook never calls `libc::f` for a name that is hooked: that would be itself.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{
    epoll_event, fd_set, iovec, mmsghdr, msghdr, nfds_t, off_t, pid_t, pollfd,
    posix_spawn_file_actions_t, posix_spawnattr_t, sigset_t, size_t, sockaddr, socklen_t, ssize_t,
    timespec, timeval,
};

/// The next function of that name behind this library; null when there is none.
fn find(name: &CStr) -> *mut c_void {
    // SAFETY: a string of C's; RTLD_NEXT asks for the library behind this one.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// A name as C has it.
const fn named(name_and_zero: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name_and_zero.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"",
    }
}

macro_rules! real {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => { $(
        /// # Safety
        /// As the function of the C library.
        #[inline]
        pub(crate) unsafe fn $name($($arg: $type),*) -> $result {
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            let mut found = FOUND.load(Ordering::Relaxed);
            if found.is_null() {
                found = find(const { named(concat!(stringify!($name), "\0")) });
                if found.is_null() {
                    crate::errno::set(host::Errno(libc::ENOSYS));
                    return -1;
                }
                FOUND.store(found, Ordering::Relaxed);
            }
            // A thread that is cancelled in it (`pthread_cancel`) leaves it by unwinding.
            type Function = unsafe extern "C-unwind" fn($($type),*) -> $result;
            // SAFETY: the C library's function of that name has this signature; a variadic one finds its arguments where
            // fixed ones of these types are passed (System V on x86-64, AAPCS64).
            let function = unsafe { std::mem::transmute::<*mut c_void, Function>(found) };
            // SAFETY: the caller's promise.
            unsafe { function($($arg),*) }
        }
    )* };
}

/// Functions that make a stream, whose failure is null.
macro_rules! streams {
    ($(fn $name:ident($first:ident: $type:ty);)*) => { $(
        /// # Safety
        /// As the function of the C library.
        pub(crate) unsafe fn $name($first: $type, mode: *const c_char) -> *mut libc::FILE {
            let found = find(const { named(concat!(stringify!($name), "\0")) });
            if found.is_null() {
                return std::ptr::null_mut();
            }
            type Function = unsafe extern "C" fn($type, *const c_char) -> *mut libc::FILE;
            // SAFETY: the C library's function of that name has this signature.
            let function = unsafe { std::mem::transmute::<*mut c_void, Function>(found) };
            // SAFETY: the caller's promise.
            unsafe { function($first, mode) }
        }
    )* };
}

streams! {
    fn fdopen(fd: c_int);
    fn popen(command: *const c_char);
}

real! {
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn bind(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
    fn listen(fd: c_int, backlog: c_int) -> c_int;
    fn accept4(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int;
    fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
    fn getsockname(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    fn getpeername(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    fn getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut socklen_t) -> c_int;
    fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t) -> c_int;
    fn shutdown(fd: c_int, how: c_int) -> c_int;
    fn close(fd: c_int) -> c_int;
    fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    fn read(fd: c_int, target: *mut c_void, count: size_t) -> ssize_t;
    fn readv(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t;
    fn pread(fd: c_int, target: *mut c_void, count: size_t, offset: off_t) -> ssize_t;
    fn preadv2(fd: c_int, pieces: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;
    fn pwritev2(fd: c_int, pieces: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;
    fn recv(fd: c_int, target: *mut c_void, count: size_t, flags: c_int) -> ssize_t;
    fn recvfrom(fd: c_int, target: *mut c_void, count: size_t, flags: c_int, address: *mut sockaddr, length: *mut socklen_t) -> ssize_t;
    fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t;
    fn recvmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec) -> c_int;
    fn write(fd: c_int, source: *const c_void, count: size_t) -> ssize_t;
    fn writev(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t;
    fn sendto(fd: c_int, source: *const c_void, count: size_t, flags: c_int, address: *const sockaddr, length: socklen_t) -> ssize_t;
    fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t;
    fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int;
    fn sendfile(out: c_int, input: c_int, offset: *mut off_t, count: size_t) -> ssize_t;
    fn splice(input: c_int, input_offset: *mut i64, out: c_int, out_offset: *mut i64, count: size_t, flags: c_uint) -> ssize_t;
    fn tee(input: c_int, out: c_int, count: size_t, flags: c_uint) -> ssize_t;
    fn dup(fd: c_int) -> c_int;
    fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int;
    fn dup2(old: c_int, new: c_int) -> c_int;
    fn fcntl(fd: c_int, command: c_int, argument: c_long) -> c_int;
    fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int;
    fn epoll_create1(flags: c_int) -> c_int;
    fn epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int;
    fn epoll_pwait(epoll: c_int, events: *mut epoll_event, most: c_int, timeout: c_int, mask: *const sigset_t) -> c_int;
    fn epoll_pwait2(epoll: c_int, events: *mut epoll_event, most: c_int, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    fn ppoll(files: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    fn pselect(count: c_int, reads: *mut fd_set, writes: *mut fd_set, others: *mut fd_set, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    fn select(count: c_int, reads: *mut fd_set, writes: *mut fd_set, others: *mut fd_set, timeout: *mut timeval) -> c_int;
    fn execve(path: *const c_char, arguments: *const *const c_char, environment: *const *const c_char) -> c_int;
    fn syscall(number: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long, f: c_long) -> c_long;
    fn fork() -> pid_t;
    fn clone(function: *const c_void, stack: *mut c_void, flags: c_int, argument: *mut c_void, parent: *mut pid_t, thread: *mut c_void, child: *mut pid_t) -> c_int;
    fn chroot(path: *const c_char) -> c_int;
    fn _exit(status: c_int) -> c_int;
    fn unshare(flags: c_int) -> c_int;
    fn execveat(folder: c_int, path: *const c_char, arguments: *const *const c_char, environment: *const *const c_char, flags: c_int) -> c_int;
    fn execvpe(file: *const c_char, arguments: *const *const c_char, environment: *const *const c_char) -> c_int;
    fn fexecve(file: c_int, arguments: *const *const c_char, environment: *const *const c_char) -> c_int;
    fn system(command: *const c_char) -> c_int;
    fn posix_spawn(child: *mut pid_t, path: *const c_char, actions: *const posix_spawn_file_actions_t, attributes: *const posix_spawnattr_t, arguments: *const *mut c_char, environment: *const *mut c_char) -> c_int;
    fn posix_spawnp(child: *mut pid_t, file: *const c_char, actions: *const posix_spawn_file_actions_t, attributes: *const posix_spawnattr_t, arguments: *const *mut c_char, environment: *const *mut c_char) -> c_int;
    fn vdprintf(fd: c_int, format: *const c_char, arguments: *mut c_void) -> c_int;
    fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
}
