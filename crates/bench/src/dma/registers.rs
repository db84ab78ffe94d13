//! The device's registers: what the driver does to them arrives in order, as on the link.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::Broken;

/// A side that hears nothing for so long gives up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Accesses on the way: more than a ring has doorbells and reads.
const ON_THE_WAY: usize = 1024;

/// What the driver does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Writes the tail: so many descriptors were given, all laps counted. This is the doorbell.
    Tail(u64),
    /// Reads the read pointer: so many packets are done.
    Head,
}

/// The driver's end.
#[derive(Debug)]
pub(super) struct Registers {
    accesses: SyncSender<Access>,
    heads: Receiver<u64>,
}

/// The device's end.
#[derive(Debug)]
pub(super) struct Accesses {
    accesses: Receiver<Access>,
    heads: SyncSender<u64>,
}

/// Both ends.
pub(super) fn registers() -> (Registers, Accesses) {
    let (to_device, accesses) = sync_channel(ON_THE_WAY);
    let (to_driver, heads) = sync_channel(ON_THE_WAY);
    (Registers { accesses: to_device, heads }, Accesses { accesses, heads: to_driver })
}

impl Registers {
    pub(super) fn access(&self, access: Access) -> Result<(), Broken> {
        self.accesses.try_send(access).map_err(|_| Broken::Silent)
    }

    /// The answer to the oldest read of the head.
    pub(super) fn head(&self) -> Result<u64, Broken> {
        self.heads.recv_timeout(PATIENCE).map_err(|_| Broken::Silent)
    }
}

impl Accesses {
    pub(super) fn next(&self) -> Result<Access, Broken> {
        self.accesses.recv_timeout(PATIENCE).map_err(|_| Broken::Silent)
    }

    pub(super) fn answer(&self, head: u64) -> Result<(), Broken> {
        self.heads.try_send(head).map_err(|_| Broken::Silent)
    }
}

/// Looks until there is something.
pub(super) fn wait<T>(mut look: impl FnMut() -> Result<Option<T>, Broken>) -> Result<T, Broken> {
    let started = Instant::now();
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if started.elapsed() > PATIENCE {
            return Err(Broken::Silent);
        }
        std::thread::yield_now();
    }
}
