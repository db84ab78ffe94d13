//! Time since a trial began.

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
