//! What workers hand to the control thread, taken in steps that do not grow with the number of workers.

use rtrb::Consumer;

/// The rings of all workers.
pub(crate) struct Inbox<T> {
    /// By worker.
    rings: Vec<Consumer<T>>,
    /// The worker whose ring is looked at first.
    first: usize,
}

impl<T> Inbox<T> {
    pub(crate) fn new(rings: Vec<Consumer<T>>) -> Self {
        Self { rings, first: 0 }
    }

    /// Takes out at most `step`, and of each worker at most `share`; (worker, what it handed up) goes to `each`. When a step
    /// ends before all had their turn, the next one begins with those that had not. Returns whether something is left.
    pub(crate) fn take(
        &mut self,
        step: usize,
        share: usize,
        mut each: impl FnMut(usize, T),
    ) -> bool {
        let count = self.rings.len();
        let mut left = step;
        for worker in (self.first..count).chain(0..self.first.min(count)) {
            let Some(ring) = self.rings.get_mut(worker) else { break };
            let taken = std::iter::from_fn(|| ring.pop().ok()).take(left.min(share));
            left -= taken.map(|one| each(worker, one)).count();
            if left == 0 {
                self.first = (worker + 1) % count;
                break;
            }
        }
        !self.is_empty()
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.rings.iter().all(Consumer::is_empty)
    }

    /// Forgets all rings, with what is in them.
    pub(crate) fn clear(&mut self) {
        self.rings.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbox(workers: usize, waiting: usize) -> Inbox<usize> {
        let ring = |_| {
            let (mut sender, receiver) = rtrb::RingBuffer::new(waiting);
            (0..waiting).for_each(|number| sender.push(number).unwrap());
            receiver
        };
        Inbox::new((0..workers).map(ring).collect())
    }

    #[test]
    fn a_step_is_as_long_with_many_workers_as_with_few() {
        for workers in [1, 3, 64, 1000] {
            let mut inbox = inbox(workers, 100);
            let mut taken = 0;
            assert!(inbox.take(50, 20, |_, _| taken += 1) && taken == 50.min(20 * workers));
        }
    }

    #[test]
    fn all_have_their_turn_and_each_keeps_its_order() {
        let (workers, waiting) = (7, 40);
        let mut inbox = inbox(workers, waiting);
        let mut seen = vec![Vec::new(); workers];
        let mut more = true;
        let mut steps = 0;
        while more {
            more = inbox.take(25, 10, |worker, number| seen[worker].push(number));
            steps += 1;
            let (most, least) = seen
                .iter()
                .fold((0, waiting), |(most, least), of| (of.len().max(most), of.len().min(least)));
            assert!(most - least <= 20, "nobody falls behind: {most}, {least}");
        }
        assert!((12..=16).contains(&steps), "{steps}");
        assert!(seen.iter().all(|of| of.iter().copied().eq(0..waiting)));
        assert!(inbox.is_empty());
    }
}
