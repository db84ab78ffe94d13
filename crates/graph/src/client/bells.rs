//! How often clients are rung.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ClientChannel;

/// Shortest time between two rings for one user: 1/50,000 of a second, far below what a wake-up takes.
const GAP: u64 = 50_000;
/// A ring takes a system call, and where the user's thread sleeps on another core, an interrupt there, which on a virtual machine
/// takes longer still. While the worker is busy, the bells of a user take one part in so many of its time at most. One ring that
/// took long, because another program had the core meanwhile, is no reason to wait for longer than 1/2,000 of a second.
const PART: u64 = 16;
const LONGEST: u64 = 2_000;

/// The pace of all doorbells of one user on one worker. Its clones are of the same user.
#[derive(Debug, Clone, Default)]
pub struct ClientPace {
    /// When a bell may be rung again: TSC cycles. Only that worker reads and writes it.
    quiet_until: Arc<AtomicU64>,
}

impl ClientPace {
    /// Whether both are of the same user.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.quiet_until, &other.quiet_until)
    }
}

/// The doorbells of one client's queues on one worker.
#[derive(Debug)]
pub(crate) struct Bells {
    /// TSC cycles between two rings at least, and after one that took long.
    gap: u64,
    longest: u64,
    pace: ClientPace,
    /// The channel that is looked at first.
    first: usize,
}

impl Bells {
    pub(crate) fn new(pace: ClientPace) -> Self {
        let hertz = dpdk::tsc_hz();
        Self { gap: hertz / GAP, longest: hertz / LONGEST, pace, first: 0 }
    }

    /// Rings one channel whose client sleeps, if the time has come; the others, one by one, in the rounds after. Gives
    /// whether there may be others. `now`: TSC cycles. `busy`: the worker has more to do than it can.
    #[inline]
    pub(crate) fn ring_due(
        &mut self,
        channels: &mut [ClientChannel],
        now: u64,
        busy: bool,
    ) -> bool {
        let quiet_until = self.pace.quiet_until.load(Ordering::Relaxed);
        if (now.wrapping_sub(quiet_until) as i64) < 0 {
            return true;
        }
        let (count, begun) = (channels.len(), dpdk::tsc());
        for turn in 0..count {
            let at = (self.first + turn) % count;
            if channels.get_mut(at).is_some_and(ClientChannel::ring) {
                let took = dpdk::tsc().wrapping_sub(begun);
                let quiet_until = now.wrapping_add(self.pause(took, busy));
                self.pace.quiet_until.store(quiet_until, Ordering::Relaxed);
                self.first = (at + 1) % count;
                return true;
            }
        }
        false
    }

    /// How long it is from a ring that took so long to the next: TSC cycles.
    fn pause(&self, took: u64, busy: bool) -> u64 {
        if busy { took.saturating_mul(PART).clamp(self.gap, self.longest) } else { self.gap }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_worker_rings_as_seldom_as_rings_are_dear() {
        let bells = Bells { gap: 100, longest: 2500, pace: ClientPace::default(), first: 0 };
        assert_eq!(bells.pause(4, true), 100, "1/50,000 of a second at least");
        assert_eq!(bells.pause(20, true), 320);
        assert_eq!(bells.pause(u64::MAX, true), 2500, "somebody else had the core");
        assert_eq!(bells.pause(20, false), 100, "there is time to spare");
    }
}
