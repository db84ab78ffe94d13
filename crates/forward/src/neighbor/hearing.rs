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
    /// By number.
    workers: Vec<Option<Worker>>,
    /// What was lost until when: packets that are taken in together ask for it again and again, of all workers.
    known: Option<(u64, u64)>,
}

#[derive(Debug)]
struct Worker {
    heard: u64,
    lost: u64,
}

impl Hearing {
    /// A worker has gone through its receive queues since it was last seen doing so.
    pub(super) fn listened(&mut self, number: usize, now: u64) {
        self.known = None;
        if self.workers.len() <= number {
            self.workers.resize_with(number + 1, || None);
        }
        if let Some(place) = self.workers.get_mut(number) {
            let lost = place.as_ref().map_or(0, |worker| worker.lost(now));
            *place = Some(Worker { heard: now, lost });
        }
    }

    /// Nanoseconds in which a worker did not listen, for all workers together, until now. It never falls.
    pub(super) fn lost(&mut self, now: u64) -> u64 {
        if let Some((_, lost)) = self.known.filter(|(then, _)| *then == now) {
            return lost;
        }
        let workers = self.workers.iter().flatten();
        let lost = workers.fold(0, |sum: u64, worker| sum.saturating_add(worker.lost(now)));
        self.known = Some((now, lost));
        lost
    }
}

impl Worker {
    fn lost(&self, now: u64) -> u64 {
        let gap = now.saturating_sub(self.heard);
        self.lost.saturating_add(if gap > SHORT { gap.min(LONG) } else { 0 })
    }
}
