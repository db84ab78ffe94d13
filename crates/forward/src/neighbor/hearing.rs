//! Whether the workers listen: questions leave through any of them and answers arrive at any of them, so while one of them
//! stands still, silence says nothing about a neighbour.

/// Shorter gaps between two signs of a worker's life are no loss: a fraction of a second remains for the answer.
/// Nanoseconds.
const SHORT: u64 = 250_000_000;

/// A worker that is silent for longer is written off: what hears neighbours are the others. Nanoseconds.
const LONG: u64 = 60_000_000_000;

/// When each worker was last seen going through its receive queues, and how much time passed in which one was not.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    workers: Vec<Worker>,
}

#[derive(Debug)]
struct Worker {
    number: usize,
    heard: u64,
    lost: u64,
}

impl Hearing {
    /// A worker has gone through its receive queues since it was last seen doing so.
    pub(super) fn listened(&mut self, number: usize, now: u64) {
        match self.workers.iter_mut().find(|worker| worker.number == number) {
            Some(worker) => {
                worker.lost = worker.lost(now);
                worker.heard = now;
            }
            None => self.workers.push(Worker { number, heard: now, lost: 0 }),
        }
    }

    /// Nanoseconds in which a worker did not listen, for all workers together, until now. It never falls.
    pub(super) fn lost(&self, now: u64) -> u64 {
        self.workers.iter().fold(0, |sum, worker| sum.saturating_add(worker.lost(now)))
    }
}

impl Worker {
    fn lost(&self, now: u64) -> u64 {
        let gap = now.saturating_sub(self.heard);
        self.lost.saturating_add(if gap > SHORT { gap.min(LONG) } else { 0 })
    }
}
