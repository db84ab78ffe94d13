mod backpressure;
mod fines;

use std::sync::Arc;
use std::time::{Duration, Instant};

use dpdk::BufferPool;
use shm::{Layout, Meta, Segment};

use super::*;
use crate::testbed::{Out, Outside, WithScript, own_pool, packet};
use crate::{
    ClientChannel, ClientPace, ClientWake, Doorbell, Errand, Fate, Filter, Graph, GraphBuilder,
    InterfaceId, NodeId, PollMode, PortId, Reason, StackId, TraceOptions, Vector, WorkerHandle,
    WorkerSetup, trace,
};

/// The process's ends.
struct Process {
    from_daemon: shm::Consumer,
    to_daemon: shm::Producer,
    counters: Arc<StackCounters>,
    segment: Arc<Segment>,
    bell: std::os::fd::OwnedFd,
    _drain: shm::bell::Drain,
}

fn layout(slots: u32) -> Layout {
    Layout::new(slots, 2048).unwrap()
}

fn process(slots: u32, pool: BufferPool, pace: &ClientPace) -> (StackSetup, Process) {
    let layout = layout(slots);
    let segment = Arc::new(Segment::create("stack", 2 * layout.bytes()).unwrap());
    let ring = |which: usize| segment.region(which * layout.bytes(), layout.bytes()).unwrap();
    let errand = || Errand::new(Arc::new(Doorbell::new().unwrap()));
    let (watch, drain, bell) = shm::bell::inward().unwrap();
    let (to, from) = (
        shm::Producer::new(ring(0), layout).unwrap(),
        shm::Consumer::new(ring(1), layout).unwrap(),
    );
    let counters = Arc::new(StackCounters::default());
    let setup = StackSetup {
        channel: ClientChannel::new(to, from, errand()),
        wake: ClientWake::new(watch, 1, errand()),
        pace: pace.clone(),
        pool,
        entry: NodeId(0),
        counters: Arc::clone(&counters),
    };
    let from_daemon = shm::Consumer::new(ring(0), layout).unwrap();
    let to_daemon = shm::Producer::new(ring(1), layout).unwrap();
    (
        setup,
        Process {
            from_daemon,
            to_daemon,
            counters,
            segment: Arc::clone(&segment),
            bell,
            _drain: drain,
        },
    )
}

impl Process {
    fn received(&mut self) -> Vec<(Vec<u8>, Meta)> {
        std::iter::from_fn(|| {
            let taken = self.from_daemon.next()?;
            let mut bytes = vec![0; taken.length()];
            self.from_daemon.copy(&taken, &mut bytes);
            let meta = taken.meta();
            self.from_daemon.release(taken);
            Some((bytes, meta))
        })
        .collect()
    }

    fn send(&mut self, bytes: &[u8]) {
        self.to_daemon.push(bytes, Meta { port: 77, flags: 99 }).unwrap();
    }

    fn flood(&mut self, bytes: &[u8]) {
        while self.to_daemon.push(bytes, Meta::default()).is_ok() {}
    }
}

fn id(place: u16, number: u32) -> StackId {
    StackId::new(place, number).unwrap()
}

/// A stack's packets leave by port 0, are refused when they begin with 2, go back when they begin with 3, and to the second stack
/// when they begin with 5.
fn graph() -> Graph {
    GraphBuilder::default()
        .each("stack-input", &["end", "end"], |slot, cx| {
            let from = cx.vector.stack[usize::from(slot)].unwrap();
            assert_eq!(cx.vector.interface[usize::from(slot)], InterfaceId::NONE);
            match cx.vector.network(slot).first() {
                Some(2) => cx.refuse_of(slot, from, Reason::StackPort),
                Some(3) => cx.deliver(slot, from, 0),
                Some(5) => cx.deliver(slot, id(1, 1), 0),
                _ => cx.send(slot, Out::First),
            }
        })
        .each("end", &[], |slot, cx| cx.transmit(slot, PortId::new(0)))
        .build()
        .unwrap()
}

#[test]
fn packets_go_over_from_their_network_header_on_and_are_freed() {
    let pool = own_pool("stack-deliver", 63);
    let chained = BufferPool::new("stack-chained", 63, 2048, 0, None).unwrap();
    let mut outside = Outside::new(1, 0, 64);
    let (mut stacks, pace) = (Stacks::default(), ClientPace::default());
    let (setup, mut process) = self::process(16, pool, &pace);
    assert!(stacks.is_empty() && stacks.add(id(5, 1), setup).is_none() && !stacks.is_empty());
    for n in 0..3 {
        let bytes = [&[0xee; 14][..], &[n; 40]].concat();
        outside.exits.deliver(id(5, 1), packet(&chained, &bytes), 14, 16 * n);
    }
    outside.exits.deliver_long(id(5, 1), vec![9; 5000], 0);
    assert_eq!(process.received(), [], "when the vector is done");
    stacks.deliver(&mut outside.exits, 0);
    let got = process.received();
    for (n, (bytes, meta)) in (0..3).zip(&got) {
        assert_eq!((&bytes[..], *meta), (&[n; 40][..], Meta { port: 0, flags: 16 * n }));
    }
    assert_eq!(got[3].0, vec![9; 5000]);
    let queues = &process.counters.queues;
    assert_eq!((queues.delivered.get(), queues.delivered_bytes.get()), (4, 3 * 40 + 5000));
    // A name that is out of date, and one that never was.
    for gone in [id(5, 2), id(4, 1), id(900, 1)] {
        outside.exits.deliver(gone, packet(&chained, &[1; 60]), 14, 0);
        outside.exits.deliver_long(gone, vec![1; 60], 0);
        assert!(stacks.remove(gone).is_none());
    }
    stacks.deliver(&mut outside.exits, 0);
    assert_eq!((process.received(), outside.drops(Reason::StackGone)), (vec![], 6));
    assert!(stacks.remove(id(5, 1)).is_some() && stacks.is_empty());
    outside.exits.deliver(id(5, 1), packet(&chained, &[1; 60]), 14, 0);
    stacks.deliver(&mut outside.exits, 0);
    assert_eq!(outside.drops(Reason::StackGone), 7);
    assert_eq!((chained.available(), pool.available()), (63, 63));
}

#[test]
fn what_stacks_send_enters_behind_a_link_header_and_is_counted_by_its_fate() {
    let pool = own_pool("stack-send", 63);
    let (mut outside, mut graph, mut vector) = (Outside::new(1, 0, 64), graph(), Vector::new());
    let (mut stacks, pace) = (Stacks::default(), ClientPace::default());
    let (setup, mut process) = self::process(16, pool, &pace);
    stacks.add(id(0, 7), setup);
    let packets = [[0x45; 40], [0x60; 40], [2; 40], [3; 40]];
    packets.iter().for_each(|bytes| process.send(bytes));
    process.send(&[4; 3000]);
    assert_eq!(stacks.send(&mut graph, &mut vector, &mut outside.exits, 0), 5);
    let counters = Arc::clone(&outside.counters);
    outside.exits.output.flush(&counters);
    let frames: Vec<_> =
        std::iter::from_fn(|| outside.ports[0].pop().ok()).map(|one| one.data().to_vec()).collect();
    assert_eq!(frames[0], [&[0; 12][..], &[8, 0], &[0x45; 40]].concat());
    assert_eq!(frames[1], [&[0; 12][..], &[0x86, 0xdd], &[0x60; 40]].concat());
    assert_eq!(process.received(), [(vec![3; 40], Meta::default())], "nothing of its own flags");
    let queues = &process.counters.queues;
    assert_eq!((queues.sent.get(), queues.sent_bytes.get()), (3, 120));
    assert_eq!((queues.refused.get(), queues.no_buffer.get()), (1, 1), "too long for a buffer");
    let refused: Vec<_> = process.counters.refused().filter(|(_, count)| *count > 0).collect();
    assert_eq!(refused, [(Reason::StackPort, 1)]);
    assert_eq!(outside.drops(Reason::StackPort), 1);
    assert!(process.to_daemon.is_drained());
    assert_eq!(pool.available(), 63);
}

#[test]
fn long_packets_of_stacks_enter_whole_where_a_pool_is_lent_for_them() {
    let pool = own_pool("stack-short", 63);
    let long = BufferPool::new("stack-long", 3, u16::MAX - dpdk::HEADROOM, 0, None).unwrap();
    let (mut outside, mut graph, mut vector) = (Outside::new(1, 0, 64), graph(), Vector::new());
    let (mut stacks, pace) = (Stacks::default(), ClientPace::default());
    let (setup, mut process) = self::process(128, pool, &pace);
    stacks.add(id(0, 7), setup);
    stacks.lend_long(long);
    // Behind the link header as far as a buffer holds both.
    for length in [2034, 2035, 60_000, 65_521, 65_522, 65_535] {
        let bytes: Vec<u8> =
            (0..length).map(|at: u32| if at == 0 { 0x45 } else { at as u8 }).collect();
        process.send(&bytes);
        while stacks.send(&mut graph, &mut vector, &mut outside.exits, 0) > 0 {}
        outside.exits.output.flush(&outside.counters);
        let one = outside.ports[0].pop().ok().unwrap();
        let ahead = if length > 65_521 { 0 } else { 14 };
        let frame = one.data();
        assert_eq!(frame.len(), ahead + bytes.len());
        assert!(frame[ahead..] == bytes, "{length}");
        if ahead > 0 {
            assert_eq!(frame[..ahead], [&[0; 12][..], &[8, 0]].concat());
        }
    }
    let queues = &process.counters.queues;
    assert_eq!((queues.sent.get(), queues.no_buffer.get()), (6, 0));
    assert!(process.to_daemon.is_drained());
    assert_eq!((pool.available(), long.available()), (63, 3));
}

#[test]
fn a_flood_of_some_leaves_others_their_turn() {
    let pool = own_pool("stack-flood", 511);
    let (mut outside, mut graph, mut vector) = (Outside::new(1, 0, 512), graph(), Vector::new());
    let (mut stacks, pace) = (Stacks::default(), ClientPace::default());
    let mut processes: Vec<_> = (0..40)
        .map(|place| {
            let (setup, process) = self::process(64, pool, &pace);
            stacks.add(id(place, 1), setup);
            process
        })
        .collect();
    let mut round = |stacks: &mut Stacks, outside: &mut Outside| {
        stacks.send(&mut graph, &mut vector, &mut outside.exits, 0);
        outside.exits.output.flush(&outside.counters);
        outside.sent(0);
    };
    for _ in 0..400 {
        processes.iter_mut().for_each(|process| process.flood(&[4; 60]));
        round(&mut stacks, &mut outside);
    }
    // 32 slots a round, and everybody's turn comes.
    let sent = |process: &Process| process.counters.queues.sent.get();
    assert_eq!(processes.iter().map(sent).collect::<Vec<_>>(), [320; 40]);
    // What was delivered may be answered besides.
    for _ in 0..20 {
        outside.exits.deliver(id(3, 1), packet(&pool, &[1; 60]), 0, 0);
    }
    stacks.deliver(&mut outside.exits, 0);
    for _ in 0..3 {
        round(&mut stacks, &mut outside);
    }
    let all: u64 = processes.iter().map(sent).sum();
    assert_eq!(all, 40 * 320 + 3 * 32 + 20);
}

#[test]
fn none_is_overlooked_before_sleep_and_bells_are_rung_at_a_pace() {
    let pool = own_pool("stack-turns", 63);
    let (mut outside, mut graph, mut vector) = (Outside::new(1, 0, 64), graph(), Vector::new());
    let (mut stacks, pace) = (Stacks::default(), ClientPace::default());
    let mut processes: Vec<_> = (0..20)
        .map(|place| {
            let (setup, process) = self::process(16, pool, &pace);
            stacks.add(id(place, 1), setup);
            process
        })
        .collect();
    processes[19].send(&[2; 60]);
    let mut send =
        |stacks: &mut Stacks, now| stacks.send(&mut graph, &mut vector, &mut outside.exits, now);
    assert_eq!([send(&mut stacks, 0), send(&mut stacks, 0)], [0, 1], "16 in a round");
    for process in &mut processes {
        process.send(&[2; 60]);
    }
    stacks.arm();
    assert_eq!(send(&mut stacks, 0), 20, "all of them");
    stacks.disarm();
    // Two stacks of one user sleep: the second one is rung when the worker sleeps, at the latest.
    let sleeps = |at: usize| processes[at].from_daemon.sleeps();
    [0, 1].into_iter().for_each(|at| {
        sleeps(at).announce();
        outside.exits.deliver(id(at as u16, 1), packet(&pool, &[1; 60]), 0, 0);
    });
    let later = dpdk::tsc_hz();
    stacks.deliver(&mut outside.exits, later);
    assert_eq!([0, 1].map(|at| sleeps(at).claim_wake()), [false, true], "who rings takes the word");
    sleeps(1).announce();
    stacks.arm();
    assert!(!sleeps(1).claim_wake());
}

#[test]
fn garbage_all_over_the_rings_is_counted_and_harms_nobody() {
    let pool = own_pool("stack-garbage", 63);
    let (mut outside, mut graph, mut vector) = (Outside::new(1, 0, 64), graph(), Vector::new());
    let (mut stacks, pace) = (Stacks::default(), ClientPace::default());
    let (setup, mut process) = self::process(16, pool, &pace);
    stacks.add(id(0, 1), setup);
    let layout = layout(16);
    let mut random = 1u32;
    for turn in 0..2000_usize {
        let region = process.segment.region(turn % 2 * layout.bytes(), layout.bytes()).unwrap();
        let mut wild = shm::Producer::new(region, layout).unwrap();
        for _ in 0..turn % 7 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let meta = Meta { port: (random >> 8) as u8, flags: (random >> 16) as u8 & 127 };
            let _ = wild.push(&vec![random as u8; 1 + random as usize % 2048], meta);
        }
        outside.exits.deliver(id(0, 1), packet(&pool, &[1; 60]), 14, 0);
        stacks.deliver(&mut outside.exits, turn as u64);
        stacks.send(&mut graph, &mut vector, &mut outside.exits, turn as u64);
        let counters = Arc::clone(&outside.counters);
        outside.exits.output.flush(&counters);
        while outside.ports[0].pop().is_ok() {}
        process.received();
    }
    let queues = &process.counters.queues;
    assert!(queues.delivered.get() + queues.full.get() >= 2000 && queues.sent.get() > 0);
    assert_eq!(pool.available(), 63);
}

#[test]
fn a_trace_follows_a_packet_into_a_stack() {
    let pool = own_pool("stack-trace", 63);
    let (mut outside, mut graph, mut vector) = (Outside::new(1, 0, 64), graph(), Vector::new());
    let (mut stacks, pace) = (Stacks::default(), ClientPace::default());
    let (setup, mut process) = self::process(16, pool, &pace);
    stacks.add(id(2, 3), setup);
    let options = TraceOptions { filter: Filter::default(), packets: 2, ring: 64 };
    let (tracer, mut steps) = trace(options);
    graph.set_tracer(Some(tracer));
    process.send(&[3; 60]);
    process.send(&[2; 60]);
    stacks.send(&mut graph, &mut vector, &mut outside.exits, 0);
    let fates: Vec<_> = std::iter::from_fn(|| steps.pop().ok()).map(|step| step.fate).collect();
    assert_eq!(fates, [Fate::Delivered(id(2, 3)), Fate::Dropped(Reason::StackPort)]);
    assert_eq!((id(2, 3).number(), id(2, 3).to_string()), (3, "3".to_owned()));
    assert_eq!(StackId::from_bits(id(2, 3).bits()), Some(id(2, 3)));
    assert_eq!(StackId::from_bits(2), None);
}

#[test]
fn a_sleeping_worker_hears_a_stack_and_a_stack_hears_it() {
    let pool = own_pool("stack-sleep", 63);
    let setup = WorkerSetup {
        index: 0,
        core: None,
        entry: "stack-input",
        doorbell: Arc::new(Doorbell::new().unwrap()),
        burst: 64,
        poll: PollMode::Adaptive,
    };
    let make = || Ok((graph(), Outside::new(1, 0, 64).exits, ()));
    let (worker, ()) = WorkerHandle::spawn(setup, make).unwrap();
    let patience = Duration::from_secs(20);
    let (setup, mut process) = self::process(16, pool, &ClientPace::default());
    let name = id(1, 1);
    assert!(worker.call(patience, move |state| state.add_stack(name, setup).is_none()).unwrap());
    let wait = |what: &str, done: &mut dyn FnMut() -> bool| {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < patience, "{what}");
            std::thread::yield_now();
        }
    };
    let (mut rounds, mut rung, begin) = (0, 0, Instant::now());
    while rounds < 20 || rung == 0 {
        assert!(rung > 0 || begin.elapsed() < patience, "it sleeps, and says so");
        rounds += 1;
        // Long enough to fall asleep, mostly; a lost wake-up would cost 200 us each.
        std::thread::sleep(Duration::from_millis(1));
        process.send(&[3; 60]);
        if process.to_daemon.consumer_sleeps().claim_wake() {
            rung += 1;
            rustix::net::send(&process.bell, &[1], rustix::net::SendFlags::DONTWAIT).unwrap();
        }
        let mut back = Vec::new();
        wait("the packet's return", &mut || {
            back = process.received();
            !back.is_empty()
        });
        assert_eq!(back[0].0, [3; 60]);
    }
    let gone = worker.call(patience, move |state| state.remove_stack(name)).unwrap();
    assert!(gone.is_some());
    drop(gone);
    worker.stop(patience).unwrap();
    assert_eq!(pool.available(), 63);
}
