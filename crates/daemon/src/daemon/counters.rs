//! Sums over the workers and the control thread.

use control::api::PortCounters;
use graph::Reason;

use super::Daemon;
use crate::ports::{PortState, add};

impl Daemon {
    /// What went through a port since the daemon started.
    pub(crate) fn port_counters(&self, port: &PortState) -> PortCounters {
        match port.id() {
            Some(id) => port.since_opened(&self.workers.counted(id)),
            None => port.counted_before(),
        }
    }

    /// What went through all ports together.
    pub(crate) fn port_totals(&self) -> PortCounters {
        let all = self.ports.iter().map(|port| self.port_counters(port));
        all.fold(PortCounters::default(), |a, b| add(&a, &b))
    }

    /// Packets dropped by all threads, by reason.
    pub(crate) fn drops(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        let reasons = Reason::ALL.iter().copied();
        reasons.map(|reason| (reason, self.workers.dropped(reason) + self.routing.dropped(reason)))
    }
}
