//! `syscall(2)`, for programs that call the kernel by number.

use std::ffi::{c_int, c_long, c_uint, c_ulong};

use super::{data, descriptors, epoll, messages, poll, sockets};
use crate::real;

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
    let (fd, second, third, fourth) = (a as c_int, b as c_int, c as c_int, d as c_int);
    // SAFETY: the caller's promise: the arguments are those of the call of that number.
    unsafe {
        match number {
            libc::SYS_read => data::read(fd, pointer!(b), c as usize) as c_long,
            libc::SYS_write => data::write(fd, pointer!(b), c as usize) as c_long,
            libc::SYS_readv => data::readv(fd, pointer!(b), third) as c_long,
            libc::SYS_writev => data::writev(fd, pointer!(b), third) as c_long,
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
            libc::SYS_socket => c_long::from(sockets::socket(fd, second, third)),
            libc::SYS_bind => c_long::from(sockets::bind(fd, pointer!(b), c as u32)),
            libc::SYS_listen => c_long::from(sockets::listen(fd, second)),
            libc::SYS_accept => c_long::from(sockets::accept(fd, pointer!(b), pointer!(c))),
            libc::SYS_accept4 => {
                c_long::from(sockets::accept4(fd, pointer!(b), pointer!(c), fourth))
            }
            libc::SYS_connect => c_long::from(sockets::connect(fd, pointer!(b), c as u32)),
            libc::SYS_shutdown => c_long::from(sockets::shutdown(fd, second)),
            libc::SYS_getsockname => {
                c_long::from(sockets::getsockname(fd, pointer!(b), pointer!(c)))
            }
            libc::SYS_getpeername => {
                c_long::from(sockets::getpeername(fd, pointer!(b), pointer!(c)))
            }
            libc::SYS_getsockopt => {
                let value = (pointer!(d), pointer!(e));
                c_long::from(super::options::getsockopt(fd, second, third, value.0, value.1))
            }
            libc::SYS_setsockopt => {
                let value: *mut _ = pointer!(d);
                c_long::from(super::options::setsockopt(fd, second, third, value, e as u32))
            }
            libc::SYS_close => c_long::from(descriptors::close(fd)),
            libc::SYS_dup => c_long::from(descriptors::dup(fd)),
            libc::SYS_dup3 => c_long::from(descriptors::dup3(fd, second, third)),
            libc::SYS_fcntl => c_long::from(descriptors::fcntl(fd, second, c)),
            libc::SYS_ioctl => c_long::from(descriptors::ioctl(fd, b as c_ulong, pointer!(c))),
            libc::SYS_ppoll => {
                let files: *mut _ = pointer!(a);
                c_long::from(poll::ppoll(files, b as libc::nfds_t, pointer!(c), pointer!(d)))
            }
            libc::SYS_epoll_create1 => c_long::from(epoll::epoll_create1(fd)),
            libc::SYS_epoll_ctl => c_long::from(epoll::epoll_ctl(fd, second, third, pointer!(d))),
            libc::SYS_epoll_pwait => {
                c_long::from(epoll::epoll_pwait(fd, pointer!(b), third, fourth, pointer!(e)))
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_dup2 => c_long::from(descriptors::dup2(fd, second)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => c_long::from(poll::poll(pointer!(a), b as libc::nfds_t, third)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => c_long::from(epoll::epoll_wait(fd, pointer!(b), third, fourth)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select => {
                let sets = (pointer!(b), pointer!(c), pointer!(d));
                c_long::from(poll::select(fd, sets.0, sets.1, sets.2, pointer!(e)))
            }
            _ => real::syscall(number, a, b, c, d, e, f),
        }
    }
}
