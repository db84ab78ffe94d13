//! Whether to leave the core to others while looking for work.

/// So long is away only who had to wait for somebody that computes: ns. Others' turns are shorter.
const LONG: u64 = 300_000;
/// Times of looking until it is tried again.
const REFUSALS: u32 = 1024;

/// Whether a thread that looks for work leaves its core to others between two looks (`sched_yield`).
///
/// Who shares the core may be who makes the work, and gives it back soon. Somebody that computes does not: who leaves the core
/// to that one comes back a whole slice of time later, so it rather keeps the core for the little while that it looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Courtesy {
    refusals: u32,
}

impl Courtesy {
    /// Whether to leave it.
    #[inline]
    #[must_use]
    pub fn leaves(&self) -> bool {
        self.refusals == 0
    }

    /// It was left, and the thread was away for so long: ns.
    #[inline]
    pub fn was_away(&mut self, time: u64) {
        if time >= LONG {
            self.refusals = REFUSALS;
        }
    }

    /// A time of looking begins.
    #[inline]
    pub fn begin(&mut self) {
        self.refusals = self.refusals.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_away_for_long_keeps_the_core_for_a_while() {
        let mut courtesy = Courtesy::default();
        courtesy.was_away(LONG - 1);
        assert!(courtesy.leaves());
        courtesy.was_away(LONG);
        let kept = (0..10_000)
            .take_while(|_| {
                courtesy.begin();
                !courtesy.leaves()
            })
            .count();
        assert_eq!(kept, REFUSALS as usize - 1);
    }
}
