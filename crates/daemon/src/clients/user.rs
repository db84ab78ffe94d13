//! What all connections of a user share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::asks::Control;
use super::bells::Bells;

/// Requests that may come at once after a pause.
const BURST: u32 = 64;

/// One of a user's places, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<AtomicUsize>);

impl Place {
    /// Takes one.
    pub(super) fn of(taken: &Arc<AtomicUsize>) -> Self {
        taken.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(taken))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What all connections of a user share.
pub(super) struct Shared {
    pub(super) control: Control,
    pub(super) bells: Bells,
    /// Memory is made and taken down by one connection at a time.
    pub(super) turns: Semaphore,
    pub(super) pace: Pace,
}

/// How often a user may ask for something.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    /// When the next request would be due, if they came evenly.
    due: Mutex<Instant>,
}

impl Pace {
    pub(super) fn new(requests: u32) -> Self {
        Self { interval: Duration::from_secs(1) / requests.max(1), due: Mutex::new(Instant::now()) }
    }

    /// How long a request that comes at `now` has to wait.
    fn take(&self, now: Instant) -> Duration {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let saved = self.interval * BURST;
        *due = (*due).max(now.checked_sub(saved).unwrap_or(now)) + self.interval;
        due.saturating_duration_since(now)
    }

    /// Waits until a request may be worked on.
    pub(super) async fn wait(&self) {
        let wait = self.take(Instant::now());
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_in_bursts_and_then_evenly() {
        let pace = Pace::new(100);
        let now = Instant::now() + Duration::from_secs(10);
        let waits: Vec<_> = (0..BURST + 3).map(|_| pace.take(now).as_millis()).collect();
        assert!(waits[..BURST as usize].iter().all(|wait| *wait == 0));
        assert_eq!(waits[BURST as usize..], [10, 20, 30]);
        assert_eq!(pace.take(now + Duration::from_secs(10)).as_millis(), 0);
    }
}
