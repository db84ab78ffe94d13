//! Receiving from a session.

use std::ffi::c_int;
use std::io::IoSliceMut;

use host::{Errno, Incoming, Mask, Received};

use crate::call::{self, Call};
use crate::process;
use crate::sleeping::{again, regained, wait_ready};

/// Receives as `flags` say; waits where the socket, or they, let it.
pub(super) fn receive(
    fd: c_int,
    targets: &mut [IoSliceMut<'_>],
    flags: c_int,
) -> Result<Received, Errno> {
    if !process::is_open(fd) {
        return Err(Errno::BADF);
    }
    call::begins();
    let shared = process::current().ok_or(Errno::CONNRESET)?;
    let mut incoming = Incoming {
        peek: flags & libc::MSG_PEEK != 0,
        discard: flags & libc::MSG_TRUNC != 0,
        urgent: flags & libc::MSG_OOB != 0,
        errors: flags & libc::MSG_ERRQUEUE != 0,
        offset: 0,
    };
    let wanted: usize = targets.iter().map(|target| target.len()).sum();
    let call = Call::new(shared);
    let mut state = shared.lock();
    let mut id = state.id_of(fd);
    let waits = !state.is_nonblocking(fd) && flags & libc::MSG_DONTWAIT == 0;
    let all = waits && flags & libc::MSG_WAITALL != 0 && !incoming.errors;
    let alarm = state.timeouts(fd).0;
    let mut targets = targets;
    let mut has = Received::default();
    let mut looked = false;
    state.take_parked(fd)?;
    loop {
        // After data was taken, an error is the next call's to tell; until then `poll` and SO_ERROR do (`sk_err`).
        if has.bytes > 0
            && state.sessions.mask(id).has(Mask::ERR)
            && state.sessions.pending(id).is_ok_and(|pending| pending <= incoming.offset)
        {
            return Ok(has);
        }
        let (after, got) = call.ask(state, fd, |sessions| sessions.recv(id, targets, incoming));
        state = after;
        match got {
            Ok(got) => {
                let bytes = has.bytes + got.bytes;
                has = Received { bytes, ..got };
                if !all
                    || incoming.urgent
                    || got.bytes == 0
                    || bytes >= wanted
                    || got.shape.is_some()
                {
                    state.settle();
                    return Ok(has);
                }
                if incoming.peek {
                    incoming.offset += got.bytes;
                }
                if !incoming.discard {
                    IoSliceMut::advance_slices(&mut targets, got.bytes);
                }
            }
            Err(Errno::AGAIN) if incoming.errors => return Err(Errno::AGAIN),
            // What has come may lie in the rings yet; whether it has, nobody waits for, however much comes for others.
            Err(Errno::AGAIN | Errno::INVAL) if incoming.urgent => {
                if std::mem::replace(&mut looked, true) || state.run() == 0 {
                    return got;
                }
            }
            Err(Errno::AGAIN) => {
                // What has come may lie in the rings yet.
                if state.run() > 0 && state.is_ready(fd, Mask::IN) {
                    continue;
                }
                if !waits {
                    return Err(Errno::AGAIN);
                }
                let at = call.wait(&mut state, fd);
                let (after, waited) = wait_ready(shared, state, at, Mask::IN, alarm)?;
                state = after;
                if waited != Ok(true) && has.bytes > 0 {
                    return Ok(has);
                }
                again(waited, alarm)?;
            }
            Err(Errno::BADF) => {
                call.moved(&mut state);
                state = regained(shared, state, fd).ok_or(Errno::CONNRESET)?;
                id = state.id_of(fd);
            }
            Err(error) if has.bytes > 0 => {
                state.shared_place(fd).error = error.0;
                return Ok(has);
            }
            Err(error) => return Err(error),
        }
    }
}
