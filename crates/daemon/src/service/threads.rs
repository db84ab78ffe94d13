//! Threads that come and go, and whether each still comes round.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::progress::Answering;

/// Of a thread that has something to do; else it rests. The other bits count.
const WORKS: u64 = 1;

/// A thread's side, which it drops when it ends.
#[derive(Debug)]
pub(crate) struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// The thread has come round, and goes on.
    pub(crate) fn works(&self) {
        self.count(WORKS);
    }

    /// It rests, for as long as it may like.
    pub(crate) fn rests(&self) {
        self.count(0);
    }

    fn count(&self, state: u64) {
        // Nobody else writes it.
        let rounds = self.0.load(Ordering::Relaxed) >> 1;
        self.0.store(rounds.wrapping_add(1) << 1 | state, Ordering::Relaxed);
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Threads(Mutex<Vec<Thread>>);

#[derive(Debug)]
struct Thread {
    name: String,
    pulse: Arc<AtomicU64>,
    answering: Answering,
}

impl Threads {
    /// One more, which rests.
    pub(crate) fn add(&self, name: String) -> Pulse {
        let (pulse, answering) = (Arc::<AtomicU64>::default(), Answering::default());
        let thread = Thread { name, pulse: Arc::clone(&pulse), answering };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Pulse(pulse)
    }

    /// Looks at all of them; to be called once a second. Gives the names of those that do not come round any more, or do again,
    /// and which of both it is.
    pub(crate) fn look(&self) -> Vec<(String, bool)> {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Of one that has ended, the other side is gone.
        threads.retain(|thread| Arc::strong_count(&thread.pulse) > 1);
        let news = |thread: &mut Thread| {
            let now = thread.pulse.load(Ordering::Relaxed);
            let answers = thread.answering.note(Some(now).filter(|now| now & WORKS != 0))?;
            Some((thread.name.clone(), answers))
        };
        threads.iter_mut().filter_map(news).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_neither_rests_nor_comes_round_is_named() {
        let threads = Threads::default();
        let add = |name: &str| threads.add(name.to_owned());
        let (hangs, rests, works, ends) = (add("hangs"), add("rests"), add("works"), add("ends"));
        for pulse in [&hangs, &rests, &works, &ends] {
            pulse.works();
        }
        rests.rests();
        drop(ends);
        let mut said = Vec::new();
        for _ in 0..10 {
            works.works();
            said.extend(threads.look());
        }
        assert_eq!(said, [("hangs".to_owned(), false)]);
        hangs.rests();
        assert_eq!(threads.look(), [("hangs".to_owned(), true)]);
    }
}
