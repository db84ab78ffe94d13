//! Whether every task still makes progress: the watchdog is fed only then. And how that is told of a thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Looks in a row, one a second, at which a thread had not come round since the one before: it counts as one that hangs.
const SILENT: u32 = 3;

/// A task's side: counted each time that it comes round.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beat(Arc<AtomicU64>);

impl Beat {
    /// The task has come round.
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The tasks that come round at least once a second.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    tasks: Vec<(&'static str, Beat, u64)>,
}

impl Progress {
    /// A task more.
    pub(crate) fn task(&mut self, name: &'static str) -> Beat {
        let beat = Beat::default();
        self.tasks.push((name, beat.clone(), 0));
        beat
    }

    /// The tasks that have not come round since the last look.
    pub(crate) fn stuck(&mut self) -> Vec<&'static str> {
        let mut stuck = Vec::new();
        for (name, beat, before) in &mut self.tasks {
            let now = beat.0.load(Ordering::Relaxed);
            if now == *before {
                stuck.push(*name);
            }
            *before = now;
        }
        stuck
    }
}

/// Whether a thread still comes round. Counted in looks, not in time: a machine that stood still as a whole has lost none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Answering {
    rounds: u64,
    missed: u32,
}

impl Answering {
    /// Notes, once a second, how often it has come round so far; `None`: it rests, as it may. Says whether it comes round, when
    /// that has changed.
    pub(crate) fn note(&mut self, rounds: Option<u64>) -> Option<bool> {
        let did = self.answers();
        let missed = if rounds == Some(self.rounds) { self.missed.saturating_add(1) } else { 0 };
        *self = Self { rounds: rounds.unwrap_or(self.rounds), missed };
        (self.answers() != did).then_some(!did)
    }

    /// Whether it did when that was noted last.
    pub(crate) fn answers(&self) -> bool {
        self.missed < SILENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_hangs_that_has_not_come_round_three_times_in_a_row() {
        let mut answering = Answering::default();
        let news = [5, 5, 5, 5, 5, 6, 6, 6].map(|rounds| answering.note(Some(rounds)));
        let (silent, answers) = (Some(false), Some(true));
        assert_eq!(news, [None, None, None, silent, None, answers, None, None]);
        // Who rests may do so for as long as it likes.
        assert_eq!([6, 6, 6].map(|_| answering.note(None)), [None; 3]);
        assert_eq!([6, 6, 6].map(|rounds| answering.note(Some(rounds))), [None, None, silent]);
        assert!(!answering.answers());
        assert_eq!(answering.note(None), answers);
    }

    #[test]
    fn a_task_that_does_not_come_round_is_named() {
        let mut progress = Progress::default();
        let (a, b) = (progress.task("a"), progress.task("b"));
        a.count();
        b.count();
        assert!(progress.stuck().is_empty());
        b.count();
        assert_eq!(progress.stuck(), ["a"]);
        a.count();
        assert_eq!(progress.stuck(), ["b"]);
    }
}
