//! `millrace-bench capacity`: how much an application may do for each packet before packets are lost ('packet on fly').
//!
//! A worker forwards packets as in `millrace-bench forward`. The source has always more than it can take, so the rate at which
//! it forwards is the highest without loss: with so much work for each packet, a slower source loses nothing.
//!
//! | module | job |
//! | --- | --- |
//! | `args` | its arguments |
//! | `work` | digests and uncached reads |
//! | `place` | who does them: a packet function, or a client |
//! | `largest` | how much can be done |
//! | `show` | results |

mod args;
mod largest;
mod place;
mod show;
mod work;

use graph::PortId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use dpdk::{BufferPool, RxQueue};
use measure::load::wire_bits;

use crate::client_ends::{self as ends, User};
use crate::failure::Failure;
use crate::load::{Frames, Packets, sample};
use crate::results::{Report, Samples};
use crate::turns::Sampling;
use crate::worker::{self, Bed, Router, Running, Source, mac};
use crate::{interrupt, terminal};
pub(crate) use args::Args;
use place::{InWorker, Place};
use work::{Kind, Work};

/// Flows and routes: the usual case of `millrace-bench forward`.
const FLOWS: usize = 10_000;
const ROUTES: usize = 10_000;
/// Packets that the receive queue is asked for at once, as in the daemon.
const BURST: u16 = 64;
/// Length of a sample, and of what passes before the first one.
const SAMPLE: Duration = Duration::from_millis(20);
/// How long the worker may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The function's number in the worker.
const FUNCTION: u64 = 1;

/// What was measured at one place with one kind of work and one frame size.
#[derive(Debug)]
struct Measured {
    place: Place,
    kind: Kind,
    frame: u16,
    /// Packets/s by work for each packet.
    rates: Vec<(u32, Samples)>,
    /// Packets/s at which nothing may be lost, and the work that leaves room for; `None`: not even forwarding alone.
    rate: f64,
    largest: Option<u32>,
    /// TSC cycles of one piece of work by itself.
    alone: f64,
}

impl Measured {
    /// TSC cycles that a piece of work adds to a packet.
    fn cost(&self) -> Option<f64> {
        let hz = dpdk::tsc_hz() as f64;
        let (first, last) = (self.rates.first()?, self.rates.last()?);
        let cycles = |samples: &Samples| hz / samples.median();
        (last.0 > first.0)
            .then(|| (cycles(&last.1) - cycles(&first.1)) / f64::from(last.0 - first.0))
    }
}

/// Measures everything.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (prefixes, mut bed, environment) = worker::begin(&args.run)?;
    let routes = sample(&prefixes.v4, ROUTES, 2);
    if routes.is_empty() {
        return Err(Failure::NoPrefixes("IPv4"));
    }
    let mut sources = Vec::new();
    for frame in &args.frames {
        let Source { mut rx, tx } = bed.open()?;
        // Frames in memory lack the check sequence, and are no shorter than the source's templates.
        let size = (*frame - measure::frame::CHECK_SEQUENCE).max(64);
        let packets = Packets::new(&routes, FLOWS, Frames::Fixed(size), mac(rx.port()))?;
        dpdk::yardstick::attach_source(&mut rx, &bed.pool, packets.templates, packets.lengths)?;
        sources.push((*frame, rx, tx));
    }
    let router = Router::new(&routes, bed.egress_ports())?;
    let bar = terminal::progress(sources.len() * Place::ALL.len() * Kind::ALL.len());
    let worker = bed.start(&router, BURST)?;
    let mut all = Vec::new();
    'all: for (frame, mut rx, _tx) in sources {
        for place in Place::ALL {
            for kind in Kind::ALL {
                bar.set_message(format!("{frame} B, {kind} in the {place}"));
                let mut stand = Stand::new(&worker, &bed, args);
                let (measured, back) = stand.measure(place, kind, frame, rx)?;
                rx = back;
                all.push(measured);
                bar.inc(1);
                if interrupt::came() {
                    break 'all;
                }
            }
        }
    }
    bar.finish_and_clear();
    // Its transmit queues go with it: there is no measurement after this one.
    drop(worker);
    show::print(&all, args.gigabits);
    let report = Report { environment, results: show::outcomes(&all, args.gigabits) };
    report.write(args.run.json.file())
}

/// The worker, and how it is watched.
struct Stand<'a> {
    worker: &'a Running,
    egress: &'a [u16],
    pool: BufferPool,
    /// The core that a client keeps to.
    core: usize,
    samples: u32,
    /// Work at which the rate is measured.
    work: Vec<u32>,
    args: &'a Args,
}

impl<'a> Stand<'a> {
    fn new(worker: &'a Running, bed: &'a Bed, args: &'a Args) -> Self {
        let (egress, pool, core) = (bed.egress_ports(), bed.pool, bed.cores[0]);
        let quick = args.run.quick;
        let samples = if quick { 2 } else { args.run.rounds };
        Self { worker, egress, pool, core, samples, work: args.work(), args }
    }

    fn measure(
        &mut self,
        place: Place,
        kind: Kind,
        frame: u16,
        rx: RxQueue,
    ) -> Result<(Measured, RxQueue), Failure> {
        let port = rx.port();
        let mut work = Work::new(kind, self.args.memory);
        let alone = work.alone(usize::from(frame - measure::frame::CHECK_SEQUENCE));
        let times = Arc::new(AtomicU32::new(0));
        let rate = self.args.gigabits * 1e9 / wire_bits(frame) as f64;
        let measured = match place {
            Place::Worker => {
                let function = Box::new(InWorker { work, times: Arc::clone(&times) });
                let handle = self.worker.handle();
                handle.call(PATIENCE, move |state| state.add_function(FUNCTION, function))?;
                self.worker.resume(rx)?;
                self.look(&times, rate)
            }
            Place::Client => {
                let mut user = User::new()?;
                let to = self.egress.first().copied().ok_or(Failure::NoQueue)?;
                let made = ends::make(
                    place::request(),
                    1,
                    &mut user,
                    ([PortId::new(port), PortId::new(to)], self.pool),
                )?;
                let function = Box::new(made.queues);
                let handle = self.worker.handle();
                handle.call(PATIENCE, move |state| state.add_function(FUNCTION, function))?;
                self.worker.resume(rx)?;
                self.look_at_client(made.ends, &user, work, &times, rate)
            }
        };
        let back = self.worker.pause(port)?;
        let gone = self.worker.handle().call(PATIENCE, |state| state.remove_function(FUNCTION))?;
        drop(gone);
        let (rates, largest) = measured?;
        Ok((Measured { place, kind, frame, rates, rate, largest, alone }, back))
    }

    /// The same with a client's threads beside.
    fn look_at_client(
        &self,
        mut ends: ends::Ends,
        user: &User,
        work: Work,
        times: &AtomicU32,
        rate: f64,
    ) -> Result<Looked, Failure> {
        let stop = AtomicBool::new(false);
        let core = self.core;
        let channel =
            ends.channels.first_mut().ok_or(Failure::OtherProcess("it has no channel"))?;
        std::thread::scope(|scope| {
            let attending = scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    user.attend();
                }
            });
            let client = scope.spawn(|| place::client(core, channel, work, times, &stop));
            let looked = self.look(times, rate);
            stop.store(true, Ordering::Relaxed);
            let ended = client.join().map_err(|_| Failure::Thread)?;
            attending.join().map_err(|_| Failure::Thread)?;
            ended.and(looked)
        })
    }

    /// Rates by work, and the largest work at a rate.
    fn look(&self, times: &AtomicU32, rate: f64) -> Result<Looked, Failure> {
        let at = |n| {
            times.store(n, Ordering::Relaxed);
            self.rates()
        };
        let rates = self.work.iter().map(|n| Ok((*n, at(*n)?))).collect::<Result<_, Failure>>()?;
        let largest = largest::largest(|n| Ok::<_, Failure>(at(n)?.median() >= rate))?;
        Ok((rates, largest))
    }

    /// Packets/s that leave by the egress ports.
    fn rates(&self) -> Result<Samples, Failure> {
        let (mut then, mut before) = (Instant::now(), self.forwarded());
        Sampling { warm_up: SAMPLE, sample: SAMPLE, samples: self.samples }.take(|| {
            let (now, after) = (Instant::now(), self.forwarded());
            let rate = (after - before) as f64 / (now - then).as_secs_f64();
            (then, before) = (now, after);
            Ok(rate)
        })
    }

    fn forwarded(&self) -> u64 {
        let ports = &self.worker.handle().counters().ports;
        let sent = self.egress.iter().filter_map(|port| ports.get(usize::from(*port)));
        sent.map(|port| port.tx_packets.get()).sum()
    }
}

/// Rates by work, and the largest work.
type Looked = (Vec<(u32, Samples)>, Option<u32>);
