use std::sync::Arc;
use std::time::{Duration, Instant};

use dpdk::{Device, Port, PortConfig};

use crate::testbed::{Out, WithScript, packet, pool};
use crate::{
    CaptureOptions, Counters, Direction, Doorbell, Entry, Exits, Filter, GraphBuilder,
    HandoffReceiver, HandoffSender, Inbound, NodeId, Output, PollMode, PortId, Punt, Reason,
    RxAssignment, Spread, Taps, TransmitPath, WorkerError, WorkerHandle, WorkerSetup, WorkerState,
    capture, ring,
};

const PATIENCE: Duration = Duration::from_secs(20);
const PORTS: usize = 64;

/// A worker whose entry sends to node `out`, which transmits what came by port 0's ring, punts
/// packets of one byte and drops the others.
fn worker(
    index: usize,
    poll: PollMode,
) -> (WorkerHandle, HandoffSender<Entry>, HandoffReceiver<Punt>) {
    pool();
    let control = Arc::new(Doorbell::new().unwrap());
    let doorbell = Arc::new(Doorbell::new().unwrap());
    let (inject, inbound) = ring(256, Arc::clone(&doorbell));
    let make = move || {
        let graph = GraphBuilder::default()
            .each("in", &["out", "out"], |slot, cx| cx.send(slot, Out::First))
            .each("out", &[], |slot, cx| match cx.vector.buffer(slot).map(|buffer| buffer.len()) {
                Some(1) => cx.punt(slot, 1),
                Some(2) => cx.transmit(slot, PortId::new(0)),
                _ => cx.drop(slot, Reason::Blackhole),
            })
            .build()?;
        let (to_control, from_worker) = ring(256, control);
        let counters = Arc::new(Counters::new(2, PORTS));
        Ok((graph, Exits::new(Output::new(PORTS, 1000), counters, to_control), from_worker))
    };
    let setup = WorkerSetup { index, core: None, entry: "in", doorbell, burst: 64, poll };
    let (handle, from_worker) = WorkerHandle::spawn(setup, make).unwrap();
    handle.call(PATIENCE, |state| state.add_inbound(Inbound::Enter(inbound))).unwrap();
    (handle, inject, from_worker)
}

fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::yield_now();
    }
}

#[test]
fn polls_a_port_until_it_is_taken_away_and_gives_all_back() {
    let (handle, _inject, _punts) = worker(0, PollMode::Busy);
    let device: Device = "null".parse().unwrap();
    let mut opened = Port::open(&device, &PortConfig::new(pool())).unwrap();
    let port = opened.port.id();
    let (rx, tx) = (opened.rx.remove(0), opened.tx.remove(0));
    handle
        .call(PATIENCE, move |state| {
            assert!(state.set_path(PortId::new(port), Some(TransmitPath::Queue(tx))).is_none());
            state.add_receive(RxAssignment::new(PortId::new(port), rx));
        })
        .unwrap();
    let counters = Arc::clone(handle.counters());
    let received = || counters.ports[usize::from(port)].rx_packets.get();
    wait("receiving", || received() > 1000);
    let taken = handle
        .call(PATIENCE, move |state| state.remove_receive(PortId::new(port), 0))
        .unwrap()
        .unwrap();
    assert_eq!((taken.port, taken.queue.index()), (PortId::new(port), 0));
    let none =
        handle.call(PATIENCE, move |state| state.remove_receive(PortId::new(port), 0)).unwrap();
    assert!(none.is_none());
    let before = received();
    handle.call(PATIENCE, move |state| state.add_receive(taken)).unwrap();
    wait("receiving again", || received() > before);
    let stopped = handle.stop(PATIENCE).unwrap();
    assert_eq!((stopped.receive.len(), stopped.transmit.len()), (1, 1));
    assert_eq!(counters.packets.get(), counters.drops[Reason::Blackhole as usize].get());
    assert!(counters.ports[usize::from(port)].rx_bytes.get() >= 60 * received());
    drop(stopped);
    opened.port.close().unwrap();
}

#[test]
fn injected_packets_wake_a_sleeper_and_punts_come_back() {
    let (handle, mut inject, mut punts) = worker(1, PollMode::Adaptive);
    for n in 0..50 {
        // Long enough to fall asleep, mostly; a lost wake-up would cost a second each.
        std::thread::sleep(Duration::from_millis(1));
        inject.push(Entry::of(packet(&pool(), &[n]), NodeId(0))).unwrap();
        inject.notify();
        let mut back = None;
        wait("the punt", || {
            back = punts.pop().ok();
            back.is_some()
        });
        assert_eq!(back.unwrap().packet.buffer.data(), [n]);
    }
    handle.stop(PATIENCE).unwrap();
}

#[test]
fn a_sleeper_reads_tables_again_before_it_runs_a_command() {
    let (handle, _inject, _punts) = worker(1, PollMode::Adaptive);
    let epoch = tables::Epoch::new();
    let reader = epoch.register().unwrap();
    let is_waited_for = || {
        let epoch = epoch.clone();
        handle.call(PATIENCE, move |_| epoch.retire() > epoch.passed()).unwrap()
    };
    let counters = handle.call(PATIENCE, |state| {
        state.set_reader(reader);
        Arc::clone(&state.exits.counters)
    });
    let counters = counters.unwrap();
    assert!(is_waited_for());
    for _ in 0..3 {
        let before = counters.sleeps.get();
        wait("sleep", || counters.sleeps.get() > before);
        assert!(is_waited_for());
    }
    handle.stop(PATIENCE).unwrap();
}

#[test]
fn transmits_for_a_worker_without_a_queue() {
    let (borrower, mut inject, _punts) = worker(2, PollMode::Adaptive);
    let (owner, _inject, _punts) = worker(3, PollMode::Adaptive);
    let (first, mut last) = ring(64, Arc::new(Doorbell::new().unwrap()));
    let (lend, borrowed) = ring(64, Arc::clone(owner.doorbell()));
    owner
        .call(PATIENCE, move |state| {
            state.set_path(PortId::new(0), Some(TransmitPath::Worker(first)));
            state.add_inbound(Inbound::Transmit(PortId::new(0), borrowed));
        })
        .unwrap();
    let set = move |state: &mut WorkerState| {
        state.set_path(PortId::new(0), Some(TransmitPath::Worker(lend)));
    };
    borrower.call(PATIENCE, set).unwrap();
    inject.push(Entry::of(packet(&pool(), &[8, 8]), NodeId(0))).unwrap();
    inject.notify();
    let mut sent = None;
    wait("transmission", || {
        sent = last.pop().ok();
        sent.is_some()
    });
    assert_eq!(sent.unwrap().data(), [8, 8]);
    borrower.stop(PATIENCE).unwrap();
    owner.stop(PATIENCE).unwrap();
}

#[test]
fn a_ring_that_is_over_is_given_back() {
    let (handle, inject, _punts) = worker(9, PollMode::Adaptive);
    let (other, inbound) = ring::<Entry>(8, Arc::clone(handle.doorbell()));
    let spent = || handle.call(PATIENCE, WorkerState::take_spent).unwrap().len();
    handle.call(PATIENCE, |state| state.add_inbound(Inbound::Enter(inbound))).unwrap();
    assert_eq!(spent() + spent(), 0);
    let mut all = 0;
    for (sender, so_far) in [(inject, 1), (other, 2)] {
        drop(sender);
        // Seen after the next command.
        wait("the ring", || {
            all += spent();
            all == so_far
        });
        assert_eq!(spent() + spent(), 0, "once");
    }
    handle.stop(PATIENCE).unwrap();
}

#[test]
fn stopping_loses_nothing_that_was_handed_in() {
    let (handle, mut inject, mut punts) = worker(4, PollMode::Adaptive);
    for n in 0..200 {
        inject.push(Entry::of(packet(&pool(), &[n]), NodeId(0))).unwrap();
    }
    handle.stop(PATIENCE).unwrap();
    assert_eq!(std::iter::from_fn(|| punts.pop().ok()).count(), 200);
}

/// Keeps what it sees the packets to have come by.
struct Seen(std::sync::mpsc::Sender<(crate::PortId, crate::PortId)>);

impl crate::Function for Seen {
    fn receive(
        &mut self,
        port: crate::PortId,
        packets: &mut [Option<dpdk::Buffer>],
        _: &mut Exits,
        _: u64,
    ) {
        for packet in packets.iter().flatten() {
            // Whoever asked may have heard enough.
            let _ = self.0.send((port, PortId::of(packet)));
        }
    }
}

#[test]
fn packets_say_which_of_the_ports_with_a_number_they_have_come_by() {
    let (handle, _inject, _punts) = worker(7, PollMode::Busy);
    let mut opened = Port::open(&"null".parse().unwrap(), &PortConfig::new(pool())).unwrap();
    let (number, rx) = (opened.port.id(), opened.rx.remove(0));
    let id = PortId::with_generation(number, 3);
    let (send, seen) = std::sync::mpsc::channel();
    handle
        .call(PATIENCE, move |state| {
            state.add_function(1, Box::new(Seen(send)));
            state.add_receive(RxAssignment::new(id, rx));
        })
        .unwrap();
    assert_eq!(seen.recv_timeout(PATIENCE).unwrap(), (id, id));
    let none = handle.call(PATIENCE, move |state| state.remove_receive(PortId::new(number), 0));
    assert!(none.unwrap().is_none(), "another has the number");
    drop(handle.stop(PATIENCE).unwrap());
    drop(opened.tx);
    opened.port.close().unwrap();
}

#[test]
fn two_workers_share_a_queue_and_one_captures() {
    let (poller, _inject, _punts) = worker(5, PollMode::Busy);
    let (other, _inject, _punts) = worker(6, PollMode::Adaptive);
    let (to_other, inbound) = ring(256, Arc::clone(other.doorbell()));
    other.call(PATIENCE, move |state| state.add_inbound(Inbound::Received(inbound))).unwrap();
    let mut opened = Port::open(&"null".parse().unwrap(), &PortConfig::new(pool())).unwrap();
    let port = opened.port.id();
    let mut rx = RxAssignment::new(PortId::new(port), opened.rx.remove(0));
    // The poller is not among the workers that share the queue: all packets go to the other one.
    rx.spread = Some(Spread::new(vec![Some(to_other)]));
    let taps = Taps { receive: true, transmit: false, drop: false };
    let options = CaptureOptions { filter: Filter::default(), taps, snap: 14, ring: 16 };
    let (tap, mut frames) = capture(options);
    poller
        .call(PATIENCE, move |state| {
            state.set_tap(Some(tap));
            state.add_receive(rx);
        })
        .unwrap();
    let done = other.counters();
    wait("handing over", || done.drops[Reason::Blackhole as usize].get() > 100);
    wait("losing frames", || frames.lost() > 0);
    let stopped = poller.stop(PATIENCE).unwrap();
    let frame = frames.pop().unwrap();
    assert_eq!((frame.port, frame.direction), (PortId::new(port), Direction::Receive));
    assert_eq!((frame.length, frame.data.len()), (64, 14));
    drop(stopped);
    other.stop(PATIENCE).unwrap();
}

/// A worker with a node `in` that does nothing, made where `seen` is called.
fn idle(
    core: Option<usize>,
    entry: &'static str,
    seen: impl FnOnce() + Send + 'static,
) -> Result<WorkerHandle, WorkerError> {
    pool();
    let doorbell = Arc::new(Doorbell::new().unwrap());
    let (punts, _) = ring(1, Arc::clone(&doorbell));
    let poll = PollMode::Adaptive;
    let setup = WorkerSetup { index: 8, core, entry, doorbell, burst: 64, poll };
    let make = move || {
        seen();
        let exits = Exits::new(Output::new(0, 0), Arc::new(Counters::new(1, 0)), punts);
        Ok((GraphBuilder::default().each("in", &[], |_, _| {}).build()?, exits, ()))
    };
    WorkerHandle::spawn(setup, make).map(|(handle, ())| handle)
}

#[test]
fn what_cannot_start_says_why() {
    let error = idle(None, "out", || {}).map(|_| ()).unwrap_err();
    assert!(matches!(error, WorkerError::NoEntry("out")));
}

#[test]
fn a_core_that_does_not_exist_is_named() {
    for core in [1023, 100_000] {
        let error = idle(Some(core), "in", || {}).map(|_| ()).unwrap_err();
        assert!(matches!(error, WorkerError::Core { core: named, .. } if named == core), "{error}");
    }
}

#[test]
fn a_worker_makes_its_own_state_on_its_own_core() {
    use rustix::thread::sched_getaffinity;
    let allowed = sched_getaffinity(None).unwrap();
    let core = (0..1024).rfind(|core| allowed.is_set(*core)).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let seen = move || {
        let affinity = sched_getaffinity(None).unwrap();
        let name = std::thread::current().name().map(str::to_owned);
        tell.send((name, affinity.count(), affinity.is_set(core), dpdk::lcore_id())).unwrap();
    };
    let worker = idle(Some(core), "in", seen).unwrap();
    let (name, cores, own, lcore) = told.try_recv().unwrap();
    assert_eq!((name.as_deref(), cores, own), (Some("millrace-w8"), 1, true));
    assert!(lcore.is_some(), "and it has a cache of buffers there");
    worker.stop(PATIENCE).unwrap();
}

/// Takes every second packet that it sees, and sends it to port 0 as its own.
struct Second {
    seen: u64,
    taken: Vec<dpdk::Buffer>,
    count: Arc<std::sync::atomic::AtomicU64>,
}

impl crate::Function for Second {
    fn receive(
        &mut self,
        _: crate::PortId,
        packets: &mut [Option<dpdk::Buffer>],
        _: &mut Exits,
        _: u64,
    ) {
        for place in packets {
            self.seen += 1;
            if self.seen % 2 == 0 {
                self.taken.extend(place.take());
                self.count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        }
    }

    fn send(&mut self, outgoing: &mut crate::Outgoing, _: u64) -> usize {
        let count = self.taken.len();
        self.taken.drain(..).for_each(|buffer| outgoing.transmit(buffer, PortId::new(0)));
        count
    }
}

#[test]
fn functions_come_and_go_while_packets_flow_and_none_is_lost() {
    let (handle, _inject, _punts) = worker(0, PollMode::Busy);
    let device: Device = "null".parse().unwrap();
    let mut opened = Port::open(&device, &PortConfig::new(pool())).unwrap();
    let (port, rx) = (opened.port.id(), opened.rx.remove(0));
    handle
        .call(PATIENCE, move |state| state.add_receive(RxAssignment::new(PortId::new(port), rx)))
        .unwrap();
    let counters = Arc::clone(handle.counters());
    let received = || counters.ports[usize::from(port)].rx_packets.get();
    let count = Arc::new(std::sync::atomic::AtomicU64::new(0));
    for number in 0..20 {
        let second = Second { seen: 0, taken: Vec::new(), count: Arc::clone(&count) };
        handle.call(PATIENCE, move |state| state.add_function(number, Box::new(second))).unwrap();
        let before = received();
        wait("receiving", || received() > before + 1000);
        let gone = handle.call(PATIENCE, move |state| state.remove_function(number).is_some());
        assert!(gone.unwrap());
    }
    let stopped = handle.stop(PATIENCE).unwrap();
    let taken = count.load(std::sync::atomic::Ordering::Relaxed);
    // Port 0 has no way out, so what the functions sent is counted there.
    assert_eq!(counters.drops[Reason::PortDown as usize].get(), taken);
    assert_eq!(counters.drops[Reason::Blackhole as usize].get() + taken, received());
    assert!(taken > 5000);
    drop((stopped, opened.tx));
    opened.port.close().unwrap();
}
