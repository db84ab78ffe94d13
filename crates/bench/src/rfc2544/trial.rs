//! One trial: frames at one load for some time, and what became of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use measure::frame::{Reader, Stream};
use measure::load::{Flows, Order, Schedule, Sizes, versions};
use measure::outcome::{Counts, Latency, Receiver, Variation};

use super::clock::{Clock, Patience};
use super::lane::{Lane, Sending, Sent, stream};
use crate::failure::Failure;
use crate::machine::{Look, Rounds};

/// Of the frames that a trial plans, the share that the tester may fail to send; above it the trial is void.
const TOLERATED: f64 = 0.001;
/// How long it must be quiet before a trial ends in which no frame is missing: ns.
const QUIET: u64 = 1_000_000;
/// How often the tester looks whether its ports are still there: ns.
const LOOK: u64 = 100_000_000;
/// How long a device may take to learn from a frame.
const LEARNING: Duration = Duration::from_millis(100);

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
    /// Whether to look how delays differ from frame to frame.
    pub(super) variation: bool,
}

/// When a trial ends early.
#[derive(Clone, Copy)]
pub(super) struct Until<'a> {
    /// The user wants no more.
    pub(super) stop: &'a AtomicBool,
    /// Whether the tester's ports are still there.
    pub(super) is_whole: &'a dyn Fn() -> bool,
}

/// What the streams of all trials have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traffic {
    /// Each port's streams, of IPv4 and of IPv6.
    pub(super) streams: [[Stream; 2]; 2],
    /// Of ten frames, so many are IPv6.
    pub(super) tenths: u8,
    pub(super) both_ways: bool,
    pub(super) flows: u32,
    pub(super) order: Order,
    pub(super) least: u16,
    /// How many frames the tester may be late and catch up.
    pub(super) slack: u32,
}

impl Traffic {
    /// The IP versions that there are: whether each is IPv6.
    fn versions(self) -> impl Iterator<Item = bool> {
        let is_there = move |ipv6: &bool| if *ipv6 { self.tenths > 0 } else { self.tenths < 10 };
        [false, true].into_iter().filter(is_there)
    }
}

/// What became of it.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// Each way's.
    pub(super) counts: Vec<Counts>,
    /// Of both ways.
    pub(super) latency: Latency,
    pub(super) variation: Variation,
    /// Whether others took time from the machine meanwhile.
    pub(super) disturbed: bool,
    /// A port was gone before the end.
    pub(super) broken: bool,
    /// Of each way, the frames that the tester should have sent and did not.
    pub(super) missed: Vec<u64>,
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
        Self { sizes, rate, frames, settle, variation: false }
    }
}

impl Outcome {
    /// All ways' counts together.
    pub(super) fn total(&self) -> Counts {
        self.counts.iter().copied().fold(Counts::default(), Counts::plus)
    }

    /// Whether it says nothing of the device: the tester did not keep the rate, or the tester itself may have lost what is missing
    /// beyond what is `tolerated`.
    pub(super) fn is_void(&self, tolerated: f64) -> bool {
        let missed: u64 = self.missed.iter().sum();
        let is_late = missed as f64 > self.planned as f64 * TOLERATED;
        is_late || self.loss() > tolerated && self.certain_loss() <= tolerated
    }

    /// The largest loss of a way that the tester cannot have caused. Frames that it did not send were due while it was held up for longer
    /// than its receive rings are sure to hold, so as many may have been lost there.
    fn certain_loss(&self) -> f64 {
        let certain = |(counts, missed): (&Counts, &u64)| {
            let explained = counts.lost.saturating_sub(counts.refused).min(*missed);
            Counts { delivered: counts.delivered + explained, ..*counts }.loss()
        };
        self.counts.iter().zip(&self.missed).map(certain).fold(0.0, f64::max)
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
    /// Runs a trial; ends early when `until` says so.
    pub(super) fn run(&mut self, load: &Load, until: Until<'_>) -> Result<Outcome, Failure> {
        self.last = self.last.wrapping_add(1);
        let traffic = self.traffic;
        let cycle = versions(&load.sizes.cycle(traffic.least), traffic.tenths);
        let sizes: Vec<u16> = cycle.iter().map(|(size, _)| *size).collect();
        let ways = if traffic.both_ways { 2 } else { 1 };
        let slack = f64::from(traffic.slack) / load.sizes.line_rate(traffic.least, load.rate) * 1e9;
        let mut sendings = Vec::with_capacity(ways);
        for (number, streams) in traffic.streams.iter().enumerate().take(ways) {
            let schedule = Schedule::new(&sizes, load.rate, load.frames, slack as u64);
            let flows = Flows::new(traffic.flows, traffic.order);
            let name = (self.last, number as u8);
            sendings.push(Sending::new(streams, &cycle, name, flows, schedule)?);
        }
        let mut receivers: Vec<Vec<_>> =
            (0..ways).map(|way| self.receivers(way, load.variation)).collect();
        if !traffic.both_ways {
            // RFC 2544 23 b): nothing else tells a bridge behind which port these frames' destination is, and it forgets.
            let [_, output] = &mut self.lanes;
            traffic.versions().for_each(|ipv6| output.introduce(ipv6));
            std::thread::sleep(LEARNING);
        }
        self.lanes.iter_mut().for_each(Lane::drain);
        let look = Look::now();
        let (seconds, broken) = self.exchange(load, &mut sendings, &mut receivers, until);
        let disturbed = look.since().counts();
        Rounds::count(disturbed);
        let counts =
            receivers.iter().zip(&sendings).map(|(way, sending)| of_way(way, &sending.sent));
        let (mut latency, mut variation) = (Latency::default(), Variation::default());
        for (_, receiver) in receivers.iter().flatten() {
            latency.add(receiver.latency());
            receiver.variation().into_iter().for_each(|way| variation.add(way));
        }
        let missed = sendings.iter().map(|s| s.schedule.withheld() + s.sent.starved).collect();
        Ok(Outcome {
            counts: counts.collect(),
            latency,
            variation,
            disturbed,
            broken,
            missed,
            planned: load.frames * ways as u64,
            seconds,
        })
    }

    /// Those of a way, for each IP version that there is.
    fn receivers(&self, way: usize, variation: bool) -> Vec<(Reader, Receiver)> {
        let traffic = &self.traffic;
        let one = |ipv6: bool| {
            let reader = Reader::new(&traffic.streams[way][usize::from(ipv6)], self.tagged);
            let receiver = Receiver::new(self.last, stream(way as u8, ipv6));
            (reader, if variation { receiver.watching_variation() } else { receiver })
        };
        traffic.versions().map(one).collect()
    }

    /// Sends and receives until all frames are sent and have come back, or time is up. Gives how long sending took (s), and
    /// whether a port was gone before the end.
    fn exchange(
        &mut self,
        load: &Load,
        sendings: &mut [Sending],
        receivers: &mut [Vec<(Reader, Receiver)>],
        until: Until<'_>,
    ) -> (f64, bool) {
        let settle = load.settle.as_nanos() as u64;
        let mut patience = Patience::new(settle);
        let [left, right] = &mut self.lanes;
        let clock = Clock::start();
        let (mut over, mut last, mut next_look, mut broken) = (None, 0, LOOK, false);
        while !until.stop.load(Ordering::Relaxed) && !broken {
            for (lane, sending) in [&mut *left, &mut *right].into_iter().zip(&mut *sendings) {
                lane.send(sending, &clock);
            }
            // What the left port sends the right one receives.
            let came = [&mut *right, &mut *left]
                .into_iter()
                .zip(&mut *receivers)
                .map(|(lane, receivers)| lane.receive(receivers, &clock))
                .sum::<usize>();
            if clock.now() > next_look {
                next_look = clock.now() + LOOK;
                broken = !(until.is_whole)();
            }
            if !sendings.iter().all(|sending| sending.schedule.is_over()) {
                continue;
            }
            let now = clock.now();
            let begin = *over.get_or_insert(now);
            if came > 0 {
                last = now;
            }
            let back =
                receivers.iter().map(|way| way.iter().map(|(_, one)| one.delivered()).sum::<u64>());
            let all =
                back.eq(sendings.iter().map(|sending| sending.sent.offered.iter().sum::<u64>()));
            let is_quiet = all && now - begin.max(last) > settle.min(QUIET);
            if is_quiet || patience.is_over(now) {
                break;
            }
        }
        (over.unwrap_or_else(|| clock.now()) as f64 / 1e9, broken)
    }
}

/// What became of a way's frames.
fn of_way(receivers: &[(Reader, Receiver)], sent: &Sent) -> Counts {
    // Of which version the frames were that the link refused nobody knows.
    let of = |(reader, receiver): &(Reader, Receiver)| {
        receiver.counts(sent.offered[usize::from(reader.is_ipv6())], 0)
    };
    let all = receivers.iter().map(of).fold(Counts::default(), Counts::plus);
    Counts { refused: sent.refused, ..all }
}

/// The most that the tester can do by itself: bit/s on the wire that came back, each way, for a size. Whatever is asked for is
/// more than it can send.
pub(super) fn limit(
    tester: &mut Tester,
    sizes: Sizes,
    seconds: f64,
    until: Until<'_>,
) -> Result<f64, Failure> {
    const MORE: f64 = 1e12;
    let least = tester.traffic.least;
    let load = Load::lasting(sizes, least, MORE, seconds, Duration::from_millis(100));
    let outcome = tester.run(&load, until)?;
    let delivered = outcome.total().delivered as f64 / outcome.counts.len() as f64;
    Ok(delivered / outcome.seconds * sizes.mean_wire_bits(least))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trial of two ways: frames lost and refused of the one, and missed by the tester.
    fn outcome([lost, refused, missed]: [u64; 3]) -> Outcome {
        let offered = 10_000;
        let counts =
            Counts { offered, lost, refused, delivered: offered - lost, ..Counts::default() };
        let all = Counts { offered, delivered: offered, ..Counts::default() };
        Outcome {
            counts: vec![counts, all],
            latency: Latency::default(),
            variation: Variation::default(),
            disturbed: false,
            broken: false,
            missed: vec![missed, 0],
            planned: 2 * offered,
            seconds: 1.0,
        }
    }

    #[test]
    fn a_trial_is_void_when_the_tester_may_be_to_blame() {
        // It did not keep the rate, whatever came back.
        assert!(outcome([0, 0, 21]).is_void(0.0) && outcome([5000, 0, 21]).is_void(0.0));
        // It was held up for a moment: its own rings may have lost as many.
        assert!(!outcome([0, 0, 20]).is_void(0.0) && outcome([20, 0, 20]).is_void(0.0));
        // More are missing, or the link to the device refused them: the device is to blame.
        assert!(!outcome([21, 0, 20]).is_void(0.0) && !outcome([20, 1, 20]).is_void(0.0));
        assert!(!outcome([20, 0, 0]).is_void(0.0));
        // A loss that is tolerated needs nobody to blame.
        assert!(!outcome([20, 0, 20]).is_void(0.01));
    }
}
