//! Contestants take turns on the core, so that what disturbs the machine disturbs all alike.

use std::time::Duration;

use indicatif::ProgressBar;

use super::args::Args;
use super::cases::Case;
use super::io::Loop;
use crate::failure::Failure;
use crate::l3fwd::{L3fwd, LookUp};
use crate::results::{Better, Outcome, Samples};
use crate::testpmd::Testpmd;
use crate::turns::{Rounds, Sampling};
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

/// Who has turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Forward,
    Io,
    L3fwd(usize),
    Binding,
    Macswap,
}

/// What turns are taken with.
pub(crate) struct Stage<'a> {
    pub(crate) turns: &'a Turns,
    pub(crate) core: usize,
    pub(crate) worker: &'a Running,
    /// Nothing while a contestant has it.
    pub(crate) source: Option<Source>,
    pub(crate) testpmd: Option<&'a mut Testpmd>,
    pub(crate) l3fwd: &'a mut [L3fwd],
}

impl Stage<'_> {
    /// All, in the order of their turns.
    fn contestants(&self) -> Vec<Who> {
        let beside = |who| self.testpmd.is_some().then_some(who);
        let mut all = vec![Who::Forward];
        all.extend(beside(Who::Io));
        all.extend((0..self.l3fwd.len()).map(Who::L3fwd));
        all.push(Who::Binding);
        all.extend(beside(Who::Macswap));
        all
    }

    /// TSC cycles per packet in a turn.
    fn turn(&mut self, who: Who) -> Result<Samples, Failure> {
        let turns = self.turns;
        match (who, &mut self.testpmd) {
            (Who::Forward, _) => {
                let Source { rx, tx } = self.source.take().ok_or(Failure::NoQueue)?;
                let (port, worker) = (rx.port(), self.worker);
                worker.resume(rx)?;
                let samples = watch(turns, || worker.packets());
                self.source = Some(Source { rx: worker.pause(port)?, tx });
                samples
            }
            (Who::Binding, _) => {
                let Source { rx, tx } = self.source.take().ok_or(Failure::NoQueue)?;
                let binding = Loop::start(self.core, 64, rx, tx);
                let samples = watch(turns, || binding.packets());
                let (rx, tx) = binding.stop()?;
                self.source = Some(Source { rx, tx });
                samples
            }
            (Who::L3fwd(place), _) => drive(turns, &mut self.l3fwd[place]),
            (Who::Io, Some(testpmd)) => ask(turns, testpmd, "io"),
            (Who::Macswap, Some(testpmd)) => ask(turns, testpmd, "macswap"),
            (Who::Io | Who::Macswap, None) => Ok(Samples::default()),
        }
    }
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
    pub(crate) fn run(&mut self, mut stage: Stage<'_>, bar: &ProgressBar) -> Result<(), Failure> {
        self.l3fwd = stage.l3fwd.iter().map(Rival::new).collect();
        let contestants = stage.contestants();
        let rounds = Rounds::take(&contestants, stage.turns.count, |who| {
            let samples = stage.turn(who)?;
            bar.inc(u64::from(contestants.last() == Some(&who)));
            Ok(samples)
        })?;
        for (who, turns) in rounds.into_turns() {
            let samples = Samples(turns.into_iter().flat_map(|turn| turn.0).collect());
            match who {
                Who::Forward => self.forward = samples,
                Who::Io => self.io = samples,
                Who::L3fwd(place) => self.l3fwd[place].samples = samples,
                Who::Binding => self.binding = samples,
                Who::Macswap => self.macswap = samples,
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

    /// Our cycles above dpdk-testpmd io to l3fwd's, by turns; none of turns in which one of them stood still.
    pub(crate) fn beside(&self, rival: &Rival) -> Samples {
        let ratios = self.above_io().ratios(&self.above(&rival.samples));
        Samples(ratios.0.into_iter().filter(|ratio| ratio.is_finite()).collect())
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
        let mut rival = Rival { look_up: LookUp::Lpm, hugepages: true, samples };
        assert_eq!(contest.beside(&rival).0, [2.0, 2.0]);
        rival.samples.0[0..2].fill(f64::NAN);
        assert_eq!(contest.beside(&rival).0, [2.0], "it stood still in the first turn");
    }
}
