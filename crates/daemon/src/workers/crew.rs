//! Commands to workers. A command is left with its worker at once and answered later: nobody who holds the
//! daemon waits for a worker.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use graph::{Remote, WorkerError, WorkerState};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::ports::Buffers;
use crate::service::Threads;

/// How long a worker may take to answer. It answers between two vectors, so this is a lost worker.
const DEADLINE: Duration = Duration::from_secs(5);

/// The thread that drops what comes too late.
pub(super) const LATE: &str = "millrace-late";

/// A worker that takes commands.
#[derive(Clone)]
pub(crate) struct Member {
    /// The core that it is pinned to.
    pub(crate) core: u16,
    /// Where it gets buffers for what it makes itself.
    pub(crate) buffers: Buffers,
    pub(super) remote: Remote,
    silent: Arc<AtomicBool>,
    down: Arc<AtomicBool>,
    late: Sender<Late>,
    owed: Arc<Mutex<VecDeque<Owed>>>,
}

/// A command that is carried out whenever the worker answers again.
type Owed = Arc<Mutex<Option<Box<dyn FnOnce(&mut WorkerState) + Send>>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a worker gives to somebody who has gone.
type Late = Box<dyn Send>;

/// Starts the thread that drops what comes too late: a queue that closes a device, a client's memory that is
/// unmapped. It ends with the last worker. `threads` tell when a driver holds it up.
///
/// Errors: the system has no thread for it.
pub(super) fn late(threads: &Threads) -> io::Result<Sender<Late>> {
    let (sender, receiver) = channel::<Late>();
    let pulse = threads.add(LATE.to_owned());
    let body = move || {
        for late in receiver {
            pulse.works();
            drop(late);
            pulse.rests();
        }
    };
    thread::Builder::new().name(LATE.to_owned()).spawn(body)?;
    Ok(sender)
}

impl Member {
    pub(super) fn new(core: u16, buffers: Buffers, remote: Remote, late: Sender<Late>) -> Self {
        let (silent, down) = (Arc::default(), Arc::default());
        Self { core, buffers, remote, silent, down, late, owed: Arc::default() }
    }

    /// Whether it has stopped answering, so that it takes no commands; see `watch`.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }

    pub(super) fn set_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::Relaxed);
    }

    /// Whether it is silent, or was of late, again and again: what people are told, and what its ports are; see `standing`.
    pub(crate) fn is_down(&self) -> bool {
        self.down.load(Ordering::Relaxed)
    }

    pub(super) fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::Relaxed);
    }

    /// Leaves a command with the worker. What it returns to nobody is dropped elsewhere, not between two vectors; so is a command
    /// that the worker does not get.
    pub(crate) fn ask<R: Send + 'static>(
        &self,
        command: impl FnOnce(&mut WorkerState) -> R + Send + 'static,
    ) -> Answer<R> {
        let worker = self.remote.index();
        let command = Command { act: Some(command), late: self.late.clone() };
        if self.is_silent() {
            return Answer { worker, given: Err(WorkerError::Timeout(worker)) };
        }
        let (answer, given) = oneshot::channel();
        let left = self.remote.post(move |state| command.run(state, answer));
        Answer { worker, given: left.map(|()| given) }
    }
}

/// A command. If no worker runs it, it is dropped where that may take its time: it may hold an instance of a packet function.
struct Command<F: Send + 'static> {
    act: Option<F>,
    late: Sender<Late>,
}

impl<F: Send + 'static> Command<F> {
    fn run<R: Send + 'static>(mut self, state: &mut WorkerState, answer: oneshot::Sender<R>)
    where
        F: FnOnce(&mut WorkerState) -> R,
    {
        let Some(act) = self.act.take() else { return };
        // Nobody listens after the deadline, or when who asked has gone.
        if let Err(result) = answer.send(act(state)) {
            let _ = self.late.send(Box::new(result));
        }
    }
}

impl<F: Send + 'static> Drop for Command<F> {
    fn drop(&mut self) {
        if let Some(act) = self.act.take() {
            let _ = self.late.send(Box::new(act));
        }
    }
}

impl Member {
    /// Asks whether it is there: `answer` is set then. What it is done with is dropped elsewhere.
    pub(super) fn call(&self, answer: Arc<AtomicBool>) -> Result<(), WorkerError> {
        let late = self.late.clone();
        self.remote.post(move |state| {
            let spent = state.take_spent();
            if !spent.is_empty() {
                let _ = late.send(Box::new(spent));
            }
            answer.store(true, Ordering::Relaxed);
        })
    }

    /// As [`Self::ask`], for what takes something back: a worker that does not answer now does it when it answers again, in the
    /// order in which it was asked, and what it gives back then is dropped.
    pub(crate) fn owe<R: Send + 'static>(
        &self,
        command: impl FnOnce(&mut WorkerState) -> R + Send + 'static,
    ) -> Answer<R> {
        let worker = self.remote.index();
        let (answer, given) = oneshot::channel();
        let late = self.late.clone();
        let act = move |state: &mut WorkerState| {
            if let Err(result) = answer.send(command(state)) {
                let _ = late.send(Box::new(result));
            }
        };
        let act: Owed = Arc::new(Mutex::new(Some(Box::new(act))));
        let mut owed = lock(&self.owed);
        let answers = !self.is_silent();
        // What is owed already comes first, and is paid within a moment by a worker that answers.
        let is_behind = !owed.is_empty();
        if answers && (is_behind || self.leave(&act)) {
            if is_behind {
                owed.push_back(act);
            }
            return Answer { worker, given: Ok(given) };
        }
        owed.push_back(act);
        Answer { worker, given: Err(WorkerError::Timeout(worker)) }
    }

    /// Leaves what is owed with the worker, as much as it takes.
    pub(super) fn pay(&self) {
        let mut owed = lock(&self.owed);
        while owed.front().is_some_and(|act| self.leave(act)) {
            owed.pop_front();
        }
    }

    /// Whether it took it; one that has ended takes everything.
    fn leave(&self, act: &Owed) -> bool {
        let act = Arc::clone(act);
        let left = self.remote.post(move |state| {
            let act = lock(&act).take();
            if let Some(act) = act {
                act(state);
            }
        });
        !matches!(left, Err(WorkerError::Full(_)))
    }
}

/// What a worker will say.
#[must_use]
pub(crate) struct Answer<R> {
    worker: usize,
    given: Result<oneshot::Receiver<R>, WorkerError>,
}

impl<R: Send + 'static> Answer<R> {
    /// Waits for it.
    ///
    /// Errors: [`WorkerError`]: the worker has ended, is silent, or has too many commands waiting.
    pub(crate) async fn get(self) -> Result<R, WorkerError> {
        match timeout(DEADLINE, self.given?).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(WorkerError::Ended(self.worker)),
            Err(_) => Err(WorkerError::Timeout(self.worker)),
        }
    }

    /// Waits for it elsewhere, and drops it: what a worker gives back is not dropped between two vectors.
    pub(crate) fn forget(self) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(self.get());
        }
    }
}

/// All workers, in order, for those who leave commands with them.
#[derive(Clone, Default)]
pub(crate) struct Crew(Arc<[Member]>);

impl Crew {
    pub(super) fn of(members: Vec<Member>) -> Self {
        Self(members.into())
    }

    /// The workers in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.0.iter()
    }

    /// How many workers there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// A worker by its number.
    pub(crate) fn get(&self, index: usize) -> Option<&Member> {
        self.0.get(index)
    }

    /// The worker on a core.
    pub(crate) fn on_core(&self, core: u16) -> Option<&Member> {
        self.0.iter().find(|member| member.core == core)
    }

    /// The number of the worker on a core.
    pub(crate) fn position(&self, core: u16) -> Option<usize> {
        self.0.iter().position(|member| member.core == core)
    }

    /// Leaves the same command with every worker; they run it at the same time.
    pub(crate) fn ask_all<R: Send + 'static>(
        &self,
        command: impl FnOnce(&mut WorkerState) -> R + Copy + Send + 'static,
    ) -> Answers<R> {
        Answers(self.0.iter().map(|member| member.ask(command)).collect())
    }
}

impl Crew {
    /// As [`Self::ask_all`], for what takes something back ([`Member::owe`]).
    pub(crate) fn owe_all<R: Send + 'static>(
        &self,
        command: impl FnOnce(&mut WorkerState) -> R + Copy + Send + 'static,
    ) -> Answers<R> {
        Answers(self.0.iter().map(|member| member.owe(command)).collect())
    }
}

/// What all workers will say.
#[must_use]
pub(crate) struct Answers<R>(Vec<Answer<R>>);

impl<R: Send + 'static> Answers<R> {
    /// Waits for all of them; what those do not say that do not answer is in the log.
    pub(crate) async fn all(self) -> Vec<R> {
        let mut all = Vec::with_capacity(self.0.len());
        for answer in self.0 {
            match answer.get().await {
                Ok(answer) => all.push(answer),
                Err(error) => tracing::error!("{error}"),
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::mpsc::Receiver;
    use std::thread::sleep;
    use std::time::Instant;

    /// Dropping it takes as long as the other end stays.
    struct Held(Receiver<()>);

    impl Drop for Held {
        fn drop(&mut self) {
            let _ = self.0.recv();
        }
    }

    #[test]
    fn it_is_said_that_what_comes_late_is_not_dropped() {
        let threads = Threads::default();
        let late = late(&threads).unwrap();
        let said = || {
            let begun = Instant::now();
            loop {
                let news = threads.look();
                if !news.is_empty() {
                    break news;
                }
                assert!(begun.elapsed() < Duration::from_secs(20), "nothing is said");
                sleep(Duration::from_millis(1));
            }
        };
        let (stays, held) = channel();
        late.send(Box::new(Held(held))).unwrap();
        assert_eq!(said(), [(LATE.to_owned(), false)]);
        drop(stays);
        assert_eq!(said(), [(LATE.to_owned(), true)]);
    }
}
