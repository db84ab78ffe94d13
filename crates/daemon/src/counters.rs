//! Sums over the workers' counters.

use control::api::PortCounters;
use graph::{PortId, Reason};

use crate::daemon::Daemon;
use crate::ports::PortState;

impl Daemon {
    /// What went through a port since the daemon started.
    pub(crate) fn port_counters(&self, port: &PortState) -> PortCounters {
        match port.id() {
            Some(id) => port.since_opened(&self.counted(id)),
            None => port.counted_before(),
        }
    }

    /// What the workers counted under a port's number, whichever port had it.
    pub(crate) fn counted(&self, id: PortId) -> PortCounters {
        let mut sum = PortCounters::default();
        for worker in self.workers.iter() {
            let Some(counters) = worker.handle.counters().ports.get(usize::from(id)) else {
                continue;
            };
            sum.rx_packets += counters.rx_packets.get();
            sum.rx_bytes += counters.rx_bytes.get();
            sum.tx_packets += counters.tx_packets.get();
            sum.tx_bytes += counters.tx_bytes.get();
            sum.tx_dropped += counters.tx_dropped.get();
        }
        sum
    }

    /// What went through all ports together.
    pub(crate) fn port_totals(&self) -> PortCounters {
        let all = self.ports.iter().map(|port| self.port_counters(port));
        all.fold(PortCounters::default(), |a, b| add(&a, &b))
    }

    /// Packets dropped by all workers, by reason.
    pub(crate) fn drops(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        Reason::ALL.iter().enumerate().map(|(at, reason)| {
            let of = |worker: &crate::workers::Worker| {
                worker.handle.counters().drops.get(at).map_or(0, graph::Counter::get)
            };
            (*reason, self.workers.iter().map(of).sum::<u64>() + self.dropped(*reason))
        })
    }
}

/// Both together.
pub(crate) fn add(a: &PortCounters, b: &PortCounters) -> PortCounters {
    join(a, b, u64::saturating_add)
}

/// What `a` has more than `b`.
pub(crate) fn less(a: &PortCounters, b: &PortCounters) -> PortCounters {
    join(a, b, u64::saturating_sub)
}

fn join(a: &PortCounters, b: &PortCounters, with: fn(u64, u64) -> u64) -> PortCounters {
    PortCounters {
        rx_packets: with(a.rx_packets, b.rx_packets),
        rx_bytes: with(a.rx_bytes, b.rx_bytes),
        rx_missed: with(a.rx_missed, b.rx_missed),
        rx_errors: with(a.rx_errors, b.rx_errors),
        rx_no_buffer: with(a.rx_no_buffer, b.rx_no_buffer),
        tx_packets: with(a.tx_packets, b.tx_packets),
        tx_bytes: with(a.tx_bytes, b.tx_bytes),
        tx_dropped: with(a.tx_dropped, b.tx_dropped),
        tx_errors: with(a.tx_errors, b.tx_errors),
    }
}
