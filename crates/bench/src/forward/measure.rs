//! Contestants take turns on the core, so that what disturbs the machine disturbs all alike.

use std::time::Duration;

use indicatif::ProgressBar;

use super::args::Args;
use super::cases::Case;
use super::io::Loop;
use crate::failure::Failure;
use crate::interrupt;
use crate::results::{Better, Outcome, Samples};
use crate::testpmd::Testpmd;
use crate::turns::Sampling;
use crate::worker::{Running, Source};

/// Length of a sample.
const SAMPLE: Duration = Duration::from_millis(20);
/// What passes before the first one.
const WARM: Duration = Duration::from_millis(20);
/// Cycles above dpdk-testpmd io that are the goal: README's table of goals.
pub(crate) const GOAL: f64 = 30.0;

/// How long contestants take turns.
pub(crate) struct Turns {
    pub(crate) rounds: u32,
    sampling: Sampling,
}

impl Turns {
    pub(crate) fn of(args: &Args) -> Self {
        let samples = (args.seconds.clamp(0.02, 60.0) / SAMPLE.as_secs_f64()) as u32;
        let rounds = args.run.rounds;
        let (rounds, samples) =
            if args.run.quick { (rounds.min(2), samples.min(5)) } else { (rounds, samples) };
        Self { rounds, sampling: Sampling { warm_up: WARM, sample: SAMPLE, samples } }
    }
}

/// What a case has given: TSC cycles per packet.
pub(crate) struct Contest {
    pub(crate) case: Case,
    pub(crate) routes: usize,
    /// Our whole forwarder.
    pub(crate) forward: Samples,
    /// Receive and transmit through our binding.
    pub(crate) binding: Samples,
    /// dpdk-testpmd.
    pub(crate) io: Samples,
    pub(crate) macswap: Samples,
    pub(crate) profile: Vec<(&'static str, f64, f64)>,
}

impl Contest {
    pub(crate) fn new(case: Case, routes: usize) -> Self {
        let none = Samples::default;
        Self {
            case,
            routes,
            forward: none(),
            binding: none(),
            io: none(),
            macswap: none(),
            profile: Vec::new(),
        }
    }

    /// All rounds.
    pub(crate) fn run(
        &mut self,
        turns: &Turns,
        core: usize,
        worker: &Running,
        source: Source,
        mut testpmd: Option<&mut Testpmd>,
        bar: &ProgressBar,
    ) -> Result<(), Failure> {
        let Source { mut rx, mut tx } = source;
        for _ in 0..turns.rounds {
            let port = rx.port();
            worker.resume(rx)?;
            self.forward.0.extend(watch(turns, || worker.packets())?.0);
            rx = worker.pause(port)?;
            if let Some(testpmd) = &mut testpmd {
                self.io.0.extend(ask(turns, testpmd, "io")?.0);
            }
            let binding = Loop::start(core, 64, rx, tx);
            self.binding.0.extend(watch(turns, || binding.packets())?.0);
            (rx, tx) = binding.stop()?;
            if let Some(testpmd) = &mut testpmd {
                self.macswap.0.extend(ask(turns, testpmd, "macswap")?.0);
            }
            bar.inc(1);
            if interrupt::came() {
                break;
            }
        }
        let all = [("the forwarder", &self.forward), ("the binding", &self.binding)];
        let idle = |(_, samples): &&(&str, &Samples)| !samples.median().is_finite();
        all.iter().find(idle).map_or(Ok(()), |(name, _)| Err(Failure::Idle(name)))
    }

    /// Cycles that forwarding costs above dpdk-testpmd io: by medians, and by minima.
    pub(crate) fn above_io(&self) -> (f64, f64) {
        (self.forward.median() - self.io.median(), self.forward.min() - self.io.min())
    }

    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        let Case { family, flows, routes, frames } = self.case;
        let of = |name: &str, unit, samples: &Samples| {
            Outcome::new(name, unit, samples.clone()).with(&[
                ("family", family.to_string().into()),
                ("flows", flows.into()),
                ("routes", routes.to_string().into()),
                ("route_count", self.routes.into()),
                ("frame", frames.to_string().into()),
            ])
        };
        let cycles = "TSC cycles/packet";
        let hz = dpdk::tsc_hz() as f64;
        let rates = |samples: &Samples| Samples(samples.0.iter().map(|c| hz / c).collect());
        let mut forward = of("forward", cycles, &self.forward);
        let mut rate = of("forward rate", "packets/s", &rates(&self.forward));
        let mut list = Vec::new();
        if self.io.median().is_finite() {
            let (above, _) = self.above_io();
            forward = forward.against("dpdk-testpmd io", self.io.median(), Better::Less);
            rate = rate.against("dpdk-testpmd io", hz / self.io.median(), Better::More);
            let above = of("forward above dpdk-testpmd io", cycles, &Samples(vec![above]));
            list.push(above.against("goal", GOAL, Better::Less));
            list.push(of("dpdk-testpmd io", cycles, &self.io));
            list.push(of("dpdk-testpmd macswap", cycles, &self.macswap));
        }
        list.splice(0..0, [forward, rate]);
        list.push(of("binding io", cycles, &self.binding));
        list
    }
}

/// TSC cycles per packet, by a counter of packets.
fn watch(turns: &Turns, packets: impl Fn() -> u64) -> Result<Samples, Failure> {
    let (mut then, mut before) = (dpdk::tsc(), packets());
    turns.sampling.take(|| {
        let (now, after) = (dpdk::tsc(), packets());
        let cycles = now.wrapping_sub(then) as f64 / after.wrapping_sub(before) as f64;
        (then, before) = (now, after);
        Ok(cycles)
    })
}

/// TSC cycles per packet, by what dpdk-testpmd says.
fn ask(turns: &Turns, testpmd: &mut Testpmd, mode: &str) -> Result<Samples, Failure> {
    testpmd.start(mode)?;
    let samples = turns.sampling.take(|| Ok(dpdk::tsc_hz() as f64 / testpmd.rate()?))?;
    testpmd.stop()?;
    Ok(samples)
}
