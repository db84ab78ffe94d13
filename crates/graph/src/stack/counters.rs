//! What is counted for a stack, on one worker.

use crate::{ClientCounters, Counter, Reason};

/// Why what a stack sends is refused.
const REFUSALS: [Reason; 6] = [
    Reason::StackMalformed,
    Reason::StackFragment,
    Reason::StackProtocol,
    Reason::StackSource,
    Reason::StackDestination,
    Reason::StackPort,
];

/// Counters of a stack on one worker.
#[derive(Debug, Default)]
pub struct StackCounters {
    /// Its queues. Bytes count from the IP header on.
    pub queues: ClientCounters,
    refused: [Counter; REFUSALS.len()],
}

impl StackCounters {
    /// Packets that it must not send, by reason.
    pub fn refused(&self) -> impl Iterator<Item = (Reason, u64)> {
        REFUSALS.into_iter().zip(self.refused.iter().map(Counter::get))
    }

    pub(crate) fn refuse(&self, reason: Reason) {
        self.queues.refused.add(1);
        let place = REFUSALS.iter().position(|known| *known == reason);
        if let Some(counter) = place.and_then(|at| self.refused.get(at)) {
            counter.add(1);
        }
    }
}
