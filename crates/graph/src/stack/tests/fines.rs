//! Stacks that send what they must not, and others beside them.

use super::*;
use crate::stack::bounds::{FINE, SPARE};

/// Slots of each ring.
const RING: u32 = 64;
/// First bytes of packets that must not be sent, and of others.
const BAD: u8 = 2;
const GOOD: u8 = 4;
/// Slots of a round that all share.
const ROUND: u64 = SPARE as u64;
/// Of so many rounds one is for what is refused.
const PERIOD: u64 = FINE as u64;

struct Bed {
    pool: BufferPool,
    outside: Outside,
    graph: Graph,
    vector: Box<Vector>,
    stacks: Stacks,
    /// With the first byte of all packets that each sends.
    processes: Vec<(u8, Process)>,
}

impl Bed {
    fn new(name: &str) -> Self {
        let pool = own_pool(name, 511);
        let (outside, stacks) = (Outside::new(1, 0, 512), Stacks::default());
        Self { pool, outside, graph: graph(), vector: Vector::new(), stacks, processes: Vec::new() }
    }

    /// More stacks of a user.
    fn add(&mut self, count: usize, pace: &ClientPace, first: u8) {
        for _ in 0..count {
            let (setup, process) = process(RING, self.pool, pace);
            assert!(self.stacks.add(id(self.processes.len() as u16, 1), setup).is_none());
            self.processes.push((first, process));
        }
    }

    fn round(&mut self) -> usize {
        let Self { outside, graph, vector, stacks, .. } = self;
        let found = stacks.send(graph, vector, &mut outside.exits, 0);
        outside.exits.output.flush(&outside.counters);
        outside.sent(0);
        found
    }

    /// Rounds in which all have as much to send as their rings hold.
    fn flood(&mut self, rounds: u64) {
        for _ in 0..rounds {
            self.processes.iter_mut().for_each(|(first, process)| process.flood(&[*first; 60]));
            self.round();
        }
    }

    fn sent(&self, at: usize) -> u64 {
        self.processes[at].1.counters.queues.sent.get()
    }

    fn refused(&self) -> u64 {
        let refused = |(_, process): &(u8, Process)| process.counters.queues.refused.get();
        self.processes.iter().map(refused).sum()
    }
}

#[test]
fn what_is_refused_takes_few_rounds_from_however_many_stacks_it_comes() {
    const ROUNDS: u64 = 3000;
    let mut bed = Bed::new("stack-refused");
    bed.add(40, &ClientPace::default(), BAD);
    bed.add(1, &ClientPace::default(), GOOD);
    bed.flood(ROUNDS);
    let (refused, most) = (bed.refused(), ROUNDS * ROUND / PERIOD + ROUND);
    assert!((most * 9 / 10..=most).contains(&refused), "{refused} of {most}");
    assert_eq!(bed.sent(40), ROUNDS * ROUND - refused, "another user has all the rest");
    // Who sends nothing more owes nothing in the end, so that the worker sleeps.
    bed.processes.clear();
    let idle = (0..ROUNDS).find(|_| bed.round() == 0);
    assert!(idle.is_some());
    assert_eq!(bed.pool.available(), 511);
}

#[test]
fn a_stack_that_sends_what_it_may_does_not_wait_for_others_of_its_user() {
    const ROUNDS: u64 = 1000;
    let (mut bed, pace) = (Bed::new("stack-same-user"), ClientPace::default());
    bed.add(40, &pace, BAD);
    bed.add(1, &pace, GOOD);
    bed.flood(ROUNDS);
    // Each of the others is let in once before anything is known of it.
    let least = ROUNDS - 41 - ROUNDS / PERIOD;
    assert!(bed.sent(40) > least * ROUND, "{} of {}", bed.sent(40), ROUNDS * ROUND);
}

#[test]
fn who_sends_what_it_may_for_long_enough_is_a_stack_like_others() {
    const ROUNDS: u64 = 160;
    let (mut bed, pace) = (Bed::new("stack-regained"), ClientPace::default());
    bed.add(2, &pace, BAD);
    bed.flood(40);
    bed.processes[1].0 = GOOD;
    let before = bed.sent(1);
    bed.flood(ROUNDS);
    let on_probation = bed.sent(1) - before;
    assert!((1..ROUNDS * ROUND / 4).contains(&on_probation), "{on_probation}");
    bed.flood(3000);
    let before = bed.sent(1);
    bed.flood(ROUNDS);
    let (sent, least) = (bed.sent(1) - before, ROUNDS - ROUNDS / PERIOD - 2);
    assert!(sent >= least * ROUND, "{sent}");
}

#[test]
fn a_packet_costs_its_user_more_the_longer_it_is() {
    let (mut bed, pace) = (Bed::new("stack-long-refused"), ClientPace::default());
    bed.add(1, &pace, BAD);
    let [short, long] = [60, 2000].map(|length| {
        bed.processes[0].1.send(&vec![BAD; length]);
        assert_eq!(bed.round(), 1);
        // Rounds until all is paid.
        (1..).find(|_| bed.round() == 0)
    });
    assert!(short < long, "{short:?}, {long:?}");
    assert_eq!(bed.refused(), 2);
}

#[test]
fn marks_that_make_no_sense_are_paid_for_as_well() {
    let (mut bed, pace) = (Bed::new("stack-marks"), ClientPace::default());
    bed.add((SPARE / FINE + 1) as usize, &pace, BAD);
    for (_, process) in &bed.processes {
        // A packet longer than a slot, in one slot.
        let wild = Layout::new(4, 4096).unwrap();
        let region = process.segment.region(layout(RING).bytes(), wild.bytes()).unwrap();
        let mut producer = shm::Producer::new(region, wild).unwrap();
        producer.push(&[GOOD; 3000], Meta::default()).unwrap();
    }
    assert_eq!(bed.round(), 0, "no packets");
    let malformed =
        bed.processes.iter().map(|(_, process)| process.counters.queues.malformed.get());
    assert_eq!(malformed.sum::<u64>(), bed.processes.len() as u64);
    assert_eq!([bed.round(), bed.round()], [1, 0], "a round to pay in");
}
