//! Whether every task still makes progress: the watchdog is fed only then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

#[cfg(test)]
mod tests {
    use super::*;

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
