//! Workers that have stopped answering: noticed within a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::standing::Standing;
use super::{Crew, Member};

/// Between two looks.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);

/// Looks without an answer until a worker counts as silent. Counted in looks, not in time: a machine that stood
/// still as a whole has lost no worker.
const LOOKS: u32 = 8;
/// The same for a worker that is slow to answer all the time, at most.
const MOST: u32 = 30;
/// Answers in a row that came sooner than usual until less is usual.
const SOONER: u32 = 100;

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The worker on this core answers no more. It is back when it has answered for so long; at first as soon as it does.
    Silent(u16, Duration),
    /// It is back.
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
    /// Looks since its last answer.
    looks: u32,
    /// So many there have been of late before an answer. Where others have the cores, each worker has its turn late.
    usual: u32,
    /// Answers since then that came sooner.
    sooner: u32,
    standing: Standing,
}

impl Watch {
    pub(crate) fn new(crew: &Crew) -> Self {
        let watched = |member: &Member| Watched {
            member: member.clone(),
            answered: Arc::default(),
            asked: false,
            answers: false,
            looks: 0,
            usual: 0,
            sooner: 0,
            standing: Standing::default(),
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
        self.listen();
        let is_down = self.standing.note(self.member.is_silent())?;
        self.member.set_down(is_down);
        let core = self.member.core;
        Some(if is_down {
            Change::Silent(core, PERIOD * self.standing.probation())
        } else {
            Change::Answers(core)
        })
    }

    /// Asks whether it is there, and notes whether it is silent.
    fn listen(&mut self) {
        let answered = self.answered.swap(false, Ordering::Relaxed);
        self.answers = answered;
        if answered || !self.asked {
            // A worker that has ended drops the question, so it stays unanswered.
            self.asked = self.member.call(Arc::clone(&self.answered)).is_ok();
        }
        if answered {
            if !self.member.is_silent() {
                self.learn();
            }
            self.looks = 0;
            self.member.set_silent(false);
            self.member.pay();
            return;
        }
        self.looks = self.looks.saturating_add(1);
        if self.looks >= self.patience() {
            self.member.set_silent(true);
        }
    }

    /// Looks without an answer until it counts as silent.
    fn patience(&self) -> u32 {
        (2 * self.usual + 1).clamp(LOOKS, MOST)
    }

    /// It has answered before it counted as silent: so late may be usual here.
    fn learn(&mut self) {
        if self.looks >= self.usual {
            (self.usual, self.sooner) = (self.looks, 0);
            return;
        }
        self.sooner += 1;
        if self.sooner == SOONER {
            (self.usual, self.sooner) = (self.usual - 1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::mpsc::{Sender, channel};
    use std::thread::{current, sleep};
    use std::time::Instant;

    use graph::{
        Context, Counters, Doorbell, Exits, GraphBuilder, NoEdge, Node, Output, PollMode, Slot,
        Vector, WorkerHandle, WorkerSetup, ring,
    };

    use crate::ports::Buffers;
    use crate::service::Threads;
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
        let late = crew::late(&Threads::default()).unwrap();
        let member = Member::new(CORE, buffers, handle.remote(), late);
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
        let silent = [Change::Silent(CORE, Duration::ZERO)];
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

    /// Waits until the worker has answered what it was asked.
    fn until_answered(watch: &Watch) {
        let begin = Instant::now();
        while !watch.list[0].answered.load(Ordering::Relaxed) {
            assert!(begin.elapsed() < PATIENCE, "it does not answer");
            sleep(Duration::from_micros(50));
        }
    }

    /// What is said of a worker that answers after so many looks without an answer.
    fn late_by(looks: u32, handle: &WorkerHandle, watch: &mut Watch) -> Vec<Change> {
        until_answered(watch);
        let (go_on, hangs) = channel::<()>();
        let hang = move || hangs.recv_timeout(PATIENCE).is_ok();
        handle.remote().post(move |_| assert!(hang(), "nobody let it go on")).unwrap();
        // The first one finds the answer from before, and asks again.
        let mut changes: Vec<Change> = (0..=looks).flat_map(|_| watch.look()).collect();
        go_on.send(()).unwrap();
        until_answered(watch);
        changes.extend(watch.look());
        changes
    }

    #[test]
    fn a_worker_that_is_slow_all_the_time_is_given_longer_but_not_for_ever() {
        let (handle, crew) = worker();
        let mut watch = Watch::new(&crew);
        watch.look();
        assert!(late_by(LOOKS - 1, &handle, &mut watch).is_empty());
        assert!(late_by(2 * (LOOKS - 1), &handle, &mut watch).is_empty());
        let both = [Change::Silent(CORE, Duration::ZERO), Change::Answers(CORE)];
        assert_eq!(late_by(MOST, &handle, &mut watch), both);
        // What a worker took that hung is not usual, and nothing is for ever.
        for _ in 0..2 * LOOKS * SOONER {
            until_answered(&watch);
            watch.look();
        }
        assert_eq!(late_by(LOOKS, &handle, &mut watch), both);
        handle.stop(PATIENCE).unwrap();
    }

    #[test]
    fn a_worker_that_falls_silent_again_takes_commands_at_once_and_is_back_when_it_stays() {
        let (handle, crew) = worker();
        let mut watch = Watch::new(&crew);
        watch.look();
        let both = [Change::Silent(CORE, Duration::ZERO), Change::Answers(CORE)];
        assert_eq!(late_by(LOOKS, &handle, &mut watch), both);
        let again = [Change::Silent(CORE, Duration::from_secs(1))];
        assert_eq!(late_by(LOOKS, &handle, &mut watch), again);
        assert!(crew.iter().all(|member| member.is_down() && !member.is_silent()));
        // Its first answer counts.
        let more = (1..=100).find(|_| {
            until_answered(&watch);
            watch.look() == [Change::Answers(CORE)]
        });
        assert_eq!(more, Some(9));
        assert!(!crew.iter().any(Member::is_down));
        handle.stop(PATIENCE).unwrap();
    }

    /// Tells on which thread it is dropped.
    struct Tells(Sender<Option<String>>);

    impl Drop for Tells {
        fn drop(&mut self) {
            let _ = self.0.send(current().name().map(str::to_owned));
        }
    }

    #[test]
    fn what_a_worker_does_not_get_is_dropped_elsewhere() {
        let (handle, crew) = worker();
        let member = crew.get(0).unwrap();
        let (tell, told) = channel();
        let give = |tells: Tells| {
            member.ask(move |_| drop(tells)).forget();
            told.recv_timeout(PATIENCE).unwrap()
        };
        member.set_silent(true);
        assert_eq!(give(Tells(tell.clone())).as_deref(), Some(crew::LATE));
        member.set_silent(false);
        handle.stop(PATIENCE).unwrap();
        assert_eq!(give(Tells(tell)).as_deref(), Some(crew::LATE), "it has ended");
    }
}
