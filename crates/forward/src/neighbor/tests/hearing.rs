//! Workers that are held back: a neighbour whose answer nobody could hear is not dead.

use super::*;

impl Bench {
    /// Time passes in which these workers go through their receive queues ten times a second.
    fn listen(&mut self, workers: &[usize], tenths: u64) -> Vec<Action<Sent>> {
        let mut all = Vec::new();
        for _ in 0..tenths {
            let end = self.now + SECOND / 10;
            while let Some(next) = self.path.poll(self.now, &mut self.actions) {
                if next > end {
                    break;
                }
                self.now = next.max(self.now + 1);
            }
            self.now = end;
            workers.iter().for_each(|worker| self.path.listened(*worker, end));
            all.append(&mut self.actions);
        }
        self.path.poll(self.now, &mut self.actions);
        all.append(&mut self.actions);
        all
    }

    /// 10.0.0.2 is known, was used while stale, and is about to be asked.
    fn probing(workers: &[usize]) -> Self {
        let mut bench = Self::new();
        bench.listen(workers, 1);
        bench.forward("10.0.0.2");
        bench.receive(Cause::Arp, &reply(2));
        bench.listen(workers, 460);
        bench.forward("10.0.0.2");
        bench.listen(workers, 60);
        assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Probe));
        bench
    }
}

#[test]
fn a_silent_worker_takes_no_neighbor_away() {
    let mut bench = Bench::probing(&[0, 1]);
    // Worker 1 stands still: what it has received, nobody knows.
    bench.listen(&[0], 150);
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Probe));
    assert_eq!(bench.kind("10.0.0.2"), Kind::Forward);
    // Both are back, and the answer has been lost: the rest of the questions is asked, and counts.
    let asked = bench.listen(&[0, 1], 21);
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Probe));
    assert!((1..=3).contains(&frames(&asked).len()), "{asked:?}");
    bench.listen(&[0, 1], 20);
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Failed));
}

#[test]
fn an_answer_that_waited_in_the_queue_is_in_time() {
    let mut bench = Bench::probing(&[0]);
    bench.listen(&[], 150);
    bench.path.listened(0, bench.now);
    bench.listen(&[0], 9);
    bench.receive(Cause::Arp, &reply(2));
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Reachable));
}

#[test]
fn a_first_question_waits_as_well() {
    let mut bench = Bench::new();
    bench.listen(&[0], 1);
    let waits = bench.forward("10.0.0.2");
    assert_eq!(frames(&bench.listen(&[], 100)).len(), 1, "asked once");
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Incomplete));
    bench.path.listened(0, bench.now);
    bench.receive(Cause::Arp, &reply(2));
    assert_eq!(released(&bench.take()), [&waits]);
}

#[test]
fn time_that_was_lost_is_given_once_and_no_more() {
    let mut bench = Bench::new();
    bench.listen(&[0], 1);
    bench.forward("10.0.0.2");
    // Half a second of each second is lost, so three questions of a second take six.
    for second in 0..6 {
        assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Incomplete), "after {second} s");
        bench.listen(&[], 5);
        bench.listen(&[0], 5);
    }
    bench.listen(&[0], 15);
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Failed));
}

#[test]
fn short_gaps_are_no_loss() {
    let mut bench = Bench::new();
    bench.listen(&[0], 1);
    bench.forward("10.0.0.2");
    for _ in 0..16 {
        bench.listen(&[], 1);
        bench.listen(&[0], 1);
    }
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Failed));
}

#[test]
fn a_worker_that_is_gone_for_good_keeps_nobody() {
    let mut bench = Bench::new();
    bench.listen(&[0, 1], 1);
    bench.listen(&[0], 700);
    bench.forward("10.0.0.2");
    bench.listen(&[0], 31);
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Failed));
}
