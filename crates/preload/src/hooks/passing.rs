//! Descriptors that travel over Unix sockets (`SCM_RIGHTS`).

use std::ffi::{c_int, c_uint};
use std::mem::size_of;
use std::time::Duration;

use libc::{mmsghdr, msghdr, ssize_t, timespec};

use crate::kinds::{self, Kind};
use crate::state::carried_by;
use crate::{inherited, process, real};

/// Calls `act` with each descriptor that a message carries.
///
/// # Safety
/// The message's control part is as long as it says.
unsafe fn for_each(message: &msghdr, mut act: impl FnMut(c_int)) {
    if message.msg_control.is_null() || message.msg_controllen == 0 {
        return;
    }
    // SAFETY: the caller's promise; the macros of the C library stay within it.
    unsafe {
        let mut part = libc::CMSG_FIRSTHDR(message);
        while let Some(header) = part.as_ref() {
            if header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(part).cast::<c_int>();
                let bytes = header.cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                for at in 0..bytes / size_of::<c_int>() {
                    act(data.add(at).read_unaligned());
                }
            }
            part = libc::CMSG_NXTHDR(message, part);
        }
    }
}

/// Before a message leaves: sessions in it get carriers.
///
/// # Safety
/// As for `sendmsg`.
unsafe fn leaves(message: *const msghdr) {
    // SAFETY: null, or a message as the application says.
    let Some(message) = (unsafe { message.as_ref() }) else { return };
    // SAFETY: the caller's promise.
    unsafe {
        for_each(message, |fd| {
            kinds::touch(fd);
            if process::known(fd) == Kind::Session {
                if let Some(shared) = process::current() {
                    shared.lock().pass_on(fd);
                }
            }
        });
    }
}

/// After a message has come: what it has brought.
///
/// # Safety
/// As for `recvmsg`, which has succeeded.
unsafe fn came(message: *const msghdr) {
    // SAFETY: null, or a message as the application says.
    let Some(message) = (unsafe { message.as_ref() }) else { return };
    // SAFETY: the kernel has filled the control part.
    unsafe { for_each(message, recognize) };
}

/// `sendmsg(2)` by a socket of the kernel's.
///
/// # Safety
/// As for `sendmsg`.
pub(super) unsafe fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe {
        leaves(message);
        real::sendmsg(fd, message, flags)
    }
}

/// `sendmmsg(2)` by a socket of the kernel's.
///
/// # Safety
/// As for `sendmmsg`.
pub(super) unsafe fn sendmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        if !messages.is_null() {
            (0..count as usize).for_each(|at| leaves(&raw const (*messages.add(at)).msg_hdr));
        }
        real::sendmmsg(fd, messages, count, flags)
    }
}

/// `recvmsg(2)` by a socket of the kernel's.
///
/// # Safety
/// As for `recvmsg`.
pub(super) unsafe fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe {
        let done = real::recvmsg(fd, message, flags);
        if done >= 0 {
            came(message);
        }
        done
    }
}

/// `recvmmsg(2)` by a socket of the kernel's.
///
/// # Safety
/// As for `recvmmsg`.
pub(super) unsafe fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    // SAFETY: the caller's promise; so many have come.
    unsafe {
        let done = real::recvmmsg(fd, messages, count, flags, timeout);
        (0..done.max(0) as usize).for_each(|at| came(&raw const (*messages.add(at)).msg_hdr));
        done
    }
}

/// What a descriptor is that this process has from another one.
fn recognize(fd: c_int) {
    let is_carrier = carried_by(fd, Duration::ZERO).is_some();
    kinds::set(fd, if is_carrier { Kind::Elsewhere } else { Kind::Kernel });
    if !is_carrier {
        inherited::note(fd);
    }
}
