//! What a worker does between two rounds: an adaptive back-off.

use std::time::Duration;

use shm::Spin;

/// Whether a worker may rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PollMode {
    /// Spin, then pause, then sleep when there is nothing to do.
    #[default]
    Adaptive,
    /// Always poll.
    Busy,
}

/// Polls at full speed for so long after the last packet, then with pauses: ns.
const SPIN: u64 = 10_000;
/// The first sleep; each one after it is twice as long.
const FIRST_SLEEP: Duration = Duration::from_micros(50);
/// The longest sleep while a receive queue has to be looked at.
const LONGEST_SLEEP: Duration = Duration::from_micros(200);

/// What to do before the next round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Go,
    Pause,
    Sleep(Duration),
}

/// Decides what to do before the next round. Time is an argument: TSC cycles.
#[derive(Debug)]
pub(crate) struct Backoff {
    mode: PollMode,
    /// Cycles of a microsecond.
    micro: u64,
    /// How long to poll before a sleep.
    look: Spin,
    /// When nothing was found first.
    since: Option<u64>,
    /// How long the worker has slept, until it is known whether packets have ended that: ns.
    slept: Option<u64>,
    sleep: Duration,
}

impl Backoff {
    /// `hz`: TSC cycles per second.
    pub(crate) fn new(mode: PollMode, hz: u64) -> Self {
        let micro = (hz / 1_000_000).max(1);
        let look = Spin::default();
        Self { mode, micro, look, since: None, slept: None, sleep: FIRST_SLEEP }
    }

    /// After a round that ended at `now` and found something, or nothing.
    #[inline]
    pub(crate) fn after(&mut self, found: bool, now: u64) -> Step {
        if self.mode == PollMode::Busy {
            return Step::Go;
        }
        if found && self.since.is_none() {
            return Step::Go;
        }
        if let Some(slept) = self.slept.take() {
            // A sleep that no packet has ended was long, however long it was.
            self.look.slept(if found { slept } else { u64::MAX });
        } else if found {
            self.look.found();
        }
        if found {
            (self.since, self.sleep) = (None, FIRST_SLEEP);
            return Step::Go;
        }
        self.rest(now)
    }

    /// After a sleep of so many cycles.
    pub(crate) fn slept(&mut self, cycles: u64) {
        self.slept = Some(cycles.saturating_mul(1_000) / self.micro);
    }

    fn rest(&mut self, now: u64) -> Step {
        let since = *self.since.get_or_insert(now);
        let idle = now.wrapping_sub(since).saturating_mul(1_000) / self.micro;
        let look = self.look.budget();
        if idle < look.min(SPIN) {
            return Step::Go;
        }
        if idle < look {
            return Step::Pause;
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

    fn micros(n: u64) -> Step {
        Step::Sleep(Duration::from_micros(n))
    }

    #[test]
    fn who_finds_nothing_sleeps_longer_and_longer() {
        let mut backoff = Backoff::new(PollMode::Adaptive, HZ);
        assert_eq!(backoff.after(true, 0), Step::Go);
        let mut steps = Vec::new();
        for now in 1..=4 {
            steps.push(backoff.after(false, now * 1000));
            backoff.slept(200);
        }
        assert_eq!(steps, [micros(50), micros(100), micros(200), micros(200)]);
        // Packets start it over.
        assert_eq!(backoff.after(true, 5000), Step::Go);
        assert_eq!(backoff.after(false, 5001), micros(50));
    }

    #[test]
    fn packets_that_come_soon_after_each_sleep_are_waited_for_awake() {
        let mut backoff = Backoff::new(PollMode::Adaptive, HZ);
        let mut now = 0;
        // They come 30 us after the last ones.
        let sleeps = (0..100).filter(|_| {
            backoff.after(true, now);
            let due = now + 30;
            loop {
                now += 1;
                if now >= due {
                    break false;
                }
                if matches!(backoff.after(false, now), Step::Sleep(_)) {
                    backoff.slept(due - now);
                    now = due;
                    break true;
                }
            }
        });
        assert!(sleeps.count() < 8);
        backoff.after(true, now);
        let steps: Vec<Step> = (1..60).map(|idle| backoff.after(false, now + idle)).collect();
        let of = |step| steps.iter().filter(|other| **other == step).count();
        assert_eq!(of(Step::Go), 10, "at full speed first");
        assert!((20..50).contains(&of(Step::Pause)), "then with pauses");
        assert!(matches!(steps.last(), Some(Step::Sleep(_))));
    }

    #[test]
    fn busy_never_rests() {
        let mut backoff = Backoff::new(PollMode::Busy, HZ);
        assert!((0..10_000).all(|now| backoff.after(false, now) == Step::Go));
    }
}
