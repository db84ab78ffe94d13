//! Stacks that send to another stack more than that one reads.

use super::*;

const RING: u32 = 128;

struct Bed {
    pool: BufferPool,
    outside: Outside,
    graph: Graph,
    vector: Box<Vector>,
    stacks: Stacks,
    sender: Process,
    reader: Process,
    /// TSC cycles.
    now: u64,
}

impl Bed {
    fn new(name: &str, users: [&ClientPace; 2]) -> Self {
        let pool = own_pool(name, 511);
        let mut stacks = Stacks::default();
        let [sender, reader] = [0, 1].map(|at: u16| {
            let (setup, process) = process(RING, pool, users[usize::from(at)]);
            assert!(stacks.add(id(at, 1), setup).is_none());
            process
        });
        let (outside, graph, vector) = (Outside::new(1, 0, 512), graph(), Vector::new());
        Self { pool, outside, graph, vector, stacks, sender, reader, now: 1_000 * millisecond() }
    }

    /// So many rounds, in which the sender has as much for the reader as its ring holds. Gives how many packets it has sent.
    fn rounds(&mut self, count: usize) -> u64 {
        let sent = |bed: &Self| bed.sender.counters.queues.sent.get();
        let before = sent(self);
        for _ in 0..count {
            self.sender.flood(&[5; 60]);
            let Self { stacks, graph, vector, outside, now, .. } = self;
            stacks.send(graph, vector, &mut outside.exits, *now);
        }
        sent(self) - before
    }

    fn lost(&self) -> u64 {
        self.outside.drops(Reason::StackFull)
    }

    /// The reader takes so many packets.
    fn reads(&mut self, count: usize) {
        for _ in 0..count {
            let taken = self.reader.from_daemon.next().unwrap();
            self.reader.from_daemon.release(taken);
        }
    }
}

fn millisecond() -> u64 {
    dpdk::tsc_hz() / 1_000
}

#[test]
fn who_fills_the_ring_of_another_waits_until_that_has_read() {
    let user = ClientPace::default();
    let mut bed = Bed::new("stack-waits", [&user, &user]);
    assert_eq!((bed.rounds(50), bed.lost()), (RING.into(), 0), "as many as find room");
    assert!(!bed.stacks.arm(), "the worker looks again soon: nobody tells it of room");
    bed.stacks.disarm();
    bed.reads(RING as usize / 2 - 1);
    assert_eq!(bed.rounds(1), 0, "half of the ring is to be free");
    bed.reads(1);
    assert_eq!((bed.rounds(50), bed.lost()), (u64::from(RING) / 2, 0));
    // Who has gone keeps nobody waiting.
    assert!(bed.stacks.remove(id(1, 1)).is_some());
    assert!(bed.rounds(1) > 0);
    assert_eq!(bed.pool.available(), 511);
}

#[test]
fn who_does_not_read_keeps_nobody_waiting_for_long_nor_soon_again() {
    let user = ClientPace::default();
    let mut bed = Bed::new("stack-in-vain", [&user, &user]);
    bed.rounds(50);
    bed.now += 3 * millisecond();
    assert_eq!(bed.rounds(1), 0);
    bed.now += millisecond() + 1;
    for _ in 0..9 {
        assert_eq!(bed.rounds(10), 320, "it goes on, and what finds no room is lost");
        bed.now += 10 * millisecond();
    }
    assert!(bed.lost() > 2_000);
    bed.now += 20 * millisecond();
    assert_eq!(bed.rounds(10), 32, "it is waited for once more");
}

#[test]
fn another_user_is_waited_for_a_part_of_the_time() {
    let (one, other) = (ClientPace::default(), ClientPace::default());
    let mut bed = Bed::new("stack-foreign", [&one, &other]);
    let (mut waited, rounds) = (0, 10_000);
    for _ in 0..rounds {
        bed.now += millisecond() / 100;
        let waits = bed.rounds(1) == 0;
        waited += u64::from(waits);
        // It reads just before it would have been waited for in vain.
        if waits && waited % 390 == 389 {
            bed.reader.received();
        }
    }
    assert!((1_000..=rounds / 8 + 500).contains(&waited), "{waited} of {rounds}");
}
