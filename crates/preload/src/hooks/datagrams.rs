//! Receiving and sending by UDP sockets, which are the stack's and the kernel's at the same time.

use std::ffi::{c_int, c_void};
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};

use host::{Errno, Incoming, Mask, Outgoing, Received};
use libc::{iovec, msghdr, sockaddr, socklen_t};
use shm::session::Routed;

use super::control::{self, Versions};
use crate::asking::change;
use crate::call::Call;
use crate::kinds::{self, Kind};
use crate::process::{self, Held, Shared};
use crate::sleeping::{again, wait_ready};
use crate::state::{State, bind_anywhere, is_the_kernels, open_datagrams};
use crate::waiting::World;
use crate::{address, call, errno, real, routes, uncancelled, vectors};

mod adopt;
mod connect;

pub(super) use adopt::{adopt, served, watched};
pub(super) use connect::{bound, connect, connected};

/// Of so many datagrams, the kernel's come first once.
const TURNS: u8 = 16;

/// A message of one piece.
pub(super) fn message(piece: &mut iovec) -> msghdr {
    // SAFETY: all zeros are an empty message.
    let mut message: msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (piece, 1);
    message
}

/// The same, to or from an address.
pub(super) fn addressed(piece: &mut iovec, name: *mut sockaddr, length: socklen_t) -> msghdr {
    let mut message = message(piece);
    (message.msg_name, message.msg_namelen) = (name.cast::<c_void>(), length);
    message
}

/// Receives a datagram as `recvmsg` does.
///
/// # Safety
/// As for `recvmsg`.
pub(super) unsafe fn receive(
    fd: c_int,
    message: &mut msghdr,
    flags: c_int,
) -> Result<usize, Errno> {
    call::begins();
    let Some((shared, state)) = served(fd) else {
        // SAFETY: the caller's promise.
        return unsafe { by_kernel(fd, message, flags) };
    };
    let call = Call::new(shared);
    // Let go before the call ends.
    let mut state = state;
    let errors = flags & libc::MSG_ERRQUEUE != 0;
    let wanted = if errors { Mask::ERR } else { Mask::IN };
    let waits = !state.is_nonblocking(fd) && flags & libc::MSG_DONTWAIT == 0 && !errors;
    let alarm = state.timeouts(fd).0;
    if !errors {
        state.take_parked(fd)?;
    }
    loop {
        state = state.await_others(shared, fd);
        // SAFETY: the caller's promise.
        let (after, taken) = unsafe { take(&call, state, fd, message, flags) };
        state = after;
        if taken != Err(Errno::AGAIN) {
            return taken;
        }
        // What has come may lie in the rings yet.
        if state.run() > 0 && state.is_ready(fd, wanted) {
            continue;
        }
        if !waits {
            return Err(Errno::AGAIN);
        }
        state.accompany(fd);
        if state.is_ready(fd, Mask::RDHUP) {
            // Shut down: there is nothing to wait for.
            (message.msg_namelen, message.msg_controllen, message.msg_flags) = (0, 0, 0);
            return Ok(0);
        }
        let (after, waited) = wait_ready(shared, state, fd, Mask::IN, alarm)?;
        state = after;
        again(waited, alarm)?;
    }
}

/// A datagram of either half.
///
/// # Safety
/// As for `recvmsg`.
unsafe fn take<'a>(
    call: &Call<'a>,
    mut state: Held<'a>,
    fd: c_int,
    message: &mut msghdr,
    flags: c_int,
) -> (Held<'a>, Result<usize, Errno>) {
    let Some(known) = state.datagrams(fd) else { return (state, Err(Errno::BADF)) };
    known.turns = (known.turns + 1) % TURNS;
    let (peer, kernel_first) = (known.peer, known.turns == 0);
    let gently = flags | libc::MSG_DONTWAIT;
    if peer == Some(World::Kernel) || peer.is_none() && kernel_first {
        // SAFETY: the caller's promise.
        let taken = unsafe { at_once_by_kernel(fd, message, gently) };
        if taken != Err(Errno::AGAIN) || peer.is_some() {
            note(&mut state, fd, &taken, flags);
            return (state, taken);
        }
    }
    // SAFETY: the caller's promise.
    let (mut state, taken) = unsafe { by_stack(call, state, fd, message, flags) };
    if taken != Err(Errno::AGAIN) || peer.is_some() {
        return (state, taken);
    }
    // SAFETY: the caller's promise.
    let taken = unsafe { at_once_by_kernel(fd, message, gently) };
    note(&mut state, fd, &taken, flags);
    (state, taken)
}

/// Remembers that the kernel has nothing any more; its error queue says nothing about that.
fn note(state: &mut State, fd: c_int, taken: &Result<usize, Errno>, flags: c_int) {
    if taken.is_err() && flags & libc::MSG_ERRQUEUE == 0 {
        let id = state.id_of(fd);
        state.waiters.halves.clear(id);
    }
}

/// # Safety
/// As for `recvmsg`.
unsafe fn by_kernel(fd: c_int, message: &mut msghdr, flags: c_int) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    let received = unsafe { real::recvmsg(fd, message, flags) };
    usize::try_from(received).map_err(|_| errno::get())
}

/// The same, for who has the state: `flags` say that it does not wait.
///
/// # Safety
/// As for `recvmsg`.
unsafe fn at_once_by_kernel(fd: c_int, message: &mut msghdr, flags: c_int) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    let received = unsafe { uncancelled::recvmsg(fd, message, flags) };
    usize::try_from(received).map_err(|_| errno::get())
}

/// # Safety
/// As for `recvmsg`.
unsafe fn by_stack<'a>(
    call: &Call<'a>,
    state: Held<'a>,
    fd: c_int,
    message: &mut msghdr,
    flags: c_int,
) -> (Held<'a>, Result<usize, Errno>) {
    let incoming = Incoming {
        peek: flags & libc::MSG_PEEK != 0,
        urgent: flags & libc::MSG_OOB != 0,
        errors: flags & libc::MSG_ERRQUEUE != 0,
        ..Incoming::default()
    };
    let id = state.id_of(fd);
    // SAFETY: the caller's promise.
    let pieces = match unsafe { vectors::pieces(message.msg_iov, message.msg_iovlen, true) } {
        Ok(pieces) => pieces,
        Err(error) => return (state, Err(error)),
    };
    let (mut state, received) = if let [piece] = pieces {
        // SAFETY: the caller's promise.
        let mut targets = [IoSliceMut::new(unsafe { vectors::target(piece) })];
        call.ask(state, fd, |sessions| sessions.recv(id, &mut targets, incoming))
    } else {
        // SAFETY: the caller's promise.
        let targets = pieces.iter().map(|piece| IoSliceMut::new(unsafe { vectors::target(piece) }));
        let mut targets = targets.collect::<Vec<_>>();
        call.ask(state, fd, |sessions| sessions.recv(id, &mut targets, incoming))
    };
    // SAFETY: the caller's promise.
    let tell = |got| unsafe { tell(&mut state, fd, message, got, flags) };
    let told = received.and_then(tell);
    (state, told)
}

/// Writes what is told of a datagram. Gives its bytes.
///
/// # Safety
/// As for `recvmsg`.
unsafe fn tell(
    state: &mut State,
    fd: c_int,
    message: &mut msghdr,
    Received { bytes, shape }: Received,
    flags: c_int,
) -> Result<usize, Errno> {
    let id = state.id_of(fd);
    let wanted = state.sessions.wanted(id)?;
    let Some(shape) = shape else { return Ok(bytes) };
    if state.peer_world(fd).is_none() {
        state.came_from(shape.from, shape.to.ip());
    }
    message.msg_flags = flags & (libc::MSG_ERRQUEUE | libc::MSG_CMSG_CLOEXEC);
    if shape.length > bytes {
        message.msg_flags |= libc::MSG_TRUNC;
    }
    let (name, length) = (message.msg_name.cast::<sockaddr>(), &raw mut message.msg_namelen);
    if !name.is_null() {
        // SAFETY: the caller's promise.
        unsafe { address::write(shape.from, name, length)? };
    }
    // SAFETY: the caller's promise.
    unsafe { control::write(message, &shape, &wanted) };
    Ok(if flags & libc::MSG_TRUNC != 0 { shape.length } else { bytes })
}

/// Sends a datagram as `sendmsg` does, by the world that has a route to where it goes.
///
/// # Safety
/// As for `sendmsg`.
pub(super) unsafe fn send(fd: c_int, message: &msghdr, flags: c_int) -> Result<usize, Errno> {
    call::begins();
    let (name, length) = (message.msg_name.cast::<sockaddr>(), message.msg_namelen);
    let to = if name.is_null() || length == 0 {
        None
    } else {
        // SAFETY: the caller's promise.
        match unsafe { address::read(name, length) } {
            Ok(Some(to)) if !is_the_kernels(to.ip()) => Some(to),
            // Nonsense, or the host's own.
            // SAFETY: the caller's promise.
            _ => return unsafe { out_by_kernel(fd, message, flags) },
        }
    };
    let shared = if to.is_some() { process::attached() } else { process::current() };
    let way = shared.and_then(|shared| Some((shared, way(shared, fd, to)?)));
    let Some((shared, (mut state, source))) = way else {
        // SAFETY: the caller's promise.
        return unsafe { out_by_kernel(fd, message, flags) };
    };
    let id = state.id_of(fd);
    if to.is_some() && !state.sessions.has_port(id) {
        let (after, bound) =
            change(shared, state, (fd, Kind::Datagrams), |state| bind_anywhere(state, fd));
        state = after;
        bound.unwrap_or(Err(Errno::BADF))?;
    }
    let mut outgoing = Outgoing {
        to,
        source,
        more: flags & libc::MSG_MORE != 0,
        urgent: flags & libc::MSG_OOB != 0,
        ..Outgoing::default()
    };
    // One that is connected nowhere is sent nowhere.
    let end = to.or_else(|| state.sessions.peer(id).ok());
    if let Some(end) = end {
        // SAFETY: the caller's promise.
        unsafe { control::read(message, Versions::of(end), &mut outgoing)? };
    }
    if outgoing.source != source {
        // Linux: no route from there.
        let known = outgoing.source.ok_or(Errno::INVAL)?.to_canonical();
        let (after, has) = routes::has_address(shared, state, known);
        state = after;
        if !has {
            return Err(if known.is_ipv4() { Errno::NETUNREACH } else { Errno::INVAL });
        }
        if kinds::get(fd) != Kind::Datagrams {
            // Another thread has closed it meanwhile.
            return Err(Errno::BADF);
        }
    }
    // SAFETY: the caller's promise.
    let pieces = unsafe { vectors::pieces(message.msg_iov, message.msg_iovlen, false)? };
    if let [piece] = pieces {
        // SAFETY: the caller's promise.
        let source = unsafe { vectors::source(piece) };
        return leave(shared, state, fd, (&[IoSlice::new(source)], outgoing), flags);
    }
    // SAFETY: the caller's promise.
    let pieces = pieces.iter().map(|piece| IoSlice::new(unsafe { vectors::source(piece) }));
    leave(shared, state, fd, (&pieces.collect::<Vec<_>>(), outgoing), flags)
}

/// The lock, and the source address towards a destination, where Millrace has a route to it. `None`: the kernel sends.
fn way(
    shared: &'static Shared,
    fd: c_int,
    to: Option<SocketAddr>,
) -> Option<(Held<'static>, Option<IpAddr>)> {
    let mut state = shared.lock();
    let Some(to) = to else {
        state = state.await_others(shared, fd);
        return (state.peer_world(fd) == Some(World::Millrace)).then_some((state, None));
    };
    let (mut state, routed) = routes::of_datagrams(shared, state, to);
    let Routed::Millrace { source, .. } = routed else { return None };
    if state.datagrams(fd).is_none() || state.is_changing(fd) {
        let (after, opened) =
            change(shared, state, (fd, Kind::Datagrams), |state| open_datagrams(state, fd));
        state = after;
        // Another thread may have closed it meanwhile: the kernel says so.
        if opened != Some(Ok(())) {
            return None;
        }
    }
    (state.peer_world(fd) != Some(World::Kernel)).then_some((state, Some(source)))
}

fn leave(
    shared: &'static Shared,
    state: Held<'static>,
    fd: c_int,
    (pieces, outgoing): (&[IoSlice<'_>], Outgoing),
    flags: c_int,
) -> Result<usize, Errno> {
    let call = Call::new(shared);
    // Let go before the call ends.
    let mut state = state;
    let waits = !state.is_nonblocking(fd) && flags & libc::MSG_DONTWAIT == 0;
    let alarm = state.timeouts(fd).1;
    let id = state.id_of(fd);
    state.take_parked(fd)?;
    loop {
        state = state.await_others(shared, fd);
        let (after, sent) = call.ask(state, fd, |sessions| sessions.send(id, pieces, outgoing));
        state = after;
        match sent {
            Err(Errno::AGAIN) if waits => {}
            sent => {
                state.turn();
                return sent;
            }
        }
        state.turn();
        let (after, waited) = wait_ready(shared, state, fd, Mask::OUT, alarm)?;
        state = after;
        again(waited, alarm)?;
    }
}

/// # Safety
/// As for `sendmsg`.
unsafe fn out_by_kernel(fd: c_int, message: &msghdr, flags: c_int) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    let sent = unsafe { real::sendmsg(fd, message, flags) };
    usize::try_from(sent).map_err(|_| errno::get())
}

#[cfg(test)]
mod tests;
