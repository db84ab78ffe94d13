//! Time, and how long a call may wait.

use std::ffi::c_int;

use host::Errno;
use libc::timespec;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000_000;
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

    /// After a time as C has it; none: never.
    ///
    /// # Errors
    /// `EINVAL`: it is no time.
    pub(crate) fn after_time(time: Option<&timespec>) -> Result<Self, Errno> {
        let Some(time) = time else { return Ok(Self::NEVER) };
        let (Ok(seconds), Ok(rest)) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec))
        else {
            return Err(Errno::INVAL);
        };
        if rest >= SECOND {
            return Err(Errno::INVAL);
        }
        Ok(Self::after(seconds.saturating_mul(SECOND).saturating_add(rest)))
    }

    pub(crate) fn is_never(self) -> bool {
        self.0 == u64::MAX
    }

    /// Whether it is longer than a moment until then.
    pub(crate) fn is_far(self) -> bool {
        self.is_never() || self.0 >= now() + MILLISECOND
    }

    /// How long it is until then, as C has it.
    pub(crate) fn left(self) -> timespec {
        let left = self.0.saturating_sub(now());
        timespec { tv_sec: (left / SECOND) as i64, tv_nsec: (left % SECOND) as i64 }
    }

    pub(crate) fn is_over(self) -> bool {
        self.0 != u64::MAX && now() >= self.0
    }
}

/// The time of day at which [`now`] gave `at`: nanoseconds since 1970.
pub(crate) fn time_of_day(at: u64) -> u64 {
    let day = clock_gettime(ClockId::Realtime);
    let day = (day.tv_sec as u64).saturating_mul(SECOND).saturating_add(day.tv_nsec as u64);
    day.saturating_sub(now().saturating_sub(at))
}

/// Nanoseconds that never go back.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * SECOND + now.tv_nsec as u64
}
