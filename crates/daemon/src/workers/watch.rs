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

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::mpsc::channel;
    use std::thread::sleep;
    use std::time::Instant;

    use graph::{
        Context, Counters, Doorbell, Exits, GraphBuilder, NoEdge, Node, Output, PollMode, Slot,
        Vector, WorkerHandle, WorkerSetup, ring,
    };

    use crate::ports::Buffers;
    use crate::testing;
    use crate::workers::crew;

    const PATIENCE: Duration = Duration::from_secs(20);
    const CORE: u16 = 7;

    /// All that a worker without ports needs.
    struct Nothing;

    impl Node for Nothing {
        type Next = NoEdge;

        fn name(&self) -> &'static str {
            "nothing"
        }

        fn process(&mut self, _: &[Slot], _: &mut Context<'_, NoEdge>) {}

        fn describe(&self, _: &Vector, _: Slot) -> String {
            String::new()
        }
    }

    fn worker() -> (WorkerHandle, Crew) {
        let pool = testing::pool();
        let doorbell = Arc::new(Doorbell::new().unwrap());
        let control = Arc::new(Doorbell::new().unwrap());
        let make = move || {
            let graph = GraphBuilder::default().with(Nothing).build()?;
            let (to_control, punts) = ring(64, control);
            let exits = Exits::new(Output::new(1, 1000), Arc::new(Counters::new(1, 1)), to_control);
            Ok((graph, exits, punts))
        };
        let (core, entry, poll) = (None, "nothing", PollMode::Adaptive);
        let setup = WorkerSetup { index: 0, core, entry, doorbell, burst: 64, poll };
        let (handle, _punts) = WorkerHandle::spawn(setup, make).unwrap();
        let buffers = Buffers { packets: pool, long: pool };
        let member = Member::new(CORE, buffers, handle.remote(), crew::late().unwrap());
        (handle, Crew::of(vec![member]))
    }

    #[test]
    fn a_worker_that_hangs_is_noticed_within_a_second_and_so_is_its_return() {
        let (handle, crew) = worker();
        let mut watch = Watch::new(&crew);
        let is_silent = || crew.iter().any(Member::is_silent);
        let (go_on, hangs) = channel::<()>();
        let hang = move || hangs.recv_timeout(PATIENCE).is_ok();
        handle.remote().post(move |_| assert!(hang(), "nobody let it go on")).unwrap();
        let silent = [Change::Silent(CORE)];
        let looks = (1..=100).find(|_| watch.look() == silent).unwrap();
        // It may have begun to hang just after it had answered, and just before a look.
        assert!(PERIOD * (looks + 1) < Duration::from_secs(1), "{looks} looks");
        assert!(is_silent());
        assert!(watch.look().is_empty(), "said once");
        go_on.send(()).unwrap();
        let (begin, answers) = (Instant::now(), [Change::Answers(CORE)]);
        while watch.look() != answers {
            assert!(begin.elapsed() < PATIENCE, "it does not answer again");
            sleep(Duration::from_millis(1));
        }
        assert!(!is_silent());
        handle.stop(PATIENCE).unwrap();
    }
}
