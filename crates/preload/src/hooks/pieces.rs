//! Reading and writing in pieces, by calls of files: a socket has no offset, for which -1 stands in those that take one.

use std::ffi::c_int;
use std::ptr::null_mut;

use libc::{iovec, msghdr, off_t, ssize_t};

use super::data::{bytes, is_sessions, receive_vector, receiver, send_vector};
use super::datagrams;
use crate::kinds::Kind;
use crate::{errno, process, real, vectors};

/// What a call may say that concerns files on disks, beside `RWF_NOWAIT` (`uapi/linux/fs.h`): sockets pay no heed to it.
const HEEDLESS: c_int = libc::RWF_HIPRI | libc::RWF_DSYNC | libc::RWF_SYNC | libc::RWF_APPEND;

/// A message of these pieces.
fn message(vector: *const iovec, count: usize) -> msghdr {
    let mut message = datagrams::message(&mut iovec { iov_base: null_mut(), iov_len: 0 });
    (message.msg_iov, message.msg_iovlen) = (vector.cast_mut(), count);
    message
}

/// Reads as `recvmsg` does with these flags. `None`: the file is the kernel's.
///
/// # Safety
/// As for `readv`.
unsafe fn read(fd: c_int, vector: *const iovec, count: c_int, flags: c_int) -> Option<ssize_t> {
    let kind = receiver(fd);
    let count = vectors::count(count);
    if kind == Kind::Datagrams {
        let receive = |count| {
            // SAFETY: the caller's promise.
            let pieces = unsafe { vectors::pieces(vector, count, true)? };
            // sock_read_iter
            if pieces.iter().all(|piece| piece.iov_len == 0) {
                return Ok(0);
            }
            // SAFETY: the caller's promise.
            unsafe { datagrams::receive(fd, &mut message(vector, count), flags) }
        };
        return Some(errno::size(count.and_then(receive)));
    }
    if !is_sessions(kind) {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(bytes(count.and_then(|count| unsafe { receive_vector(fd, vector, count, flags) })))
}

/// Writes as `sendmsg` does with these flags. `None`: the file is the kernel's.
///
/// # Safety
/// As for `writev`.
unsafe fn write(fd: c_int, vector: *const iovec, count: c_int, flags: c_int) -> Option<ssize_t> {
    let kind = process::kind(fd);
    let count = vectors::count(count);
    if kind == Kind::Datagrams {
        // SAFETY: the caller's promise.
        let send = |count| unsafe { datagrams::send(fd, &message(vector, count), flags) };
        return Some(errno::size(count.and_then(send)));
    }
    if !is_sessions(kind) {
        return None;
    }
    // SAFETY: the caller's promise.
    let send = |count| unsafe { send_vector(fd, vector, count, flags, None) };
    Some(errno::size(count.and_then(send)))
}

/// `readv(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readv(fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { read(fd, vector, count, 0).unwrap_or_else(|| real::readv(fd, vector, count)) }
}

/// `writev(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { write(fd, vector, count, 0).unwrap_or_else(|| real::writev(fd, vector, count)) }
}

/// The flags of a message for a call with an offset and flags of its own. `None`: it has an offset, or flags of which the
/// kernel is to say what is wrong.
fn as_message(offset: off_t, flags: c_int) -> Option<c_int> {
    let is_known = flags & !(HEEDLESS | libc::RWF_NOWAIT) == 0;
    let waits = flags & libc::RWF_NOWAIT == 0;
    (offset == -1 && is_known).then_some(if waits { 0 } else { libc::MSG_DONTWAIT })
}

/// `preadv2(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn preadv2(
    fd: c_int,
    vector: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe {
        as_message(offset, flags)
            .and_then(|flags| read(fd, vector, count, flags))
            .unwrap_or_else(|| real::preadv2(fd, vector, count, offset, flags))
    }
}

/// `pwritev2(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev2(
    fd: c_int,
    vector: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe {
        as_message(offset, flags)
            .and_then(|flags| write(fd, vector, count, flags))
            .unwrap_or_else(|| real::pwritev2(fd, vector, count, offset, flags))
    }
}

/// `preadv2(2)`, as programs with large files call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn preadv64v2(
    fd: c_int,
    vector: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { preadv2(fd, vector, count, offset, flags) }
}

/// `pwritev2(2)`, as programs with large files call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev64v2(
    fd: c_int,
    vector: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { pwritev2(fd, vector, count, offset, flags) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_for_the_kernel_to_refuse() {
        assert_eq!(as_message(-1, 0), Some(0));
        assert_eq!(as_message(-1, libc::RWF_SYNC), Some(0));
        assert_eq!(as_message(-1, libc::RWF_NOWAIT), Some(libc::MSG_DONTWAIT));
        for (offset, flags) in [(0, 0), (5, libc::RWF_NOWAIT), (-2, 0), (-1, 0x4000)] {
            assert_eq!(as_message(offset, flags), None, "{offset} {flags}");
        }
    }
}
