//! One trial: frames at one load for some time, and what became of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use measure::frame::{Reader, Stream};
use measure::load::{Flows, Order, Schedule, Sizes};
use measure::outcome::{Counts, Latency, Receiver};

use super::clock::Clock;
use super::lane::{Lane, Sending};
use crate::failure::Failure;

/// How many frames the tester may be late and catch up: as many as the smallest receive rings hold.
const SLACK: f64 = 256.0;
/// Of the frames that a trial plans, the share that the tester may fail to send; above it the trial is void.
const TOLERATED: f64 = 0.001;
/// How long it must be quiet before a trial ends in which no frame is missing: ns.
const QUIET: u64 = 1_000_000;

/// What is offered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) sizes: Sizes,
    /// bit/s on the wire, each way.
    pub(super) rate: f64,
    /// Frames of each way.
    pub(super) frames: u64,
    /// How long is waited for stragglers.
    pub(super) settle: Duration,
}

/// What the streams of all trials have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traffic {
    /// Each port's stream.
    pub(super) streams: [Stream; 2],
    pub(super) both_ways: bool,
    pub(super) flows: u32,
    pub(super) order: Order,
    pub(super) least: u16,
}

/// What became of it.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// Each way's.
    pub(super) counts: Vec<Counts>,
    /// Of both ways.
    pub(super) latency: Latency,
    /// Frames that the tester should have sent and did not.
    pub(super) missed: u64,
    planned: u64,
    /// From the first frame to the last one sent: s.
    pub(super) seconds: f64,
}

impl Load {
    /// A load for a time: s.
    pub(super) fn lasting(
        sizes: Sizes,
        least: u16,
        rate: f64,
        seconds: f64,
        settle: Duration,
    ) -> Self {
        let frames = (sizes.line_rate(least, rate) * seconds).max(1.0) as u64;
        Self { sizes, rate, frames, settle }
    }
}

impl Outcome {
    /// All ways' counts together.
    pub(super) fn total(&self) -> Counts {
        self.counts.iter().copied().fold(Counts::default(), Counts::plus)
    }

    /// Whether the tester did not keep the rate: it says nothing of the device then.
    pub(super) fn is_void(&self) -> bool {
        self.missed as f64 > self.planned as f64 * TOLERATED
    }

    /// The largest loss of a way: 0 to 1.
    pub(super) fn loss(&self) -> f64 {
        self.counts.iter().map(Counts::loss).fold(0.0, f64::max)
    }
}

/// The tester: two ports, and the thread that serves both.
pub(super) struct Tester {
    pub(super) lanes: [Lane; 2],
    pub(super) traffic: Traffic,
    /// The trial before.
    pub(super) last: u16,
    /// The receive side may see a VLAN tag.
    pub(super) tagged: bool,
}

impl Tester {
    /// Runs a trial; ends early when `stop` says so.
    pub(super) fn run(&mut self, load: &Load, stop: &AtomicBool) -> Result<Outcome, Failure> {
        self.last = self.last.wrapping_add(1);
        let traffic = self.traffic;
        let cycle = load.sizes.cycle(traffic.least);
        let ways = if traffic.both_ways { 2 } else { 1 };
        let slack = SLACK / load.sizes.line_rate(traffic.least, load.rate) * 1e9;
        let mut sendings = Vec::with_capacity(ways);
        for (number, stream) in traffic.streams.iter().enumerate().take(ways) {
            let schedule = Schedule::new(&cycle, load.rate, load.frames, slack as u64);
            let flows = Flows::new(traffic.flows, traffic.order);
            let name = (self.last, number as u8);
            sendings.push(Sending::new(stream, &cycle, name, flows, schedule)?);
        }
        let mut receivers: Vec<_> = traffic
            .streams
            .iter()
            .enumerate()
            .take(ways)
            .map(|(number, stream)| {
                (Reader::new(stream, self.tagged), Receiver::new(self.last, number as u8))
            })
            .collect();
        self.lanes.iter_mut().for_each(Lane::drain);
        let seconds = self.exchange(load, &mut sendings, &mut receivers, stop);
        let counts = receivers.iter().zip(&sendings);
        let counts = counts.map(|((_, receiver), sending)| {
            receiver.counts(sending.sent.offered, sending.sent.refused)
        });
        let mut latency = Latency::default();
        receivers.iter().for_each(|(_, receiver)| latency.add(receiver.latency()));
        let missed = sendings.iter().map(|s| s.schedule.withheld() + s.sent.starved).sum();
        Ok(Outcome {
            counts: counts.collect(),
            latency,
            missed,
            planned: load.frames * ways as u64,
            seconds,
        })
    }

    /// Sends and receives until all frames are sent and have come back, or time is up. Gives how long sending took: s.
    fn exchange(
        &mut self,
        load: &Load,
        sendings: &mut [Sending],
        receivers: &mut [(Reader, Receiver)],
        stop: &AtomicBool,
    ) -> f64 {
        let settle = load.settle.as_nanos() as u64;
        let [left, right] = &mut self.lanes;
        let clock = Clock::start();
        let (mut over, mut last) = (None, 0);
        while !stop.load(Ordering::Relaxed) {
            for (lane, sending) in [&mut *left, &mut *right].into_iter().zip(&mut *sendings) {
                lane.send(sending, &clock);
            }
            // What the left port sends the right one receives.
            let came = [&mut *right, &mut *left]
                .into_iter()
                .zip(&mut *receivers)
                .map(|(lane, (reader, receiver))| lane.receive(reader, receiver, &clock))
                .sum::<usize>();
            if !sendings.iter().all(|sending| sending.schedule.is_over()) {
                continue;
            }
            let now = clock.now();
            let begin = *over.get_or_insert(now);
            if came > 0 {
                last = now;
            }
            let back = receivers.iter().map(|(_, receiver)| receiver.delivered());
            let all = back.eq(sendings.iter().map(|sending| sending.sent.offered));
            let is_quiet = all && now - begin.max(last) > settle.min(QUIET);
            if is_quiet || now - begin > settle {
                break;
            }
        }
        over.unwrap_or_else(|| clock.now()) as f64 / 1e9
    }
}

/// The most that the tester can do by itself: bit/s on the wire that came back, each way, for a size. Whatever is asked for is
/// more than it can send.
pub(super) fn limit(
    tester: &mut Tester,
    sizes: Sizes,
    seconds: f64,
    stop: &AtomicBool,
) -> Result<f64, Failure> {
    const MORE: f64 = 1e12;
    let least = tester.traffic.least;
    let load = Load::lasting(sizes, least, MORE, seconds, Duration::from_millis(100));
    let outcome = tester.run(&load, stop)?;
    let delivered = outcome.total().delivered as f64 / outcome.counts.len() as f64;
    Ok(delivered / outcome.seconds * sizes.mean_wire_bits(least))
}
