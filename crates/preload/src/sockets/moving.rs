//! Sessions that go to another process, another number, or the daemon, and those that come.

use host::{Errno, Id, Parcel};
use transport::{Ends, ImportError, TimeWait};

use super::Sockets;

/// How long what comes for a connection that is between two numbers gets no answer: ns.
const AWAY: u64 = 2_000_000_000;

impl Sockets {
    pub(crate) fn export(&mut self, id: Id, now: u64) -> Result<Parcel, Errno> {
        match self {
            Self::Inline(sessions) => sessions.export(id, now),
            Self::Shared(remote) => remote.export(id),
        }
    }

    pub(crate) fn import(
        &mut self,
        id: Id,
        now: u64,
        age: u64,
        bytes: &[u8],
    ) -> Result<Option<Ends>, ImportError> {
        match self {
            Self::Inline(sessions) => sessions.import(id, now, age, bytes),
            Self::Shared(remote) => remote.import(id, age, bytes).map_err(|_| ImportError::Full),
        }
    }

    /// Gives a stream another number. Gives whether it has it.
    pub(crate) fn rename(&mut self, id: Id, new: Id, now: u64) -> bool {
        if let Self::Inline(sessions) = self {
            return sessions.rename(id, new);
        }
        // On a stack worker, it leaves and comes back.
        let Ok(parcel) = self.export(id, now) else { return false };
        if let Some(ends) = &parcel.ends {
            self.hold(ends, now + AWAY);
        }
        let has_come = self.import(new, now, 0, &parcel.bytes).is_ok();
        if !has_come {
            let _ = self.import(id, now, 0, &parcel.bytes);
        }
        has_come
    }

    /// What is closed and not over, but for TIME-WAIT. A stack worker gives its own to the daemon itself, when the process is gone.
    pub(crate) fn export_closed(&mut self, now: u64) -> Vec<Parcel> {
        match self {
            Self::Inline(sessions) => sessions.export_closed(now),
            Self::Shared(_) => Vec::new(),
        }
    }

    /// What is in TIME-WAIT; it gets no answer here any more until then. A stack worker does as above.
    pub(crate) fn export_time_waits(&mut self, now: u64, held: u64) -> Vec<TimeWait> {
        match self {
            Self::Inline(sessions) => sessions.export_time_waits(now, held),
            Self::Shared(_) => Vec::new(),
        }
    }

    pub(crate) fn export_unaccepted(&mut self, id: Id, now: u64) -> Vec<Parcel> {
        match self {
            Self::Inline(sessions) => sessions.export_unaccepted(id, now),
            Self::Shared(remote) => remote.export_unaccepted(id),
        }
    }

    /// Those that have waited longest at a socket that listens, so many at most.
    pub(crate) fn export_waiting(&mut self, id: Id, now: u64, most: usize) -> Vec<Parcel> {
        match self {
            Self::Inline(sessions) => sessions.export_waiting(id, now, most),
            Self::Shared(remote) => remote.export_waiting(id, most),
        }
    }

    pub(crate) fn import_unheld(
        &mut self,
        now: u64,
        age: u64,
        bytes: &[u8],
    ) -> Result<(), ImportError> {
        match self {
            Self::Inline(sessions) => sessions.import_unheld(now, age, bytes).map(drop),
            Self::Shared(remote) => remote.import_unheld(age, bytes).map_err(|_| ImportError::Full),
        }
    }
}
