//! Workers that have stopped answering: noticed within a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Crew, Member};

/// Between two looks.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);

/// Looks without an answer until a worker counts as silent. Counted in looks, not in time: a machine that stood
/// still as a whole has lost no worker.
const LOOKS: u32 = 8;

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The worker on this core answers no more.
    Silent(u16),
    /// It answers again.
    Answers(u16),
}

/// Asks every worker, again and again, whether it is there.
pub(crate) struct Watch {
    list: Vec<Watched>,
}

struct Watched {
    member: Member,
    /// Set by the worker.
    answered: Arc<AtomicBool>,
    /// The question is with it.
    asked: bool,
    /// It had answered at the last look.
    answers: bool,
    looks: u32,
}

impl Watch {
    pub(crate) fn new(crew: &Crew) -> Self {
        let watched = |member: &Member| Watched {
            member: member.clone(),
            answered: Arc::default(),
            asked: false,
            answers: false,
            looks: 0,
        };
        Self { list: crew.iter().map(watched).collect() }
    }

    /// One look, every [`PERIOD`].
    pub(crate) fn look(&mut self) -> Vec<Change> {
        self.list.iter_mut().filter_map(Watched::look).collect()
    }

    /// The workers that had answered at the last look, by number: each has gone through its receive queues since its
    /// answer before.
    pub(crate) fn answering(&self) -> impl Iterator<Item = usize> {
        self.list.iter().enumerate().filter(|(_, worker)| worker.answers).map(|(number, _)| number)
    }
}

impl Watched {
    fn look(&mut self) -> Option<Change> {
        let core = self.member.core;
        let answered = self.answered.swap(false, Ordering::Relaxed);
        self.answers = answered;
        if answered || !self.asked {
            // A worker that has ended drops the question, so it stays unanswered.
            self.asked = self.member.call(Arc::clone(&self.answered)).is_ok();
        }
        if answered {
            self.looks = 0;
            let was_silent = self.member.is_silent();
            self.member.set_silent(false);
            self.member.pay();
            return was_silent.then_some(Change::Answers(core));
        }
        self.looks = self.looks.saturating_add(1);
        if self.looks < LOOKS || self.member.is_silent() {
            return None;
        }
        self.member.set_silent(true);
        Some(Change::Silent(core))
    }
}
