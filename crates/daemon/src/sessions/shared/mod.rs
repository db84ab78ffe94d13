//! Stack workers: threads that run the TCP/IP stacks of processes that have placed them here.
//!
//! A process has a stack of its own on its worker, with packet queues, ports, listeners and claims like any other process's: who
//! may do what is decided and counted as for those, and a flow that one process must not see never reaches its stack. What the
//! process shares with the worker is only the memory of its sessions ([`host::Plan`]).

mod exchange;
mod held;
mod tenant;
mod turns;
mod worker;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use graph::Doorbell;
use host::Orphans;
use shm::{Segment, SegmentError};
use tokio::sync::mpsc::Receiver;

use crate::processes::{Debit, Place};
use crate::service::Threads;

pub(super) use held::{Held, Most};
pub(super) use tenant::{Arrival, Neighbourhood, state_bytes};
use tenant::{Heir, Tenant};

/// Pieces of what a process leaves that wait to be taken: the rest stays in its stack meanwhile, and counts.
const UNDER_WAY: usize = 2;

/// What a worker is told.
enum Job {
    /// A process comes.
    Come(Box<Arrival>),
    /// The process of the stack of that number is gone. Whoever is there gets what it leaves; then the stack ends.
    Go(u32, Heir),
}

/// The way to a worker.
#[derive(Debug, Clone)]
struct Worker {
    number: u16,
    jobs: Sender<Job>,
    bell: Arc<Doorbell>,
    /// Processes that it has.
    load: Arc<AtomicUsize>,
}

impl Worker {
    fn tell(&self, job: Job) {
        // A worker that has ended has no processes.
        let _ = self.jobs.send(job);
        self.bell.ring();
    }
}

/// All of them: begun when they are needed first.
#[derive(Debug, Default)]
pub(super) struct StackWorkers {
    workers: Mutex<Vec<Worker>>,
    threads: Arc<Threads>,
    /// Bytes of data that the processes of each user hold there.
    held: Mutex<HashMap<u32, Weak<AtomicUsize>>>,
}

impl StackWorkers {
    /// None yet. `threads`: where it is looked at those that come.
    pub(super) fn new(threads: Arc<Threads>) -> Self {
        Self { threads, ..Self::default() }
    }

    /// A place with the one that has the fewest processes, of so many at most: a process stays with its worker, and each of its
    /// connections with both. Users' threads ask at the same time.
    fn choose(&self, most: u16) -> io::Result<(Worker, Place)> {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let load = |worker: &&Worker| worker.load.load(Ordering::Relaxed);
        let idlest = workers.iter().min_by_key(load);
        if let Some(idlest) =
            idlest.filter(|idlest| load(idlest) == 0 || workers.len() >= usize::from(most))
        {
            return Ok((idlest.clone(), Place::of(&idlest.load)));
        }
        let (jobs, coming) = mpsc::channel();
        let (bell, load) = (Arc::new(Doorbell::new()?), Arc::default());
        let number = workers.len() as u16;
        let worker = Worker { number, jobs, bell: Arc::clone(&bell), load };
        let pulse = self.threads.add(format!("stack-{number}"));
        worker::start(number, coming, bell, pulse)?;
        workers.push(worker.clone());
        let place = Place::of(&worker.load);
        Ok((worker, place))
    }

    /// What the processes of a user hold on all of them: bytes of data.
    pub(super) fn held_by(&self, uid: u32) -> Arc<AtomicUsize> {
        let mut users = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|_, held| held.strong_count() > 0);
        if let Some(held) = users.get(&uid).and_then(Weak::upgrade) {
            return held;
        }
        let held = Arc::default();
        users.insert(uid, Arc::downgrade(&held));
        held
    }

    /// A place for a process, with the stack of that number, the memory of its sessions, and what its state takes beside it.
    ///
    /// Errors: no thread.
    pub(super) fn take_in(
        &self,
        most: u16,
        (stack, segment, state): (u32, Arc<Segment>, Debit),
        arrival: Arrival,
    ) -> io::Result<Lodging> {
        let (worker, place) = self.choose(most)?;
        let arrival = Mutex::new(Some(Box::new(arrival)));
        Ok(Lodging { stack, worker, _place: place, segment, _state: state, arrival })
    }
}

/// A process's place on a stack worker.
pub(super) struct Lodging {
    pub(super) stack: u32,
    worker: Worker,
    _place: Place,
    segment: Arc<Segment>,
    /// What its state takes on the worker.
    _state: Debit,
    /// `None`: it has come.
    arrival: Mutex<Option<Box<Arrival>>>,
}

impl Lodging {
    /// The worker's number.
    pub(super) fn worker(&self) -> u16 {
        self.worker.number
    }

    /// The process comes: it has mapped its memory. A worker that touched it before could be made to wait for each page that
    /// the process takes out, with everybody else whose stack it runs.
    ///
    /// Errors: [`Segment::close`].
    pub(super) fn begin(&self) -> Result<(), SegmentError> {
        self.segment.close()?;
        let arrival = self.arrival.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(arrival) = arrival {
            self.worker.tell(Job::Come(arrival));
        }
        Ok(())
    }

    /// The process is gone. Gives what it leaves; the worker has forgotten it when that is all.
    pub(super) fn leave(self) -> Leaving {
        let (heir, orphans) = tokio::sync::mpsc::channel(UNDER_WAY);
        self.worker.tell(Job::Go(self.stack, heir));
        Leaving { orphans, lodging: self }
    }
}

/// A process that leaves its stack worker.
pub(super) struct Leaving {
    orphans: Receiver<Orphans>,
    lodging: Lodging,
}

impl Leaving {
    /// Some of the connections that it has closed. `None`: those were all.
    pub(super) async fn next(&mut self) -> Option<Orphans> {
        let some = self.orphans.recv().await;
        // There is room for more.
        self.lodging.worker.bell.ring();
        some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_comes_to_the_worker_with_the_fewest_and_workers_begin_when_they_are_needed() {
        let workers = StackWorkers::default();
        let comes = |most| workers.choose(most).unwrap();
        let (first, second) = (comes(2), comes(2));
        assert_eq!((first.0.number, second.0.number), (0, 1));
        let third = comes(2);
        assert_eq!(third.0.number, 0, "no more than two");
        // Who has come stays; who comes next finds the place of who has gone.
        drop(second);
        let later = [comes(3), comes(3), comes(3)];
        assert_eq!(later.each_ref().map(|(worker, _)| worker.number), [1, 2, 1]);
        assert_eq!(workers.workers.lock().unwrap().len(), 3);
    }

    #[test]
    fn processes_of_a_user_have_one_account_as_long_as_there_are_some() {
        let workers = StackWorkers::default();
        let (one, other) = (workers.held_by(7), workers.held_by(8));
        one.store(5, Ordering::Relaxed);
        assert_eq!(workers.held_by(7).load(Ordering::Relaxed), 5);
        assert_eq!(other.load(Ordering::Relaxed), 0);
        drop((one, other));
        assert_eq!(workers.held_by(7).load(Ordering::Relaxed), 0);
        assert_eq!(workers.held.lock().unwrap().len(), 1, "nothing is left of the other");
    }
}
