//! How often clients are rung.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ClientChannel;

/// Shortest time between two rings for one user: 1/50,000 of a second, far below what a wake-up takes.
const GAP: u64 = 50_000;

/// The pace of all doorbells of one user on one worker.
#[derive(Debug, Clone, Default)]
pub struct ClientPace {
    /// When a bell may be rung again: TSC cycles. Only that worker reads and writes it.
    quiet_until: Arc<AtomicU64>,
}

/// The doorbells of one client's queues on one worker.
#[derive(Debug)]
pub(crate) struct Bells {
    /// TSC cycles between two rings at least.
    gap: u64,
    pace: ClientPace,
    /// The channel that is looked at first.
    first: usize,
}

impl Bells {
    pub(crate) fn new(pace: ClientPace) -> Self {
        Self { gap: dpdk::tsc_hz() / GAP, pace, first: 0 }
    }

    /// Rings one channel whose client sleeps, if the time has come; the others, one by one, in the rounds after. Gives
    /// whether there may be others.
    #[inline]
    pub(crate) fn ring_due(&mut self, channels: &mut [ClientChannel], now: u64) -> bool {
        let quiet_until = self.pace.quiet_until.load(Ordering::Relaxed);
        if (now.wrapping_sub(quiet_until) as i64) < 0 {
            return true;
        }
        let count = channels.len();
        for turn in 0..count {
            let at = (self.first + turn) % count;
            if channels.get_mut(at).is_some_and(ClientChannel::ring) {
                self.pace.quiet_until.store(now.wrapping_add(self.gap), Ordering::Relaxed);
                self.first = (at + 1) % count;
                return true;
            }
        }
        false
    }
}
