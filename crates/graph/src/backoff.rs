//! What a worker does between two rounds: an adaptive back-off.

use std::time::Duration;

use shm::Courtesy;

/// Whether a worker may rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PollMode {
    /// Spin, then leave the core to others between two rounds, then sleep when there is nothing to do.
    #[default]
    Adaptive,
    /// Always poll.
    Busy,
}

/// Polls at full speed for so long after the last packet: microseconds.
const SPIN: u64 = 2;
/// Then leaves its core to others between two rounds, or pauses, until so long after the last packet: microseconds.
const PAUSE: u64 = 50;
/// The first sleep; each one after it is twice as long.
const FIRST_SLEEP: Duration = Duration::from_micros(50);
/// The longest sleep while a receive queue has to be looked at.
const LONGEST_SLEEP: Duration = Duration::from_micros(200);

/// What to do before the next round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Go,
    Pause,
    /// Whoever shares the core goes first: it may be who makes the next packet.
    Yield,
    Sleep(Duration),
}

/// Decides what to do before the next round. Time is an argument: TSC cycles.
#[derive(Debug)]
pub(crate) struct Backoff {
    mode: PollMode,
    spin: u64,
    pause: u64,
    /// Cycles of a microsecond.
    micro: u64,
    courtesy: Courtesy,
    /// When the core was left.
    left: Option<u64>,
    since: Option<u64>,
    sleep: Duration,
}

impl Backoff {
    /// `hz`: TSC cycles per second.
    pub(crate) fn new(mode: PollMode, hz: u64) -> Self {
        let cycles = |micros: u64| micros.saturating_mul(hz / 1_000_000);
        Self {
            mode,
            spin: cycles(SPIN),
            pause: cycles(PAUSE),
            micro: (hz / 1_000_000).max(1),
            courtesy: Courtesy::default(),
            left: None,
            since: None,
            sleep: FIRST_SLEEP,
        }
    }

    /// After a round that ended at `now` and found something, or nothing.
    #[inline]
    pub(crate) fn after(&mut self, found: bool, now: u64) -> Step {
        if let Some(left) = self.left.take() {
            self.courtesy.was_away(now.wrapping_sub(left).saturating_mul(1_000) / self.micro);
        }
        if found || self.mode == PollMode::Busy {
            self.since = None;
            return Step::Go;
        }
        self.rest(now)
    }

    fn rest(&mut self, now: u64) -> Step {
        let Some(since) = self.since else {
            self.since = Some(now);
            self.sleep = FIRST_SLEEP;
            self.courtesy.begin();
            return Step::Go;
        };
        let idle = now.wrapping_sub(since);
        if idle < self.spin {
            return Step::Go;
        }
        if idle < self.pause {
            if !self.courtesy.leaves() {
                return Step::Pause;
            }
            self.left = Some(now);
            return Step::Yield;
        }
        let sleep = self.sleep;
        self.sleep = (sleep * 2).min(LONGEST_SLEEP);
        Step::Sleep(sleep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One cycle per microsecond.
    const HZ: u64 = 1_000_000;

    #[test]
    fn spins_yields_sleeps_longer_and_longer() {
        let mut backoff = Backoff::new(PollMode::Adaptive, HZ);
        assert_eq!(backoff.after(true, 0), Step::Go);
        assert_eq!(backoff.after(false, 100), Step::Go);
        assert_eq!(backoff.after(false, 101), Step::Go);
        assert_eq!(backoff.after(false, 102), Step::Yield);
        assert_eq!(backoff.after(false, 149), Step::Yield);
        let sleeps: Vec<_> = (150..154).map(|now| backoff.after(false, now)).collect();
        let micros = |n| Step::Sleep(Duration::from_micros(n));
        assert_eq!(sleeps, [micros(50), micros(100), micros(200), micros(200)]);
    }

    #[test]
    fn a_packet_starts_it_over() {
        let mut backoff = Backoff::new(PollMode::Adaptive, HZ);
        for now in 0..1000 {
            backoff.after(false, now);
        }
        assert_eq!(backoff.after(true, 1000), Step::Go);
        assert_eq!(backoff.after(false, 1001), Step::Go);
        assert_eq!(backoff.after(false, 1002), Step::Go);
        assert_eq!(backoff.after(false, 1055), Step::Sleep(FIRST_SLEEP));
    }

    #[test]
    fn who_comes_back_late_keeps_the_core() {
        let mut backoff = Backoff::new(PollMode::Adaptive, HZ);
        backoff.after(true, 0);
        assert_eq!(backoff.after(false, 100), Step::Go);
        assert_eq!(backoff.after(false, 110), Step::Yield);
        // Packets have come meanwhile.
        assert_eq!(backoff.after(true, 2110), Step::Go);
        assert_eq!(backoff.after(false, 2200), Step::Go);
        assert_eq!(backoff.after(false, 2210), Step::Pause);
        assert_eq!(backoff.after(false, 2249), Step::Pause);
    }

    #[test]
    fn busy_never_rests() {
        let mut backoff = Backoff::new(PollMode::Busy, HZ);
        assert!((0..10_000).all(|now| backoff.after(false, now) == Step::Go));
    }
}
