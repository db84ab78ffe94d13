//! Receiving and sending messages, one or several in a call.

use std::ffi::{c_int, c_uint};
use std::slice;

use host::{Errno, Received};
use libc::{mmsghdr, msghdr, ssize_t, timespec};

use super::data::{
    COMPAT, bytes, is_datagrams, is_ours, is_sessions, receive_vector, receiver, send_vector,
    whither,
};
use super::sockets::open_first;
use super::{control, datagrams, passing};
use crate::clock::Alarm;
use crate::kinds::Kind;
use crate::{address, errno, memory, process, vectors};

/// Messages of one call at most (`UIO_MAXIOV`).
const MESSAGES: c_uint = 1024;

/// Whether a message and flags are such as the kernel looks at further (`copy_msghdr_from_user`).
fn is_sound(message: &msghdr, flags: c_int) -> Result<(), Errno> {
    let is_sound = flags & COMPAT == 0 && c_int::try_from(message.msg_namelen).is_ok();
    if is_sound { Ok(()) } else { Err(Errno::INVAL) }
}

/// `recvmsg(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    if memory::writable(message, size_of::<msghdr>()).is_err() {
        return errno::size(Err(Errno::FAULT));
    }
    let kind = receiver(fd);
    // SAFETY: a message as the application says.
    match unsafe { message.as_mut() } {
        Some(message) if is_sessions(kind) => {
            // SAFETY: the caller's promise.
            bytes(unsafe { receive_message(fd, message, flags) })
        }
        Some(message) if kind == Kind::Datagrams => {
            // SAFETY: the caller's promise.
            errno::size(unsafe { receive_either(fd, message, flags) })
        }
        // SAFETY: the caller's promise.
        _ => unsafe { passing::recvmsg(fd, message, flags) },
    }
}

/// # Safety
/// As for `recvmsg`.
unsafe fn receive_message(
    fd: c_int,
    message: &mut msghdr,
    flags: c_int,
) -> Result<Received, Errno> {
    is_sound(message, flags)?;
    // SAFETY: the caller's promise.
    let received = unsafe { receive_vector(fd, message.msg_iov, message.msg_iovlen, flags) }?;
    (message.msg_controllen, message.msg_flags) =
        (0, flags & (libc::MSG_OOB | libc::MSG_CMSG_CLOEXEC));
    match received.shape {
        Some(shape) => {
            let length = &raw mut message.msg_namelen;
            // SAFETY: the caller's promise.
            unsafe { address::write(shape.from, message.msg_name.cast(), length) }?;
            if shape.length > received.bytes {
                message.msg_flags |= libc::MSG_TRUNC;
            }
        }
        None => message.msg_namelen = 0,
    }
    Ok(received)
}

/// # Safety
/// As for `recvmsg`.
unsafe fn receive_either(fd: c_int, message: &mut msghdr, flags: c_int) -> Result<usize, Errno> {
    if is_datagrams(fd) {
        is_sound(message, flags)?;
        // SAFETY: the caller's promise.
        return unsafe { datagrams::receive(fd, message, flags) };
    }
    // SAFETY: the caller's promise.
    unsafe { receive_message(fd, message, flags) }.map(|received| received.bytes)
}

/// `recvmmsg(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    let kind = receiver(fd);
    if !(is_sessions(kind) || kind == Kind::Datagrams) || messages.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { passing::recvmmsg(fd, messages, count, flags, timeout) };
    }
    let count = count.min(MESSAGES) as usize;
    if memory::writable(messages, count).is_err()
        || !timeout.is_null() && memory::writable(timeout, size_of::<timespec>()).is_err()
    {
        return errno::int(Err(Errno::FAULT));
    }
    // SAFETY: null, or a time as the application says.
    let mut timeout = unsafe { timeout.as_mut() };
    let alarm = match Alarm::after_time(timeout.as_deref()) {
        Ok(alarm) => alarm,
        Err(error) => return errno::int(Err(error)),
    };
    // SAFETY: so many, as the application says.
    let list = unsafe { slice::from_raw_parts_mut(messages, count) };
    let mut flags = flags;
    let mut done = 0;
    for message in list {
        // SAFETY: the caller's promise.
        match unsafe { receive_either(fd, &mut message.msg_hdr, flags & !libc::MSG_WAITFORONE) } {
            Ok(received) => message.msg_len = received as c_uint,
            Err(error) if done > 0 => {
                park(fd, error);
                break;
            }
            Err(error) => return errno::int(Err(error)),
        }
        done += 1;
        // The end of a stream.
        if message.msg_len == 0 && message.msg_hdr.msg_iovlen > 0 && is_ours(fd) {
            break;
        }
        if flags & libc::MSG_WAITFORONE != 0 {
            flags |= libc::MSG_DONTWAIT;
        }
        // Linux looks at the time when a message has come, and only then (`do_recvmmsg`).
        if let Some(timeout) = &mut timeout {
            **timeout = alarm.left();
        }
        if alarm.is_over() {
            break;
        }
    }
    done
}

/// Has the next call say what went wrong behind messages that this one gives (`do_recvmmsg`).
fn park(fd: c_int, error: Errno) {
    if matches!(error, Errno::AGAIN | Errno::INTR) {
        return;
    }
    if let Some(shared) = process::current() {
        shared.lock().park(fd, error);
    }
}

/// `sendmsg(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    if memory::readable(message, size_of::<msghdr>()).is_err() {
        return errno::size(Err(Errno::FAULT));
    }
    // SAFETY: a message as the application says.
    let Some(known) = (unsafe { message.as_ref() }) else {
        // SAFETY: the caller's promise.
        return unsafe { passing::sendmsg(fd, message, flags) };
    };
    // SAFETY: the caller's promise.
    let flags = match unsafe { open_first(fd, flags, (known.msg_name.cast(), known.msg_namelen)) } {
        Ok(flags) => flags,
        Err(error) => return errno::size(Err(error)),
    };
    if is_ours(fd) || is_datagrams(fd) {
        // SAFETY: the caller's promise.
        return errno::size(unsafe { send_message(fd, known, flags) });
    }
    // SAFETY: the caller's promise.
    unsafe { passing::sendmsg(fd, message, flags) }
}

/// # Safety
/// As for `sendmsg`.
unsafe fn send_message(fd: c_int, message: &msghdr, flags: c_int) -> Result<usize, Errno> {
    is_sound(message, flags)?;
    // Linux: what is longer than any address is cut off.
    let message = msghdr { msg_namelen: message.msg_namelen.min(address::LONGEST), ..*message };
    if is_datagrams(fd) {
        // SAFETY: the caller's promise.
        return unsafe { datagrams::send(fd, &message, flags) };
    }
    // SAFETY: the caller's promise.
    unsafe { control::check(&message)? };
    // SAFETY: the caller's promise.
    let to = unsafe { whither(message.msg_name.cast(), message.msg_namelen)? };
    // SAFETY: the caller's promise.
    unsafe { send_vector(fd, message.msg_iov, message.msg_iovlen, flags, to) }
}

/// `sendmmsg(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    if !(is_ours(fd) || is_datagrams(fd)) || messages.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { passing::sendmmsg(fd, messages, count.min(MESSAGES), flags) };
    }
    let count = count.min(MESSAGES) as usize;
    if let Err(error) = memory::writable(messages, count) {
        return errno::int(Err(error));
    }
    // SAFETY: so many, as the application says.
    let list = unsafe { slice::from_raw_parts_mut(messages, count) };
    let mut done = 0;
    for message in list {
        // SAFETY: the caller's promise.
        match unsafe { send_message(fd, &message.msg_hdr, flags) } {
            Ok(sent) => message.msg_len = sent as c_uint,
            Err(_) if done > 0 => break,
            Err(error) => return errno::int(Err(error)),
        }
        done += 1;
        // What was taken in part ends the call: the next would follow a hole (`__sys_sendmmsg`).
        // SAFETY: the caller's promise.
        if (message.msg_len as usize) < unsafe { length(&message.msg_hdr) } {
            break;
        }
    }
    done
}

/// How many bytes a message has.
///
/// # Safety
/// As for `sendmsg`, which has succeeded.
unsafe fn length(message: &msghdr) -> usize {
    // SAFETY: the caller's promise.
    let pieces = unsafe { vectors::pieces(message.msg_iov, message.msg_iovlen, false) };
    pieces.map_or(0, |pieces| pieces.iter().map(|piece| piece.iov_len).sum())
}
