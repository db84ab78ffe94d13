use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard};

use dpdk::Cause;

use super::*;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);

/// The other end of a device that is not one.
#[derive(Default)]
struct Wire {
    down: AtomicBool,
    /// Looks that were begun, and those that the driver has let through.
    begun: AtomicU64,
    passed: AtomicU64,
    /// Held: its driver hangs.
    hangs: Mutex<()>,
    closed: AtomicBool,
    said: Mutex<Vec<&'static str>>,
}

struct Fake(Arc<Wire>);

impl Fake {
    fn say(&self, word: &'static str) {
        self.0.said.lock().unwrap().push(word);
    }
}

impl Driven for Fake {
    fn look(&self) -> Health {
        self.0.begun.fetch_add(1, Ordering::SeqCst);
        let passes = self.0.hangs.lock().unwrap();
        self.0.passed.fetch_add(1, Ordering::SeqCst);
        drop(passes);
        let down = self.0.down.load(Ordering::SeqCst);
        if down { Health::Down(Cause::NoCarrier) } else { Health::Up }
    }

    fn speed(&self) -> Option<u32> {
        Some(1000)
    }

    fn counted(&self) -> Option<PortStats> {
        let rx_missed = self.0.begun.load(Ordering::SeqCst);
        Some(PortStats { rx_missed, ..PortStats::default() })
    }

    fn shut(self) {
        self.0.closed.store(true, Ordering::SeqCst);
    }
}

fn open() -> (OpenDevice<Fake>, Arc<Wire>, Arc<Notify>) {
    let (wire, changed) = (Arc::<Wire>::default(), Arc::<Notify>::default());
    let device = OpenDevice::start("fake", Fake(Arc::clone(&wire)), Arc::clone(&changed));
    (device.unwrap(), wire, changed)
}

fn until(what: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !what() {
        assert!(Instant::now() < end, "still waiting");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Lets the driver hang, and waits until it does.
fn hang(wire: &Wire) -> MutexGuard<'_, ()> {
    let held = wire.hangs.lock().unwrap();
    // None passes any more, so one that was begun and has not passed waits.
    until(|| wire.begun.load(Ordering::SeqCst) > wire.passed.load(Ordering::SeqCst));
    held
}

#[tokio::test]
async fn a_link_that_changes_is_told() {
    let (device, wire, changed) = open();
    assert_eq!((device.seen().health, device.seen().speed), (Health::Up, Some(1000)));
    for (down, health) in [(true, Health::Down(Cause::NoCarrier)), (false, Health::Up)] {
        wire.down.store(down, Ordering::SeqCst);
        timeout(PATIENCE, changed.notified()).await.unwrap();
        assert_eq!(device.seen().health, health);
    }
}

#[test]
fn what_was_seen_last_is_there_while_the_driver_hangs() {
    let (device, wire, _changed) = open();
    let held = hang(&wire);
    wire.down.store(true, Ordering::SeqCst);
    let looks = device.looks();
    thread::sleep(PERIOD * 2);
    assert_eq!((device.looks(), device.seen().health), (looks, Health::Up));
    drop(held);
    until(|| device.looks() > looks && device.seen().health != Health::Up);
}

#[test]
fn jobs_without_end_do_not_keep_it_from_looking() {
    /// A job that leaves the next one before it is done.
    fn one(jobs: DeviceJobs<Fake>) -> Job<Fake> {
        Job::Act(Box::new(move |_| {
            let next = one(jobs.clone());
            // The device is closed otherwise.
            let _ = jobs.0.send(next);
        }))
    }
    let (device, _wire, _changed) = open();
    let jobs = device.jobs();
    let first = one(jobs.clone());
    assert!(jobs.0.send(first).is_ok());
    let looks = device.looks();
    until(|| device.looks() > looks + 2);
}

#[tokio::test]
async fn counters_are_read_when_that_is_asked_for() {
    let (device, wire, _changed) = open();
    let begun = wire.begun.load(Ordering::SeqCst);
    device.jobs().count().await.unwrap();
    assert!(device.seen().stats.rx_missed > begun);
}

#[tokio::test]
async fn what_comes_too_late_is_undone_and_what_waits_behind_it_is_never_done() {
    let (device, wire, _changed) = open();
    let jobs = device.jobs();
    let said = jobs.act_within(PATIENCE, |fake| fake.say("in time"), |fake, ()| fake.say("never"));
    assert_eq!(said.await, Ok(()));
    let (begins, begun) = oneshot::channel();
    let (release, released) = channel::<()>();
    let late = move |fake: &mut Fake| {
        let _ = begins.send(());
        let _ = released.recv();
        fake.say("late");
    };
    let undo = |fake: &mut Fake, ()| fake.say("undone");
    let asking = jobs.clone();
    let asking = tokio::spawn(async move { asking.act_within(PATIENCE, late, undo).await });
    begun.await.unwrap();
    // As at a deadline, nobody waits for it any more.
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    let behind = jobs.act_within(SHORT, |fake| fake.say("behind"), |_, ()| ());
    assert_eq!(behind.await, Err(Unanswered::Late(0)));
    release.send(()).unwrap();
    assert_eq!(jobs.act_within(PATIENCE, |fake| fake.say("after"), |_, ()| ()).await, Ok(()));
    assert_eq!(*wire.said.lock().unwrap(), ["in time", "late", "undone", "after"]);
}

#[test]
fn closing_waits_for_a_driver_that_hangs_but_not_for_ever() {
    let (mut device, wire, _changed) = open();
    let held = hang(&wire);
    device.begin_closing_within(SHORT);
    assert!(!device.closes());
    assert!(!wire.closed.load(Ordering::SeqCst));
    device.deadline = None;
    drop(held);
    drop(device);
    assert!(wire.closed.load(Ordering::SeqCst));
}

#[test]
fn drivers_that_hang_are_waited_for_at_the_same_time() {
    const DEADLINE: Duration = Duration::from_millis(500);
    const DEVICES: u32 = 30;
    let all = (0..DEVICES).map(|_| open());
    let (mut devices, wires): (Vec<_>, Vec<_>) =
        all.map(|(device, wire, _)| (device, wire)).unzip();
    let held: Vec<_> = wires.iter().map(|wire| hang(wire)).collect();
    devices.iter_mut().for_each(|device| device.begin_closing_within(DEADLINE));
    let begin = Instant::now();
    drop(devices);
    let (took, alone) = (begin.elapsed(), DEADLINE * DEVICES);
    assert!(took < alone / 2, "{took:?}, one after the other {alone:?}");
    drop(held);
}

#[tokio::test]
async fn what_is_asked_of_a_closed_device_is_refused() {
    let (device, wire, _changed) = open();
    let jobs = device.jobs();
    drop(device);
    assert!(wire.closed.load(Ordering::SeqCst));
    assert_eq!(jobs.ask(|_| ()).await, Err(Unanswered::Ended));
}
