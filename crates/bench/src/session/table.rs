//! Finding a session by its descriptor. No two workers share a session, but with a table that all share, each of them takes
//! a lock for the table and one for the session; with the descriptor as an index into an array of its own, none.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError, RwLock};
use std::thread;

use crate::failure::Failure;
use crate::load::Random;
use crate::machine;
use crate::results::{Better, Outcome};
use crate::terminal::Parts;
use crate::turns::Rounds;

use super::{Extent, threads};

/// Sessions of a worker.
const SESSIONS: usize = 1_000;
/// Look-ups between two looks whether the time is over.
const BATCH: u64 = 256;

/// What a look-up finds, and what it changes there.
#[derive(Debug, Default)]
struct Session {
    reads: u64,
    bytes: u64,
}

impl Session {
    fn receive(&mut self, bytes: u64) {
        self.reads += 1;
        self.bytes = self.bytes.wrapping_add(bytes);
    }
}

/// How a session is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Locks,
    Index,
}

impl Way {
    const ALL: [Self; 2] = [Self::Locks, Self::Index];
}

type Shared = RwLock<HashMap<usize, Mutex<Session>>>;

/// Steps of the bar: turns.
pub(super) fn steps(extent: Extent) -> usize {
    threads(extent).count() * Way::ALL.len() * extent.rounds as usize
}

pub(super) fn measure(extent: Extent, bar: &Parts) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes = Vec::new();
    for workers in threads(extent) {
        let rounds = Rounds::take(&Way::ALL, extent.rounds, |way| {
            let rate = match way {
                Way::Locks => with_locks(extent, workers),
                Way::Index => by_index(extent, workers),
            };
            bar.step();
            rate
        })?;
        let [locks, index] = Way::ALL.map(|way| rounds.samples(way, |rate| *rate));
        let outcome = Outcome::new("session found by descriptor", "1/s", index)
            .with(&[("workers", workers.into())])
            .beside("table behind a read/write lock", &locks, Better::More);
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

fn with_locks(extent: Extent, workers: usize) -> Result<f64, Failure> {
    let all = (0..workers * SESSIONS).map(|fd| (fd, Mutex::new(Session::default())));
    let table: Arc<Shared> = Arc::new(RwLock::new(all.collect()));
    together(extent, workers, |worker| {
        let table = Arc::clone(&table);
        move |session: usize| {
            let table = table.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(session) = table.get(&(worker * SESSIONS + session)) {
                session.lock().unwrap_or_else(PoisonError::into_inner).receive(64);
            }
        }
    })
}

fn by_index(extent: Extent, workers: usize) -> Result<f64, Failure> {
    together(extent, workers, |_| {
        let mut own: Vec<Session> = (0..SESSIONS).map(|_| Session::default()).collect();
        move |session: usize| {
            if let Some(session) = black_box(&mut own).get_mut(session) {
                session.receive(64);
            }
        }
    })
}

/// Has workers look up sessions at the same time; gives look-ups per second of all.
fn together<W: FnMut(usize) + Send>(
    extent: Extent,
    workers: usize,
    make: impl Fn(usize) -> W,
) -> Result<f64, Failure> {
    let (stop, ready) = (AtomicBool::new(false), Barrier::new(workers + 1));
    let cores = machine::cores();
    thread::scope(|scope| {
        let mut running = Vec::new();
        for worker in 0..workers {
            let mut look_up = make(worker);
            let (stop, ready) = (&stop, &ready);
            let core = cores.get(worker % cores.len().max(1)).copied().unwrap_or(0);
            running.push(scope.spawn(move || {
                let pinned = machine::pin(core);
                let mut random = Random::new(worker as u64 + 1);
                let mut done = 0;
                ready.wait();
                let begin = std::time::Instant::now();
                // Each looks up some, even where it gets its core late.
                loop {
                    for _ in 0..BATCH {
                        look_up(random.below(SESSIONS));
                    }
                    done += BATCH;
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
                pinned.map(|()| done as f64 / begin.elapsed().as_secs_f64())
            }));
        }
        ready.wait();
        thread::sleep(extent.time);
        stop.store(true, Ordering::Relaxed);
        let mut all = 0.0;
        for worker in running {
            all += worker.join().map_err(|_| Failure::Thread)??;
        }
        Ok(all)
    })
}
