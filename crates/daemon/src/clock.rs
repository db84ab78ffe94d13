//! The clock that stacks go by, and that a restarted daemon shares with its predecessor.

use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock: ns.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default()
}
