//! One turn: the worker forwards, and a client does what it does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dpdk::{BufferPool, RxQueue};
use graph::ClientCounters;
use rustix::time::{ClockId, clock_gettime};

use super::conduct::Conduct;
use super::given::{Given, PATIENCE};
use super::{SAMPLE, deeds};
use crate::client_ends::User;
use crate::failure::Failure;
use crate::machine;
use crate::results::Samples;
use crate::worker::{Bed, Running};

/// What passes before the first sample: memory of the client's is touched for the first time then.
const WARM: Duration = Duration::from_millis(50);
/// How long what waits may take to be sent, in milliseconds, before it counts as lost.
const SETTLE: u32 = 100;
/// Longest time without a packet in a sample: nothing is forwarded any more. A worker may stand still for seconds.
const LONGEST: Duration = Duration::from_secs(10);

/// What was counted for the client.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counted(pub(super) [u64; 7]);

impl Counted {
    pub(super) const NAMES: [&'static str; 7] =
        ["delivered", "full", "skipped", "sent", "refused", "no buffer", "malformed"];

    fn of<'a>(counters: impl Iterator<Item = &'a ClientCounters>) -> Self {
        let mut sum = [0; 7];
        for one in counters {
            let ClientCounters {
                delivered,
                full,
                skipped,
                sent,
                refused,
                no_buffer,
                malformed,
                ..
            } = one;
            let counted = [delivered, full, skipped, sent, refused, no_buffer, malformed];
            sum.iter_mut().zip(counted).for_each(|(sum, one)| *sum += one.get());
        }
        Self(sum)
    }
}

/// What a turn has given.
pub(super) struct Turn {
    /// Time of the worker for each packet that was forwarded, in TSC cycles; infinite if none was.
    pub(super) cycles: f64,
    /// The same in the sample in which it was least.
    pub(super) least: f64,
    /// Time from one look at the receive queue to the next: us.
    pub(super) round: f64,
    /// What the client did: times.
    pub(super) done: u64,
    pub(super) counted: Counted,
    received: u64,
    forwarded: u64,
}

impl Turn {
    /// Packets that were received and not forwarded.
    pub(super) fn lost(&self) -> u64 {
        self.received.saturating_sub(self.forwarded)
    }
}

/// TSC cycles per packet and per round.
struct Watched {
    cycles: Samples,
    rounds: Samples,
}

/// The worker, and the queue whose packets it forwards.
pub(super) struct Stage<'a> {
    worker: &'a Running,
    egress: &'a [u16],
    pool: BufferPool,
    /// The core that the client keeps to.
    core: usize,
    rx: Option<RxQueue>,
    samples: u32,
}

impl<'a> Stage<'a> {
    pub(super) fn new(worker: &'a Running, bed: &'a Bed, rx: RxQueue, samples: u32) -> Self {
        let (egress, pool, core) = (bed.egress_ports(), bed.pool, bed.cores[0]);
        Self { worker, egress, pool, core, rx: Some(rx), samples }
    }

    fn forwarded(&self) -> u64 {
        let ports = &self.worker.handle().counters().ports;
        let sent = self.egress.iter().filter_map(|port| ports.get(usize::from(*port)));
        sent.map(|port| port.tx_packets.get()).sum()
    }

    fn received(&self, port: u16) -> u64 {
        let ports = &self.worker.handle().counters().ports;
        ports.get(usize::from(port)).map_or(0, |port| port.rx_packets.get())
    }

    /// One turn, with a client of so many channels.
    pub(super) fn turn(&mut self, conduct: Conduct, channels: u16) -> Result<Turn, Failure> {
        let rx = self.rx.take().ok_or(Failure::NoQueue)?;
        let port = rx.port();
        let before = (self.received(port), self.forwarded());
        let (mut given, mut ends, mut user) = (Vec::new(), Vec::new(), User::new()?);
        let worker = self.worker.handle();
        let requests = if conduct == Conduct::Nobody { 0 } else { conduct.requests() };
        for number in 0..requests {
            let means = (&mut user, port, self.pool);
            let (one, its_ends) = Given::give(worker, (conduct, channels), number, means)?;
            given.push(one);
            ends.push(its_ends);
        }
        let (stop, begun) = (AtomicBool::new(false), AtomicBool::new(ends.is_empty()));
        let watched = std::thread::scope(|scope| {
            let acting = (!ends.is_empty()).then(|| {
                let (core, stop, begun) = (self.core, &stop, &begun);
                scope.spawn(move || {
                    machine::pin(core)?;
                    while !stop.load(Ordering::Relaxed) {
                        user.attend();
                    }
                    Ok::<_, Failure>(())
                });
                scope.spawn(move || {
                    machine::pin(core)?;
                    deeds::run(conduct, &mut ends, stop, begun)
                })
            });
            let watched = self.watch(rx, &begun);
            stop.store(true, Ordering::Relaxed);
            let done = acting.map_or(Ok(0), |thread| thread.join().map_err(|_| Failure::Thread)?);
            watched.and_then(|watched| Ok((watched, done?)))
        });
        self.rx = Some(self.worker.pause(port)?);
        self.settle(port, before)?;
        for one in &given {
            one.take_back(worker)?;
        }
        let (Watched { cycles, rounds }, done) = watched?;
        if conduct == Conduct::Nobody && !cycles.median().is_finite() {
            return Err(Failure::Idle("the forwarder"));
        }
        Ok(Turn {
            cycles: cycles.median(),
            least: cycles.min(),
            round: rounds.median() * 1e6 / dpdk::tsc_hz() as f64,
            done,
            counted: Counted::of(given.iter().map(Given::counters)),
            received: self.received(port) - before.0,
            forwarded: self.forwarded() - before.1,
        })
    }

    /// Waits until what was received is sent: the round after the queue was taken away sends what waits.
    fn settle(&self, port: u16, before: (u64, u64)) -> Result<(), Failure> {
        for _ in 0..SETTLE {
            // It wakes a worker that sleeps.
            self.worker.handle().call(PATIENCE, |_| ())?;
            if self.received(port) - before.0 == self.forwarded() - before.1 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Lets the worker forward, and watches it once the client has begun.
    fn watch(&self, rx: RxQueue, begun: &AtomicBool) -> Result<Watched, Failure> {
        self.worker.resume(rx)?;
        let since = Instant::now();
        while !begun.load(Ordering::Relaxed) && since.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(WARM);
        let (mut cycles, mut rounds) = (Samples::default(), Samples::default());
        let mut then = self.look()?;
        for _ in 0..self.samples {
            std::thread::sleep(SAMPLE);
            // Somebody else may have had the core.
            let since = Instant::now();
            while self.forwarded() == then.forwarded && since.elapsed() < LONGEST {
                std::thread::sleep(SAMPLE);
            }
            let now = self.look()?;
            let passed = (now.worked - then.worked).as_secs_f64() * dpdk::tsc_hz() as f64;
            cycles.0.push(passed / (now.forwarded - then.forwarded) as f64);
            rounds.0.push(passed / (now.rounds - then.rounds) as f64);
            then = now;
        }
        Ok(Watched { cycles, rounds })
    }

    /// Asks the worker how far it is.
    fn look(&self) -> Result<Look, Failure> {
        let worked = self.worker.handle().call(PATIENCE, |_| {
            let time = clock_gettime(ClockId::ThreadCPUTime);
            Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
        })?;
        let rounds = self.worker.handle().counters().rounds.get();
        Ok(Look { worked, forwarded: self.forwarded(), rounds })
    }
}

/// How far the worker is.
struct Look {
    /// Time that it has had on its core: other programs may have had the core meanwhile.
    worked: Duration,
    /// Packets.
    forwarded: u64,
    rounds: u64,
}
