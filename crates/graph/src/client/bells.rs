//! How often a client is rung.

use super::ClientChannel;

/// Shortest time between two rings of one client: 1/50,000 of a second, far below what a wake-up takes.
const GAP: u64 = 50_000;

/// The pace of a client's doorbells on one worker.
#[derive(Debug)]
pub(super) struct Bells {
    /// TSC cycles between two rings at least.
    gap: u64,
    /// When a bell may be rung again: TSC cycles.
    quiet_until: u64,
    /// The channel that is looked at first.
    first: usize,
}

impl Bells {
    pub(super) fn new() -> Self {
        Self { gap: dpdk::tsc_hz() / GAP, quiet_until: 0, first: 0 }
    }

    /// Rings one channel whose client sleeps, if the time has come; the others, one by one, in the rounds after.
    #[inline]
    pub(super) fn ring_due(&mut self, channels: &mut [ClientChannel], now: u64) {
        if (now.wrapping_sub(self.quiet_until) as i64) < 0 {
            return;
        }
        let count = channels.len();
        for turn in 0..count {
            let at = (self.first + turn) % count;
            if channels.get_mut(at).is_some_and(ClientChannel::ring) {
                self.quiet_until = now.wrapping_add(self.gap);
                self.first = (at + 1) % count;
                return;
            }
        }
    }
}
