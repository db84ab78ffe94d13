//! Sums over the workers' counters.

use control::api::PortCounters;
use graph::{PortId, Reason};

use super::{Worker, Workers};

impl Workers {
    /// What the workers counted under a port's number, whichever port had it.
    pub(crate) fn counted(&self, id: PortId) -> PortCounters {
        let mut sum = PortCounters::default();
        for worker in self.iter() {
            let Some(counters) = worker.handle.counters().ports.get(id.number()) else {
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

    /// Packets that the workers dropped for this reason.
    pub(crate) fn dropped(&self, reason: Reason) -> u64 {
        let of = |worker: &Worker| {
            let drops = &worker.handle.counters().drops;
            drops.get(reason as usize).map_or(0, graph::Counter::get)
        };
        self.iter().map(of).sum()
    }
}
