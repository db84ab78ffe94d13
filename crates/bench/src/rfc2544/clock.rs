//! Time since a trial began, and how much of it is waited.

/// Of the time between two looks, so much counts as waited: ns. Whoever looks less often was held up.
const MOST_BETWEEN_LOOKS: u64 = 10_000_000;

/// Nanoseconds from the time-stamp counter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    start: u64,
    /// ns for 2^32 ticks.
    scale: u64,
}

impl Clock {
    /// Starts now.
    pub(super) fn start() -> Self {
        let scale = (1_000_000_000_u128 << 32) / u128::from(dpdk::tsc_hz().max(1));
        Self { start: dpdk::tsc(), scale: scale as u64 }
    }

    /// ns since the start.
    #[inline(always)]
    pub(super) fn now(&self) -> u64 {
        // Another core's counter may lie a little behind that of the start.
        let ticks = dpdk::tsc().saturating_sub(self.start);
        (u128::from(ticks) * u128::from(self.scale) >> 32) as u64
    }
}

/// How long is still waited. Time in which the waiting thread was held up hardly counts: what came meanwhile has yet to be taken.
#[derive(Debug)]
pub(super) struct Patience {
    /// ns.
    left: u64,
    looked: Option<u64>,
}

impl Patience {
    pub(super) fn new(nanoseconds: u64) -> Self {
        Self { left: nanoseconds, looked: None }
    }

    /// Looks at a time (ns); tells whether enough was waited since the first look.
    pub(super) fn is_over(&mut self, now: u64) -> bool {
        let since = now.saturating_sub(self.looked.unwrap_or(now));
        self.looked = Some(now);
        self.left = self.left.saturating_sub(since.min(MOST_BETWEEN_LOOKS));
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_was_held_up_waits_on() {
        const HOUR: u64 = 3_600_000_000_000;
        let mut patience = Patience::new(1_000_000_000);
        assert!(!patience.is_over(5) && !patience.is_over(HOUR));
        let mut over = (1..=1000_u64).map(|step| patience.is_over(HOUR + step * 1_000_000));
        assert_eq!(over.position(|over| over), Some(989), "10 ms of the hour count");
        assert!(Patience::new(0).is_over(7));
    }
}
