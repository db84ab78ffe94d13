//! Reading and writing.

use std::ffi::{c_int, c_void};
use std::io::{IoSlice, IoSliceMut};

use host::{Errno, Received};
use libc::{iovec, size_t, sockaddr, socklen_t, ssize_t};

use super::datagrams;
use super::receive::receive;
use super::send::send as send_by;
use super::sockets::{meet_inherited, open_first};
use crate::kinds::Kind;
use crate::{address, errno, inherited, memory, process, real, vectors};

/// What only the kernel's own calls may say of a message (`MSG_CMSG_COMPAT`), and which other calls pay no heed to.
pub(super) const COMPAT: c_int = c_int::MIN;
/// Pieces that need no memory.
const FEW: usize = 16;
/// Bytes that one call throws away at most.
const THROWN_AWAY: usize = 1 << 20;

/// Whether a call is about a session.
#[inline]
pub(super) fn is_ours(fd: c_int) -> bool {
    is_sessions(process::kind(fd))
}

#[inline]
pub(super) fn is_sessions(kind: Kind) -> bool {
    matches!(kind, Kind::Session | Kind::Stale | Kind::Spare | Kind::Internal)
}

/// Whether it is about a UDP socket, which may be the stack's and the kernel's.
#[inline]
pub(super) fn is_datagrams(fd: c_int) -> bool {
    process::kind(fd) == Kind::Datagrams
}

/// What `fd` is to a call that receives: it may be the first about a socket that the program was started with.
#[inline]
pub(super) fn receiver(fd: c_int) -> Kind {
    let kind = process::kind(fd);
    if kind != Kind::Kernel || !inherited::has_unknown() {
        return kind;
    }
    meet_inherited(|| std::iter::once(fd));
    process::kind(fd)
}

/// # Safety
/// `count` bytes can be written at `target`.
unsafe fn receive_datagram(fd: c_int, target: *mut c_void, count: size_t, flags: c_int) -> ssize_t {
    let mut piece = iovec { iov_base: target, iov_len: count.min(vectors::LONGEST) };
    let message = &mut datagrams::message(&mut piece);
    // SAFETY: the caller's promise.
    errno::size(unsafe { datagrams::receive(fd, message, flags & !COMPAT) })
}

/// # Safety
/// `count` bytes can be written at `target`.
pub(super) unsafe fn receive_into(
    fd: c_int,
    target: *mut c_void,
    count: size_t,
    flags: c_int,
) -> Result<Received, Errno> {
    if target.is_null() && count > 0 {
        // What is thrown away needs no memory.
        if flags & libc::MSG_TRUNC == 0 {
            return Err(Errno::FAULT);
        }
        let mut nowhere = vec![0; count.min(THROWN_AWAY)];
        return receive(fd, &mut [IoSliceMut::new(&mut nowhere)], flags);
    }
    let piece = iovec { iov_base: target, iov_len: count.min(vectors::LONGEST) };
    memory::writable(target, count)?;
    // SAFETY: the caller's promise.
    let target = unsafe { vectors::target(&piece) };
    receive(fd, &mut [IoSliceMut::new(target)], flags)
}

/// # Safety
/// As for [`vectors::pieces`].
pub(super) unsafe fn receive_vector(
    fd: c_int,
    vector: *const iovec,
    count: usize,
    flags: c_int,
) -> Result<Received, Errno> {
    // SAFETY: the caller's promise.
    let pieces = unsafe { vectors::pieces(vector, count, true)? };
    let mut few = [const { None }; FEW];
    if let Some(few) = few.get_mut(..count) {
        for (place, piece) in few.iter_mut().zip(pieces) {
            // SAFETY: the caller's promise.
            *place = Some(IoSliceMut::new(unsafe { vectors::target(piece) }));
        }
    }
    let mut targets: Vec<IoSliceMut<'_>> = if count <= FEW {
        few.into_iter().flatten().collect()
    } else {
        // SAFETY: the caller's promise.
        pieces.iter().map(|piece| IoSliceMut::new(unsafe { vectors::target(piece) })).collect()
    };
    receive(fd, &mut targets, flags)
}

/// # Safety
/// As for [`vectors::pieces`].
pub(super) unsafe fn send_vector(
    fd: c_int,
    vector: *const iovec,
    count: usize,
    flags: c_int,
    to: Option<std::net::SocketAddr>,
) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    let pieces = unsafe { vectors::pieces(vector, count, false)? };
    let mut few = [IoSlice::new(&[]); FEW];
    match few.get_mut(..count) {
        Some(few) => {
            for (place, piece) in few.iter_mut().zip(pieces) {
                // SAFETY: the caller's promise.
                *place = IoSlice::new(unsafe { vectors::source(piece) });
            }
            send_by(fd, few, flags, to)
        }
        None => {
            let sources = pieces.iter();
            // SAFETY: the caller's promise.
            let sources = sources.map(|piece| IoSlice::new(unsafe { vectors::source(piece) }));
            send_by(fd, &mut sources.collect::<Vec<_>>(), flags, to)
        }
    }
}

pub(super) fn bytes(received: Result<Received, Errno>) -> ssize_t {
    errno::size(received.map(|received| received.bytes))
}

/// `read(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, target: *mut c_void, count: size_t) -> ssize_t {
    let kind = receiver(fd);
    if !is_sessions(kind) && kind != Kind::Datagrams {
        // SAFETY: the caller's promise.
        return unsafe { real::read(fd, target, count) };
    }
    if vectors::is_beyond(target, count) {
        return errno::size(Err(Errno::FAULT));
    }
    // Linux: sock_read_iter, after System V.
    if count == 0 && process::is_open(fd) {
        return 0;
    }
    if kind == Kind::Datagrams {
        // SAFETY: the caller's promise.
        return unsafe { receive_datagram(fd, target, count, 0) };
    }
    // SAFETY: the caller's promise.
    bytes(unsafe { receive_into(fd, target, count, 0) })
}

/// `read(2)`, as programs that check their buffers call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __read_chk(
    fd: c_int,
    target: *mut c_void,
    count: size_t,
    _: size_t,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { read(fd, target, count) }
}

/// `recv(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(
    fd: c_int,
    target: *mut c_void,
    count: size_t,
    flags: c_int,
) -> ssize_t {
    let kind = receiver(fd);
    if kind == Kind::Datagrams {
        // SAFETY: the caller's promise.
        return unsafe { receive_datagram(fd, target, count, flags) };
    }
    if !is_sessions(kind) {
        // SAFETY: the caller's promise.
        return unsafe { real::recv(fd, target, count, flags) };
    }
    // SAFETY: the caller's promise.
    bytes(unsafe { receive_into(fd, target, count, flags) })
}

/// `recv(2)`, as programs that check their buffers call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recv_chk(
    fd: c_int,
    target: *mut c_void,
    count: size_t,
    _: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { recv(fd, target, count, flags) }
}

/// `recvfrom(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvfrom(
    fd: c_int,
    target: *mut c_void,
    count: size_t,
    flags: c_int,
    from: *mut sockaddr,
    length: *mut socklen_t,
) -> ssize_t {
    let kind = receiver(fd);
    if kind == Kind::Datagrams {
        // Without a length a datagram is lost, as it is on the kernel, which looks there last.
        let is_there = from.is_null() || memory::writable(length, 1).is_ok();
        let mut piece = iovec { iov_base: target, iov_len: count.min(vectors::LONGEST) };
        // SAFETY: a length as the application says.
        let room = if from.is_null() || !is_there { 0 } else { unsafe { length.read() } };
        let mut message = datagrams::addressed(&mut piece, from, room);
        // SAFETY: the caller's promise.
        let received = unsafe { datagrams::receive(fd, &mut message, flags & !COMPAT) };
        if received.is_ok() && !is_there {
            return errno::size(Err(Errno::FAULT));
        }
        if received.is_ok() && !from.is_null() {
            // SAFETY: as above.
            unsafe { length.write(message.msg_namelen) };
        }
        return errno::size(received);
    }
    if !is_sessions(kind) {
        // SAFETY: the caller's promise.
        return unsafe { real::recvfrom(fd, target, count, flags, from, length) };
    }
    // SAFETY: the caller's promise.
    let received = unsafe { receive_into(fd, target, count, flags) };
    if received.is_ok() && !from.is_null() {
        // SAFETY: the caller's promise.
        if let Err(error) = unsafe { say_none(length) } {
            return errno::size(Err(error));
        }
    }
    bytes(received)
}

/// Says that a stream's data comes with no address (`move_addr_to_user`): what was received is lost if that cannot be said.
///
/// # Safety
/// A length can be read and written there, if anything can.
unsafe fn say_none(length: *mut socklen_t) -> Result<(), Errno> {
    memory::writable(length, size_of::<socklen_t>())?;
    // SAFETY: the caller's promise.
    if i32::try_from(unsafe { length.read() }).is_err() {
        return Err(Errno::INVAL);
    }
    // SAFETY: as above.
    unsafe { length.write(0) };
    Ok(())
}

/// `recvfrom(2)`, as programs that check their buffers call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recvfrom_chk(
    fd: c_int,
    target: *mut c_void,
    count: size_t,
    _: size_t,
    flags: c_int,
    from: *mut sockaddr,
    length: *mut socklen_t,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { recvfrom(fd, target, count, flags, from, length) }
}

/// `write(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, source: *const c_void, count: size_t) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { write_bytes(fd, source, count) }
}

/// # Safety
/// As for `write`.
pub(super) unsafe fn write_bytes(fd: c_int, source: *const c_void, count: size_t) -> ssize_t {
    let kind = process::kind(fd);
    if kind != Kind::Datagrams && !is_sessions(kind) {
        // SAFETY: the caller's promise.
        return unsafe { real::write(fd, source, count) };
    }
    if vectors::is_beyond(source, count) {
        return errno::size(Err(Errno::FAULT));
    }
    // SAFETY: the caller's promise.
    unsafe { send_bytes(fd, source, count, 0, NOWHERE) }
}

/// `send(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(
    fd: c_int,
    source: *const c_void,
    count: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { send_bytes(fd, source, count, flags, NOWHERE) }
}

/// `sendto(2)`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    fd: c_int,
    source: *const c_void,
    count: size_t,
    flags: c_int,
    to: *const sockaddr,
    length: socklen_t,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { send_bytes(fd, source, count, flags, (to, length)) }
}

/// Where bytes go: to a peer, or none is named.
type To = (*const sockaddr, socklen_t);
const NOWHERE: To = (std::ptr::null(), 0);

/// Sends as `sendto` does.
///
/// # Safety
/// As for `sendto`.
unsafe fn send_bytes(
    fd: c_int,
    source: *const c_void,
    count: size_t,
    flags: c_int,
    (to, length): To,
) -> ssize_t {
    // SAFETY: the caller's promise.
    let flags = match unsafe { open_first(fd, flags, (to, length)) } {
        Ok(flags) => flags,
        Err(error) => return errno::size(Err(error)),
    };
    let kind = process::kind(fd);
    if kind == Kind::Datagrams {
        let mut piece = iovec { iov_base: source.cast_mut(), iov_len: count.min(vectors::LONGEST) };
        let message = datagrams::addressed(&mut piece, to.cast_mut(), length);
        if !to.is_null() && !(1..=address::LONGEST).contains(&length) {
            return errno::size(Err(Errno::INVAL));
        }
        // SAFETY: the caller's promise.
        return errno::size(unsafe { datagrams::send(fd, &message, flags & !COMPAT) });
    }
    if !is_sessions(kind) {
        // SAFETY: the caller's promise.
        return unsafe { real::sendto(fd, source, count, flags, to, length) };
    }
    let piece = iovec { iov_base: source.cast_mut(), iov_len: count.min(vectors::LONGEST) };
    // SAFETY: the caller's promise.
    errno::size(unsafe { whither(to, length) }.and_then(|to| {
        // SAFETY: the caller's promise.
        unsafe { send_vector(fd, &raw const piece, 1, flags, to) }
    }))
}

/// # Safety
/// As for [`address::read`].
pub(super) unsafe fn whither(
    to: *const sockaddr,
    length: socklen_t,
) -> Result<Option<std::net::SocketAddr>, Errno> {
    if to.is_null() || length == 0 {
        return Ok(None);
    }
    // move_addr_to_kernel
    if length > address::LONGEST {
        return Err(Errno::INVAL);
    }
    memory::readable(to, length as usize)?;
    // SAFETY: the caller's promise. A stream has its peer: whatever else it is told is ignored.
    Ok(unsafe { address::read(to, length) }.unwrap_or(None))
}
