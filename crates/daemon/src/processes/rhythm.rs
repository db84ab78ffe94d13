//! When something comes: so often at once after a pause, and then evenly.

use std::time::{Duration, Instant};

/// What may come at once after a pause.
pub(super) const BURST: u32 = 64;

/// When something has come.
#[derive(Debug)]
pub(super) struct Rhythm {
    /// When the last one was due, if they came evenly.
    due: Instant,
}

impl Rhythm {
    /// Of what came last at `due`.
    pub(super) fn since(due: Instant) -> Self {
        Self { due }
    }

    /// Of what has paused.
    pub(super) fn rested(now: Instant, interval: Duration) -> Self {
        Self { due: rest(now, interval) }
    }

    /// Whether it has paused.
    pub(super) fn has_rested(&self, now: Instant, interval: Duration) -> bool {
        self.due <= rest(now, interval)
    }

    /// How long what comes at `now` has to wait.
    pub(super) fn wait(&self, now: Instant, interval: Duration) -> Duration {
        self.next(now, interval).saturating_duration_since(now)
    }

    /// It comes.
    pub(super) fn count(&mut self, now: Instant, interval: Duration) {
        self.due = self.next(now, interval);
    }

    fn next(&self, now: Instant, interval: Duration) -> Instant {
        self.due.max(rest(now, interval)) + interval
    }
}

/// When the last one was due of what may come in a burst at `now`.
fn rest(now: Instant, interval: Duration) -> Instant {
    now.checked_sub(interval * BURST).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_comes_at_once_and_the_rest_evenly() {
        const INTERVAL: Duration = Duration::from_millis(10);
        let now = Instant::now() + Duration::from_secs(10);
        let mut rhythm = Rhythm::rested(now, INTERVAL);
        assert!(rhythm.has_rested(now, INTERVAL));
        let waits: Vec<u128> = (0..BURST + 2)
            .map(|_| {
                let wait = rhythm.wait(now, INTERVAL);
                rhythm.count(now, INTERVAL);
                wait.as_millis()
            })
            .collect();
        assert!(waits[..BURST as usize].iter().all(|wait| *wait == 0));
        assert_eq!(waits[BURST as usize..], [10, 20]);
        // So long as all that came takes evenly.
        let all = INTERVAL * (BURST + 2);
        assert!(!rhythm.has_rested(now + all - INTERVAL / 2, INTERVAL));
        assert!(rhythm.has_rested(now + all, INTERVAL));
        assert_eq!(rhythm.wait(now, INTERVAL), INTERVAL * 3, "what only asks does not count");
    }
}
