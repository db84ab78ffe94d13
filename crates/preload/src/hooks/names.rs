//! Other names that the C library has for the same calls: programs that were linked against them use them still.

use std::ffi::{c_int, c_long, c_void};

use libc::{fd_set, nfds_t, pid_t, pollfd, size_t, sockaddr, socklen_t, ssize_t, timeval};

use super::{data, descriptors, lifecycle, poll, select, sockets};

macro_rules! named {
    ($($name:ident => $($path:ident)::+ ($($argument:ident: $type:ty),*) -> $result:ty;)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            // SAFETY: the caller's promise: it is the same call.
            unsafe { $($path)::+($($argument),*) }
        }
    )* };
}

named! {
    __read => data::read(fd: c_int, target: *mut c_void, count: size_t) -> ssize_t;
    __write => data::write(fd: c_int, source: *const c_void, count: size_t) -> ssize_t;
    __send => data::send(fd: c_int, source: *const c_void, count: size_t, flags: c_int) -> ssize_t;
    __connect => sockets::connect(fd: c_int, to: *const sockaddr, length: socklen_t) -> c_int;
    __poll => poll::poll(files: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int;
    __select => select::select(
        count: c_int, reads: *mut fd_set, writes: *mut fd_set, others: *mut fd_set, timeout: *mut timeval
    ) -> c_int;
    __fork => lifecycle::fork() -> pid_t;
    __vfork => lifecycle::vfork() -> pid_t;
    __clone => lifecycle::clone(
        function: *const c_void, stack: *mut c_void, flags: c_int, argument: *mut c_void,
        parent: *mut pid_t, thread: *mut c_void, child: *mut pid_t
    ) -> c_int;
    __fcntl => descriptors::fcntl(fd: c_int, command: c_int, argument: c_long) -> c_int;
    __dup2 => descriptors::dup2(old: c_int, new: c_int) -> c_int;
    __close => descriptors::close(fd: c_int) -> c_int;
}
