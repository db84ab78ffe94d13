//! A process leaves its stack worker: the connections that it has closed go on elsewhere.

use transport::TimeWait;

use super::plan::COMMANDS;
use super::served::{self, Served};
use crate::moving::Parcel;

/// What leaves at once, before others have their turn: connections, bytes of them, and connections in TIME-WAIT.
const CONNECTIONS: usize = 64;
const BYTES: usize = 1 << 20;
const WAITS: usize = 256;
/// Rounds in which it is done what the process has asked for before it went: as many commands as its ring holds.
const ROUNDS: usize = COMMANDS.0 as usize / served::COMMANDS;

/// Connections that no process has any more.
#[derive(Debug, Default)]
pub struct Orphans {
    /// When they left their stack: ns.
    pub at: u64,
    /// Those that have something left to send or to hear.
    pub closed: Vec<Parcel>,
    /// Those in TIME-WAIT.
    pub waits: Vec<TimeWait>,
}

impl Served {
    /// The process is gone: gives some of the connections that it has closed, after all that it has asked for is done; to be called
    /// once in each round, without packets coming in. `None`: there are none any more.
    pub fn leave(&mut self, now: u64) -> Option<Orphans> {
        self.now = self.now.max(now);
        let mut orphans = Orphans { at: self.now, ..Orphans::default() };
        let Some(mut left) = self.leaving.closed.take() else {
            let is_awaited = self.leaving.rounds < ROUNDS && !self.is_broken;
            if is_awaited && self.has_commands() {
                self.leaving.rounds += 1;
            } else {
                self.finish_closing();
                self.leaving.closed = Some(self.sessions.closed());
            }
            return Some(orphans);
        };
        if left.is_empty() {
            orphans.waits = self.sessions.stack.export_time_waits(self.now, WAITS);
        }
        let is_over = left.is_empty() && orphans.waits.is_empty();
        let mut bytes = 0;
        while orphans.closed.len() < CONNECTIONS && bytes < BYTES {
            let Some(connection) = left.pop() else { break };
            let parcel = self.sessions.export_released(connection, self.now);
            bytes += parcel.as_ref().map_or(0, |parcel| parcel.bytes.len());
            orphans.closed.extend(parcel);
        }
        self.leaving.closed = Some(left);
        (!is_over).then_some(orphans)
    }
}
