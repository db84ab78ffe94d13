//! What processes with stacks of their own need of the daemon.

use super::Daemon;
use crate::sessions::{Host, Lent};

impl Daemon {
    /// The configuration has changed: who may have stacks from now on, and how many.
    pub(crate) fn apply_sessions(&mut self) {
        self.sessions.apply(&self.config.sessions);
    }
}

impl Host for Daemon {
    fn lend(&mut self) -> Lent<'_> {
        let Self { sessions, workers, routing, .. } = self;
        Lent { sessions, workers, routing }
    }
}
