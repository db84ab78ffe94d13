//! Sockets that are the kernel's alone, because of what was set of them.

use std::ffi::c_int;

use host::Errno;

use super::{State, word};
use crate::kinds::Kind;
use crate::{errno, real};

/// What the stack does not do, although whoever sets it relies on it: Millrace's ports are none of the kernel's devices; its routes
/// know no marks; what comes from afar would get through; other hosts' addresses are not the stack's; completions would never come.
const DECIDING: [(c_int, c_int); 7] = [
    (libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX),
    (libc::SOL_SOCKET, libc::SO_MARK),
    (libc::SOL_SOCKET, libc::SO_ZEROCOPY),
    (libc::IPPROTO_IP, libc::IP_MINTTL),
    (libc::IPPROTO_IP, libc::IP_TRANSPARENT),
    (libc::IPPROTO_IPV6, libc::IPV6_MINHOPCOUNT),
    (libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT),
];

/// Options that decide the same, and are not read as words: a device's name, and filters.
const ALSO_DECIDING: [c_int; 4] =
    [libc::SO_BINDTODEVICE, libc::SO_ATTACH_FILTER, libc::SO_DETACH_FILTER, libc::SO_ATTACH_BPF];

/// Whether a socket of the kernel's stays that.
pub(crate) fn is_alone(fd: c_int) -> bool {
    let is_set = |(level, name): &(c_int, c_int)| word(fd, *level, *name).is_some_and(|it| it != 0);
    DECIDING.iter().any(is_set) || has_filter(fd)
}

/// Whether a program says what a socket receives (`sk_get_filter`): how long it is, or that this is not told.
fn has_filter(fd: c_int) -> bool {
    let (level, name) = (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER);
    let (nowhere, mut length) = (std::ptr::null_mut(), 0);
    // SAFETY: there is no room, and so nothing is written but the length.
    let done = unsafe { real::getsockopt(fd, level, name, nowhere, &raw mut length) };
    if done < 0 { errno::get() == Errno::ACCES } else { length > 0 }
}

/// Whether an option decides whose a socket is.
pub(crate) fn decides(level: c_int, name: c_int) -> bool {
    DECIDING.contains(&(level, name)) || level == libc::SOL_SOCKET && ALSO_DECIDING.contains(&name)
}

impl State {
    /// Such an option was set of a socket that may be the stack's too: it ends to be so, or begins.
    pub(crate) fn decide(&mut self, fd: c_int, kind: Kind) {
        let own = self.own(fd);
        match (kind, is_alone(own)) {
            (Kind::Listener, true) => self.leave_to_kernel(own),
            // The kernel listens nevertheless.
            (Kind::Listener, false) => drop(self.adopt(own)),
            (Kind::Datagrams, true) => self.leave_datagrams_to_kernel(own),
            (Kind::Datagrams, false) => self.take_datagrams_back(own),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::internal;

    #[test]
    fn a_filter_leaves_a_socket_to_the_kernel() {
        let (level, length) = (libc::SOL_SOCKET, size_of::<libc::sock_fprog>() as u32);
        for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM] {
            let socket = internal::socket(libc::AF_INET, kind).unwrap();
            let fd = socket.as_raw_fd();
            assert!(!is_alone(fd));
            // All gets through.
            let mut filter = libc::sock_filter { code: 6, jt: 0, jf: 0, k: u32::MAX };
            let program = libc::sock_fprog { len: 1, filter: &raw mut filter };
            let (attach, detach) = (libc::SO_ATTACH_FILTER, libc::SO_DETACH_FILTER);
            let at = (&raw const program).cast();
            assert!(decides(level, attach) && decides(level, detach));
            // SAFETY: a program of one instruction.
            assert_eq!(unsafe { real::setsockopt(fd, level, attach, at, length) }, 0);
            assert!(is_alone(fd));
            // SAFETY: a structure that is not looked at.
            assert_eq!(unsafe { real::setsockopt(fd, level, detach, at, length) }, 0);
            assert!(!is_alone(fd));
        }
    }

    #[test]
    fn options_of_other_levels_do_not_decide() {
        assert!(decides(libc::SOL_SOCKET, libc::SO_MARK));
        assert!(decides(libc::SOL_SOCKET, libc::SO_BINDTODEVICE));
        assert!(!decides(libc::IPPROTO_TCP, libc::SO_BINDTODEVICE));
        assert!(!decides(libc::SOL_SOCKET, libc::SO_PRIORITY));
    }
}
