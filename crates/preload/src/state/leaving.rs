//! What a process leaves behind when it ends, and a listener that it closes.

use std::ffi::c_int;
use std::time::Duration;

use client::Error;
use host::Parcel;
use shm::session::MOST_WAITS;

use super::State;
use super::asking::Asks;
use crate::address::id;
use crate::kinds::{self, Kind};
use crate::{clock, real, report};

/// How often it is looked whether the handshakes at a listener that closes are over, and the time between two looks.
const HANDSHAKES: usize = 20;
const BREATH: Duration = Duration::from_millis(1);
/// Connections that are given to the daemon at a time: a batch that is more than it takes is refused as a whole.
const BATCH: usize = 256;
/// How long packets for connections that were given away may still come: ns.
const HELD: u64 = 2_000_000_000;

/// Gives handshakes that are under way at a listener the time to end: those that are handed over wait for a segment to come
/// again.
pub(super) fn await_handshakes<S: Asks>(mut state: S, fd: c_int) -> S {
    for _ in 0..HANDSHAKES {
        state.run();
        let (after, has_some) = state.ask(|sessions| Ok(sessions.has_handshakes(id(fd))));
        state = after;
        if has_some != Ok(true) {
            break;
        }
        state = state.pause(BREATH);
    }
    state
}

impl State {
    /// Everything ends: the daemon goes on with what was written and not sent, and with what other processes have too. Gives whether
    /// nothing is left to wait for.
    pub(crate) fn leave(&mut self) -> bool {
        self.close_streams();
        self.run();
        let listeners: Vec<_> = self.listeners.keys().copied().collect();
        for fd in listeners {
            self.hand_over(fd);
        }
        for own in self.session_descriptors() {
            if !self.carriers.contains_key(&own) || !self.deposit(own) {
                self.sessions.close(id(own));
            }
        }
        self.turn();
        self.abandon()
    }

    /// Another program takes this one's place, or fails to: the daemon has all sessions meanwhile, and closes those that the
    /// program does not have.
    pub(crate) fn deposit_all(&mut self) {
        for own in self.session_descriptors() {
            if self.carry(own) && self.deposit(own) {
                self.let_go(own);
            }
        }
        self.run();
        self.abandon();
    }

    /// Leaves connections that are closed, and not over, to the daemon. Gives whether it has taken all but those in TIME-WAIT,
    /// which have nothing to lose.
    fn abandon(&mut self) -> bool {
        let now = clock::now();
        self.leave_time_waits(now);
        let parcels = self.sessions.export_closed(now);
        if parcels.is_empty() {
            return true;
        }
        self.hold(&parcels, now);
        let stack = self.attachment.number();
        // Those that it cannot take, it resets.
        let refused = in_batches(&parcels, |batch| self.attachment.link.abandon(stack, now, batch));
        for batch in &refused {
            self.take_back(batch, now);
        }
        refused.is_empty()
    }

    fn leave_time_waits(&mut self, now: u64) {
        let all = self.sessions.export_time_waits(now, now + HELD);
        let stack = self.attachment.number();
        for batch in all.chunks(MOST_WAITS) {
            // Where the daemon does not take one, its peer is reset if it has not heard the last acknowledgment. Without room for
            // any, the others need not be shown.
            if matches!(self.attachment.link.wait_out(stack, now, batch), Ok(0) | Err(_)) {
                return;
            }
        }
    }

    /// Connections that wait at a listener are for others who serve there.
    pub(super) fn hand_over(&mut self, fd: c_int) {
        let Some(number) = self.listeners.get(&fd).and_then(|listener| listener.number) else {
            return;
        };
        let now = clock::now();
        let parcels = self.sessions.export_unaccepted(id(fd), now);
        self.hand(number, &parcels, now);
    }

    /// They were exported at `now` for the other processes of a listener.
    pub(super) fn hand(&mut self, number: u32, parcels: &[Parcel], now: u64) {
        if parcels.is_empty() {
            return;
        }
        self.hold(parcels, now);
        let stack = self.attachment.number();
        let hand = |batch: &[&[u8]]| self.attachment.link.hand(stack, number, now, batch);
        for batch in in_batches(parcels, hand) {
            // They wait here again, and are reset when the listener closes.
            self.take_back(batch, now);
        }
    }

    /// Standard streams that the C library has closed without calling its public functions: their numbers may be taken by files
    /// of this library's own from now on.
    fn close_streams(&mut self) {
        for fd in libc::STDIN_FILENO..=libc::STDERR_FILENO {
            // SAFETY: no memory is involved.
            let is_open = || unsafe { real::fcntl(fd, libc::F_GETFD, 0) } >= 0;
            let kind = kinds::get(fd);
            if kind == Kind::Kernel || is_open() {
                continue;
            }
            kinds::set(fd, Kind::Kernel);
            if kind == Kind::Session {
                self.close_session(fd);
            }
        }
    }

    /// The daemon takes nothing: it is this process's, as long as that is there.
    fn take_back(&mut self, parcels: &[Parcel], exported: u64) {
        let now = clock::now();
        for parcel in parcels {
            let _ = self.sessions.import_unheld(now, now - exported, &parcel.bytes);
        }
    }

    fn hold(&mut self, parcels: &[Parcel], now: u64) {
        for ends in parcels.iter().filter_map(|parcel| parcel.ends.as_ref()) {
            self.sessions.hold(ends, now + HELD);
        }
    }
}

/// Gives the daemon connections, batch by batch. Gives back the batches that it has refused.
fn in_batches(
    parcels: &[Parcel],
    mut give: impl FnMut(&[&[u8]]) -> Result<u32, Error>,
) -> Vec<&[Parcel]> {
    let is_refused = |batch: &&[Parcel]| {
        let bytes: Vec<_> = batch.iter().map(|parcel| &parcel.bytes[..]).collect();
        give(&bytes).inspect_err(|error| report::say(&error.to_string())).is_err()
    };
    parcels.chunks(BATCH).filter(is_refused).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the daemon takes in one file.
    const MOST: usize = 4_096;

    fn number(parcel: &[u8]) -> u32 {
        parcel.try_into().map(u32::from_le_bytes).unwrap()
    }

    #[test]
    fn more_than_a_file_takes_go_in_batches_and_those_that_are_refused_come_back() {
        let parcel = |number: u32| Parcel { ends: None, bytes: number.to_le_bytes().to_vec() };
        let parcels: Vec<_> = (0..MOST as u32 + 300).map(parcel).collect();
        let (mut taken, mut batches) = (Vec::new(), 0);
        let refused = in_batches(&parcels, |batch| {
            batches += 1;
            if batch.len() > MOST || batches == 2 {
                return Err(Error::DaemonGone);
            }
            taken.extend(batch.iter().map(|parcel| number(parcel)));
            Ok(0)
        });
        let refused: Vec<_> = refused.concat().iter().map(|one| number(&one.bytes)).collect();
        let second = BATCH as u32..2 * BATCH as u32;
        assert!(refused.iter().copied().eq(second.clone()), "{refused:?}");
        let others = (0..MOST as u32 + 300).filter(|number| !second.contains(number));
        assert!(taken.iter().copied().eq(others), "{taken:?}");
    }
}
