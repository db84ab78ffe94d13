//! Time, and how long a call may wait.

use std::ffi::c_int;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds in a millisecond.
pub(crate) const MILLISECOND: u64 = 1_000_000;

/// When to stop waiting: ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Alarm(pub(crate) u64);

impl Alarm {
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// After so many ns.
    pub(crate) fn after(time: u64) -> Self {
        Self(now().saturating_add(time))
    }

    /// After so many ms; negative: never.
    pub(crate) fn after_ms(time: c_int) -> Self {
        u64::try_from(time).map_or(Self::NEVER, |time| Self::after(time * MILLISECOND))
    }

    pub(crate) fn is_never(self) -> bool {
        self.0 == u64::MAX
    }

    pub(crate) fn is_over(self) -> bool {
        self.0 != u64::MAX && now() >= self.0
    }
}

/// Nanoseconds that never go back.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
