//! The stack, while threads sleep.

use super::State;
use crate::clock::{self, Alarm};

/// Between two looks for a daemon that is gone: ns.
const LOOKS: u64 = 200_000_000;
/// How long a thread sleeps that others can't wake: ns.
const NAP: u64 = 5_000_000;

impl State {
    /// Before a thread sleeps for `waiter`, until `alarm` at most: has the workers ring. Gives how long it may sleep: ns;
    /// `None`: not at all, something has come.
    pub(crate) fn fall_asleep(&mut self, waiter: usize, alarm: Alarm) -> Option<u64> {
        self.heed_heard();
        let mut deadline = self.sessions.next_deadline().unwrap_or(u64::MAX).min(alarm.0);
        let now = clock::now();
        if !self.attachment.is_there() {
            deadline = deadline.min(now + LOOKS);
        }
        if self.waiters.kick_of(waiter) < 0 {
            deadline = deadline.min(now + NAP);
        }
        if deadline <= now || self.waiters.may_be_ready(waiter) || !self.arm() {
            self.stop_ringing(false);
            return None;
        }
        self.waiters.fall_asleep(waiter, deadline);
        Some(if deadline == u64::MAX { u64::MAX } else { deadline - now })
    }

    /// After it: `rung` by a worker, `kicked` by another thread.
    pub(crate) fn wake_up(&mut self, waiter: usize, rung: bool, kicked: bool) {
        self.waiters.wake(waiter, kicked);
        self.stop_ringing(rung);
    }

    fn stop_ringing(&mut self, rung: bool) {
        if rung {
            self.attachment.clear();
        }
        if self.waiters.sleepers == 0 {
            self.disarm();
        }
    }
}
