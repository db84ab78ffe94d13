//! Sending by a session.

use std::ffi::c_int;
use std::io::IoSlice;

use host::{Errno, Mask, Outgoing};

use crate::asking::Lending;
use crate::call::{self, Call};
use crate::process;
use crate::sleeping::{again, regained, wait_ready};
use crate::state::lease;

/// Sends as `flags` say; waits for room where the socket, or they, let it.
pub(super) fn send(
    fd: c_int,
    data: &mut [IoSlice<'_>],
    flags: c_int,
    to: Option<std::net::SocketAddr>,
) -> Result<usize, Errno> {
    let sent = try_send(fd, data, flags, to);
    if sent == Err(Errno::PIPE) && flags & libc::MSG_NOSIGNAL == 0 {
        // SAFETY: the signal goes to this thread.
        unsafe { libc::raise(libc::SIGPIPE) };
    }
    sent
}

fn try_send(
    fd: c_int,
    data: &mut [IoSlice<'_>],
    flags: c_int,
    to: Option<std::net::SocketAddr>,
) -> Result<usize, Errno> {
    if !process::is_open(fd) {
        return Err(Errno::BADF);
    }
    call::begins();
    let shared = process::current().ok_or(Errno::PIPE)?;
    let outgoing = Outgoing {
        to,
        more: flags & libc::MSG_MORE != 0,
        end_of_record: flags & libc::MSG_EOR != 0,
        urgent: flags & libc::MSG_OOB != 0,
        fast_open: flags & libc::MSG_FASTOPEN != 0,
        ..Outgoing::default()
    };
    let wanted: usize = data.iter().map(|piece| piece.len()).sum();
    let call = Call::new(shared);
    let mut state = shared.lock();
    let mut id = state.id_of(fd);
    let waits = !state.is_nonblocking(fd) && flags & libc::MSG_DONTWAIT == 0;
    let alarm = state.timeouts(fd).1;
    let mut data = data;
    let mut sent = 0;
    state.take_parked(fd)?;
    loop {
        // After data was taken, an error is the next call's to tell; until then `poll` and SO_ERROR do (`sk_err`).
        if sent > 0 && state.sessions.mask(id).has(Mask::ERR) {
            return Ok(sent);
        }
        let (after, done) = call.ask(state, fd, |sessions| sessions.send(id, data, outgoing));
        state = after;
        match done {
            Ok(count) => {
                sent += count;
                state.turn_or_run();
                if sent >= wanted || !waits {
                    return Ok(sent);
                }
                IoSlice::advance_slices(&mut data, count);
            }
            Err(Errno::AGAIN) => {
                // Acknowledgments that make room may lie in the rings yet.
                if state.run() > 0 && state.is_ready(fd, Mask::OUT) {
                    continue;
                }
                if !waits {
                    return if sent > 0 { Ok(sent) } else { Err(Errno::AGAIN) };
                }
                let at = call.wait(&mut state, fd);
                let (after, waited) = wait_ready(shared, state, at, Mask::OUT, alarm)?;
                state = after;
                if waited != Ok(true) && !state.sessions.mask(id).has(Mask::ERR) {
                    // Linux: room too small to be worth waking for is used at the end.
                    let (after, last) =
                        call.ask(state, fd, |sessions| sessions.send(id, data, outgoing));
                    state = after;
                    let last = last.unwrap_or(0);
                    state.turn();
                    sent += last;
                    IoSlice::advance_slices(&mut data, last);
                }
                if waited != Ok(true) && sent > 0 {
                    return Ok(sent);
                }
                again(waited, alarm)?;
            }
            // A connect that has waited for data (`TCP_FASTOPEN_CONNECT`), and for which its ports are used up.
            Err(Errno::ADDRNOTAVAIL) => {
                call.wait(&mut state, fd);
                let (after, leased) = lease(Lending { shared, state });
                state = after.state;
                if !leased {
                    return done;
                }
            }
            Err(Errno::BADF) => {
                call.moved(&mut state);
                state = regained(shared, state, fd).ok_or(Errno::PIPE)?;
                id = state.id_of(fd);
            }
            // The next call says so, too; any other error is said once, and has come just now.
            Err(Errno::PIPE) if sent > 0 => return Ok(sent),
            Err(error) if sent > 0 => {
                state.shared_place(fd).error = error.0;
                return Ok(sent);
            }
            Err(error) => return Err(error),
        }
    }
}
