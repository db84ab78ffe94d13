//! Contestants take turns on the core, so that what disturbs the machine disturbs all alike.

use std::time::Duration;

use indicatif::ProgressBar;

use super::args::Args;
use super::cases::Case;
use super::io::Loop;
use crate::failure::Failure;
use crate::interrupt;
use crate::l3fwd::{L3fwd, LookUp};
use crate::results::{Better, Outcome, Samples};
use crate::testpmd::Testpmd;
use crate::turns::Sampling;
use crate::worker::{Running, Source};

/// Length of a sample.
const SAMPLE: Duration = Duration::from_millis(20);
/// What passes before the first one.
const WARM: Duration = Duration::from_millis(20);
/// Samples in a turn at most: a tenth of a second. Virtual machines change their speed within seconds, so what is compared is
/// measured as close together as warming up allows.
const TURN: u32 = 5;
/// Cycles above dpdk-testpmd io that are the goal: README's table of goals.
pub(crate) const GOAL: f64 = 30.0;

/// How long contestants take turns.
pub(crate) struct Turns {
    /// Turns of each contestant.
    pub(crate) count: u32,
    sampling: Sampling,
}

impl Turns {
    pub(crate) fn of(args: &Args) -> Self {
        Self::new(args.seconds, args.run.rounds, args.run.quick)
    }

    fn new(seconds: f64, rounds: u32, quick: bool) -> Self {
        let wanted = (seconds.clamp(0.02, 60.0) / SAMPLE.as_secs_f64()).round().max(1.0) as u32;
        let samples = wanted.min(TURN);
        let count = if quick { rounds.min(2) } else { rounds * wanted.div_ceil(samples) };
        Self { count, sampling: Sampling { warm_up: WARM, sample: SAMPLE, samples } }
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
    pub(crate) l3fwd: Vec<Rival>,
    pub(crate) profile: Vec<(&'static str, f64, f64)>,
    /// Samples in a turn.
    turn: usize,
}

/// What DPDK's example router has given: TSC cycles per packet.
pub(crate) struct Rival {
    pub(crate) look_up: LookUp,
    pub(crate) hugepages: bool,
    pub(crate) samples: Samples,
}

/// Programs of others that have turns.
pub(crate) struct Yardsticks<'a> {
    pub(crate) testpmd: Option<&'a mut Testpmd>,
    pub(crate) l3fwd: &'a mut [L3fwd],
}

impl Contest {
    pub(crate) fn new(case: Case, routes: usize, turns: &Turns) -> Self {
        let none = Samples::default;
        Self {
            case,
            routes,
            forward: none(),
            binding: none(),
            io: none(),
            macswap: none(),
            l3fwd: Vec::new(),
            profile: Vec::new(),
            turn: turns.sampling.samples as usize,
        }
    }

    /// All rounds.
    pub(crate) fn run(
        &mut self,
        turns: &Turns,
        core: usize,
        worker: &Running,
        source: Source,
        yardsticks: &mut Yardsticks<'_>,
        bar: &ProgressBar,
    ) -> Result<(), Failure> {
        let Source { mut rx, mut tx } = source;
        let Yardsticks { testpmd, l3fwd } = yardsticks;
        self.l3fwd = l3fwd.iter().map(Rival::new).collect();
        for _ in 0..turns.count {
            let port = rx.port();
            worker.resume(rx)?;
            self.forward.0.extend(watch(turns, || worker.packets())?.0);
            rx = worker.pause(port)?;
            if let Some(testpmd) = testpmd {
                self.io.0.extend(ask(turns, testpmd, "io")?.0);
            }
            for (rival, l3fwd) in self.l3fwd.iter_mut().zip(l3fwd.iter_mut()) {
                rival.samples.0.extend(drive(turns, l3fwd)?.0);
            }
            let binding = Loop::start(core, 64, rx, tx);
            self.binding.0.extend(watch(turns, || binding.packets())?.0);
            (rx, tx) = binding.stop()?;
            if let Some(testpmd) = testpmd {
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

    /// Cycles that a contestant takes above dpdk-testpmd io in the same turns.
    fn above(&self, contestant: &Samples) -> Samples {
        contestant.medians(self.turn).above(&self.io.medians(self.turn))
    }

    /// Cycles that forwarding costs above dpdk-testpmd io, by turns.
    pub(crate) fn above_io(&self) -> Samples {
        self.above(&self.forward)
    }

    /// Our cycles above dpdk-testpmd io to l3fwd's, by turns.
    pub(crate) fn beside(&self, rival: &Rival) -> Samples {
        self.above_io().ratios(&self.above(&rival.samples))
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
            forward = forward.against("dpdk-testpmd io", self.io.median(), Better::Less);
            rate = rate.against("dpdk-testpmd io", hz / self.io.median(), Better::More);
            let mut above = of("forward above dpdk-testpmd io", cycles, &self.above_io());
            above.goal = Some((GOAL, Better::Less));
            list.push(above);
            list.push(of("dpdk-testpmd io", cycles, &self.io));
            list.push(of("dpdk-testpmd macswap", cycles, &self.macswap));
        }
        list.splice(0..0, [forward, rate]);
        for rival in &self.l3fwd {
            let look_up = [("look_up", rival.look_up.to_string().into())];
            let seen = [("hugepages", rival.hugepages.into())];
            list.push(of("l3fwd", cycles, &rival.samples).with(&look_up).seeing(&seen));
            let mut ratio = of("forward above io to l3fwd above io", "ratio", &self.beside(rival));
            ratio.goal = self.case.goal().map(|goal| (goal, Better::Less));
            list.push(ratio.with(&look_up).seeing(&seen));
        }
        list.push(of("binding io", cycles, &self.binding));
        list
    }
}

impl Rival {
    fn new(program: &L3fwd) -> Self {
        Self { look_up: program.look_up, hugepages: program.hugepages, samples: Samples::default() }
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

/// TSC cycles per packet of l3fwd, which stands still again afterwards.
fn drive(turns: &Turns, l3fwd: &mut L3fwd) -> Result<Samples, Failure> {
    l3fwd.resume()?;
    let samples = turns.sampling.take(|| l3fwd.cycles())?;
    l3fwd.pause()?;
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::super::cases::{Family, Routes};
    use super::*;
    use crate::load::Frames;

    #[test]
    fn turns_are_short_and_take_as_long_together() {
        let turns = |seconds, rounds, quick| {
            let turns = Turns::new(seconds, rounds, quick);
            (turns.count, turns.sampling.samples)
        };
        assert_eq!(turns(0.4, 5, false), (20, 5));
        assert_eq!(turns(0.06, 5, false), (5, 3));
        assert_eq!(turns(0.0, 1, false), (1, 1));
        assert_eq!(turns(60.0, 1, false), (600, 5));
        assert_eq!(turns(0.4, 5, true), (2, 5));
    }

    #[test]
    fn costs_are_compared_within_turns() {
        let case = Case {
            family: Family::V4,
            flows: 1,
            routes: Routes::Some(2),
            frames: Frames::Fixed(64),
        };
        let mut contest = Contest::new(case, 2, &Turns::new(0.04, 2, false));
        // The machine is half as fast in the second turn.
        contest.forward = Samples(vec![30.0, 30.0, 60.0, 60.0]);
        contest.io = Samples(vec![20.0, 20.0, 40.0, 40.0]);
        let samples = Samples(vec![25.0, 25.0, 50.0, 50.0]);
        assert_eq!(contest.above_io().0, [10.0, 20.0]);
        let rival = Rival { look_up: LookUp::Lpm, hugepages: true, samples };
        assert_eq!(contest.beside(&rival).0, [2.0, 2.0]);
    }
}
