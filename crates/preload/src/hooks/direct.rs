//! `syscall(2)`, for programs that call the kernel by number.

use std::ffi::{c_int, c_long, c_uint, c_ulong};
use std::ptr::null;

use host::Errno;
use libc::{sigset_t, timespec};

use super::{
    data, descriptors, epoll, files, messages, options, pieces, poll, program, select, sockets,
};
use crate::clock::Alarm;
use crate::{environment, errno, memory, real};

/// Bytes of the kernel's set of signals.
const SET: usize = 8;

/// The arguments of a call, as they came.
type Arguments = [c_long; 6];

/// Calls of one subject. `None`: it is none of them.
type Group = unsafe fn(c_long, Arguments) -> Option<c_long>;

const GROUPS: [Group; 5] = [move_data, use_sockets, use_descriptors, wait, begin];

/// An argument as what it stands for.
macro_rules! pointer {
    ($argument:expr) => {
        $argument as usize as *mut _
    };
}

/// `syscall(2)`: the calls about sockets and descriptors are those of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    // SAFETY: the caller's promise: the arguments are those of the call of that number.
    let ours = GROUPS.iter().find_map(|group| unsafe { group(number, [a, b, c, d, e, f]) });
    // SAFETY: as above.
    ours.unwrap_or_else(|| unsafe { real::syscall(number, a, b, c, d, e, f) })
}

/// Calls that receive and send.
///
/// # Safety
/// The arguments are those of the call of that number.
unsafe fn move_data(number: c_long, [a, b, c, d, e, f]: Arguments) -> Option<c_long> {
    let (fd, second, third, fourth) = (a as c_int, b as c_int, c as c_int, d as c_int);
    // SAFETY: the caller's promise.
    Some(unsafe {
        match number {
            libc::SYS_read => data::read(fd, pointer!(b), c as usize) as c_long,
            libc::SYS_write => data::write(fd, pointer!(b), c as usize) as c_long,
            libc::SYS_readv => pieces::readv(fd, pointer!(b), third) as c_long,
            libc::SYS_writev => pieces::writev(fd, pointer!(b), third) as c_long,
            // Of the offset's two halves, the first is all where words have 64 bits.
            libc::SYS_preadv2 => pieces::preadv2(fd, pointer!(b), third, d, f as c_int) as c_long,
            libc::SYS_pwritev2 => pieces::pwritev2(fd, pointer!(b), third, d, f as c_int) as c_long,
            libc::SYS_recvfrom => {
                let from = (pointer!(e), pointer!(f));
                data::recvfrom(fd, pointer!(b), c as usize, fourth, from.0, from.1) as c_long
            }
            libc::SYS_sendto => {
                data::sendto(fd, pointer!(b), c as usize, fourth, pointer!(e), f as u32) as c_long
            }
            libc::SYS_recvmsg => messages::recvmsg(fd, pointer!(b), third) as c_long,
            libc::SYS_sendmsg => messages::sendmsg(fd, pointer!(b), third) as c_long,
            libc::SYS_recvmmsg => {
                c_long::from(messages::recvmmsg(fd, pointer!(b), c as c_uint, fourth, pointer!(e)))
            }
            libc::SYS_sendmmsg => {
                c_long::from(messages::sendmmsg(fd, pointer!(b), c as c_uint, fourth))
            }
            libc::SYS_sendfile => files::sendfile(fd, second, pointer!(c), d as usize) as c_long,
            libc::SYS_splice => {
                let offsets = (pointer!(b), pointer!(d));
                files::splice(fd, offsets.0, third, offsets.1, e as usize, f as c_uint) as c_long
            }
            _ => return None,
        }
    })
}

/// Calls that make sockets what they are, and ask.
///
/// # Safety
/// As for [`move_data`].
unsafe fn use_sockets(number: c_long, [a, b, c, d, e, _]: Arguments) -> Option<c_long> {
    let (fd, second, third, fourth) = (a as c_int, b as c_int, c as c_int, d as c_int);
    // SAFETY: the caller's promise.
    let done = unsafe {
        match number {
            libc::SYS_socket => sockets::socket(fd, second, third),
            libc::SYS_bind => sockets::bind(fd, pointer!(b), c as u32),
            libc::SYS_listen => sockets::listen(fd, second),
            libc::SYS_accept => sockets::accept(fd, pointer!(b), pointer!(c)),
            libc::SYS_accept4 => sockets::accept4(fd, pointer!(b), pointer!(c), fourth),
            libc::SYS_connect => sockets::connect(fd, pointer!(b), c as u32),
            libc::SYS_shutdown => sockets::shutdown(fd, second),
            libc::SYS_getsockname => sockets::getsockname(fd, pointer!(b), pointer!(c)),
            libc::SYS_getpeername => sockets::getpeername(fd, pointer!(b), pointer!(c)),
            libc::SYS_getsockopt => {
                options::getsockopt(fd, second, third, pointer!(d), pointer!(e))
            }
            libc::SYS_setsockopt => {
                let value: *mut _ = pointer!(d);
                options::setsockopt(fd, second, third, value, e as u32)
            }
            _ => return None,
        }
    };
    Some(c_long::from(done))
}

/// Calls about descriptors.
///
/// # Safety
/// As for [`move_data`].
unsafe fn use_descriptors(number: c_long, [a, b, c, ..]: Arguments) -> Option<c_long> {
    let (fd, second, third) = (a as c_int, b as c_int, c as c_int);
    // SAFETY: the caller's promise.
    let done = unsafe {
        match number {
            libc::SYS_close => descriptors::close(fd),
            libc::SYS_close_range => descriptors::close_range(a as c_uint, b as c_uint, third),
            libc::SYS_dup => descriptors::dup(fd),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_dup2 => descriptors::dup2(fd, second),
            libc::SYS_dup3 => descriptors::dup3(fd, second, third),
            libc::SYS_fcntl => descriptors::fcntl(fd, second, c),
            libc::SYS_ioctl => descriptors::ioctl(fd, b as c_ulong, pointer!(c)),
            libc::SYS_unshare => descriptors::unshare(fd),
            _ => return None,
        }
    };
    Some(c_long::from(done))
}

/// Calls that wait for several files.
///
/// # Safety
/// As for [`move_data`].
unsafe fn wait(number: c_long, [a, b, c, d, e, f]: Arguments) -> Option<c_long> {
    let (fd, second, third, fourth) = (a as c_int, b as c_int, c as c_int, d as c_int);
    // SAFETY: the caller's promise.
    let done = unsafe {
        match number {
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_create => epoll::epoll_create(fd),
            libc::SYS_epoll_create1 => epoll::epoll_create1(fd),
            libc::SYS_epoll_ctl => epoll::epoll_ctl(fd, second, third, pointer!(d)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => epoll::epoll_wait(fd, pointer!(b), third, fourth),
            libc::SYS_epoll_pwait if is_set(e, f) => {
                epoll::epoll_pwait(fd, pointer!(b), third, fourth, pointer!(e))
            }
            libc::SYS_epoll_pwait2 if is_set(e, f) => {
                epoll::epoll_pwait2(fd, pointer!(b), third, pointer!(d), pointer!(e))
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => poll::poll(pointer!(a), b as libc::nfds_t, third),
            libc::SYS_ppoll if is_set(d, e) => telling(pointer!(c), || {
                poll::ppoll(pointer!(a), b as libc::nfds_t, pointer!(c), pointer!(d))
            }),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select => {
                select::select(fd, pointer!(b), pointer!(c), pointer!(d), pointer!(e))
            }
            libc::SYS_pselect6 => {
                let mask = signals(pointer!(f))?;
                telling(pointer!(e), || {
                    select::pselect(fd, pointer!(b), pointer!(c), pointer!(d), pointer!(e), mask)
                })
            }
            // What a ring does with a session's descriptor, it does with the placeholder: libuv registers sockets by one.
            libc::SYS_io_uring_setup if !environment::allows_io_uring() => {
                // As where it is forbidden (`kernel.io_uring_disabled`).
                errno::int(Err(Errno::PERM))
            }
            _ => return None,
        }
    };
    Some(c_long::from(done))
}

/// Makes a call that waits, and writes what is left of its time, as the kernel does (`poll_select_finish`), and the C library's functions
/// do not.
///
/// # Safety
/// A time as the call takes it.
unsafe fn telling(time: *mut timespec, call: impl FnOnce() -> c_int) -> c_int {
    if time.is_null() || memory::writable(time, size_of::<timespec>()).is_err() {
        return call();
    }
    // SAFETY: the caller's promise.
    let alarm = Alarm::after_time(Some(unsafe { &*time }));
    let done = call();
    if let Ok(alarm) = alarm {
        // SAFETY: the caller's promise.
        unsafe { time.write(alarm.left()) };
    }
    done
}

/// Calls that begin processes and programs.
///
/// # Safety
/// As for [`move_data`].
unsafe fn begin(number: c_long, [a, b, c, d, e, _]: Arguments) -> Option<c_long> {
    // SAFETY: the caller's promise.
    let done = unsafe {
        match number {
            #[cfg(target_arch = "x86_64")]
            libc::SYS_fork | libc::SYS_vfork => super::lifecycle::fork(),
            libc::SYS_execve => program::execve(pointer!(a), pointer!(b), pointer!(c)),
            libc::SYS_execveat => {
                program::execveat(a as c_int, pointer!(b), pointer!(c), pointer!(d), e as c_int)
            }
            _ => return None,
        }
    };
    Some(c_long::from(done))
}

/// The set of signals of `pselect6`, which says where it is and how long. `None`: the kernel is to say what is wrong.
///
/// # Safety
/// `place` is null, or that can be read there if anything can.
unsafe fn signals(place: *mut [usize; 2]) -> Option<*const sigset_t> {
    if place.is_null() {
        return Some(null());
    }
    memory::readable(place, size_of::<[usize; 2]>()).ok()?;
    // SAFETY: the caller's promise.
    let [set, length] = unsafe { place.read_unaligned() };
    is_set(set as c_long, length as c_long).then_some(set as *const sigset_t)
}

/// Whether a set of signals is none, or as long as the kernel's are. Otherwise, the kernel is to say what is wrong.
fn is_set(set: c_long, length: c_long) -> bool {
    set == 0 || length as usize == SET
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_refused_as_where_they_are_forbidden() {
        // SAFETY: the kernel would find no parameters, and say so.
        let made = unsafe { syscall(libc::SYS_io_uring_setup, 4, 0, 0, 0, 0, 0) };
        assert_eq!((made, errno::get()), (-1, Errno::PERM));
    }
}
