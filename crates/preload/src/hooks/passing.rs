//! Descriptors that travel over Unix sockets (`SCM_RIGHTS`).

use std::ffi::{c_int, c_uint};
use std::mem::size_of;
use std::time::Duration;

use libc::{mmsghdr, msghdr, ssize_t, timespec};

use super::control;
use super::sockets::is_listening;
use crate::kinds::{self, Kind};
use crate::state::carried_by;
use crate::{inherited, memory, process, real};

/// Calls `act` with each descriptor that a message carries.
///
/// # Safety
/// As for [`control::each`].
unsafe fn for_each(message: &msghdr, mut act: impl FnMut(c_int)) {
    // SAFETY: the caller's promise. What is cut off, or not there, is for the kernel to refuse.
    let _ = unsafe {
        control::each(message, |level, kind, data| {
            if (level, kind) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let words = data.chunks_exact(size_of::<c_int>());
                let files = words.filter_map(|word| word.try_into().ok().map(c_int::from_ne_bytes));
                files.for_each(&mut act);
            }
            Ok(())
        })
    };
}

/// Before a message leaves: sessions in it get carriers.
///
/// # Safety
/// As for `sendmsg`.
unsafe fn leaves(message: *const msghdr) {
    if memory::readable(message, size_of::<msghdr>()).is_err() {
        return;
    }
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
    if is_carrier {
        return;
    }
    inherited::note(fd);
    // Whoever has passed a listener on may close it before this process waits for connections, as HAProxy that is replaced.
    if let Some(shared) = is_listening(fd).then(process::attached).flatten() {
        // Where the stack can't, the kernel listens nevertheless.
        let _ = shared.lock().adopt(fd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header's level and kind, in one word.
    const RIGHTS: u64 = (libc::SOL_SOCKET as u64) | (libc::SCM_RIGHTS as u64) << 32;

    /// What a message carries that has these words for its control part.
    fn carried(words: &mut [u64]) -> Vec<c_int> {
        // SAFETY: all zeros are an empty message.
        let mut message: msghdr = unsafe { std::mem::zeroed() };
        message.msg_control = words.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(words);
        let mut files = Vec::new();
        // SAFETY: as many bytes as are said.
        unsafe { for_each(&message, |fd| files.push(fd)) };
        files
    }

    #[test]
    fn nothing_is_read_beyond_the_control_part() {
        assert_eq!(carried(&mut [24, RIGHTS, 7 | 8 << 32]), [7, 8]);
        assert_eq!(carried(&mut [20, RIGHTS, 9]), [9]);
        assert!(carried(&mut [0, RIGHTS, 7]).is_empty());
        assert!(carried(&mut [32, RIGHTS, 7]).is_empty(), "cut off");
        assert!(carried(&mut [1 << 40, RIGHTS, 7]).is_empty(), "longer than any memory");
    }
}
