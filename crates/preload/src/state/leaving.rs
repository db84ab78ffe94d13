//! What a process leaves behind when it ends, and a listener that it closes.

use std::ffi::c_int;
use std::time::Duration;

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
/// Connections that are left to the daemon at a time: a batch that is more than it takes is refused as a whole.
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
        let mut all = true;
        for batch in parcels.chunks(BATCH) {
            let bytes: Vec<_> = batch.iter().map(|parcel| &parcel.bytes[..]).collect();
            // Those that it cannot take, it resets.
            if let Err(error) = self.attachment.link.abandon(stack, now, &bytes) {
                report::say(&error.to_string());
                self.take_back(batch, now);
                all = false;
            }
        }
        all
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
        if parcels.is_empty() {
            return;
        }
        self.hold(&parcels, now);
        let bytes: Vec<_> = parcels.iter().map(|parcel| &parcel.bytes[..]).collect();
        let stack = self.attachment.number();
        if let Err(error) = self.attachment.link.hand(stack, number, now, &bytes) {
            report::say(&error.to_string());
            // They are reset when the listener closes.
            self.take_back(&parcels, now);
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
