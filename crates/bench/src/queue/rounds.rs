//! Contestants take turns, and only turns in the same phase of the machine are compared.

use std::time::Duration;

use super::cases::Case;
use crate::failure::Failure;
use crate::machine::{Look, Rounds};
use crate::results::Samples;
use crate::{interrupt, machine};

/// Who is measured.
pub(super) trait Contestant {
    /// Packets per second.
    fn turn(&mut self, case: Case, turn: Turn) -> Result<f64, Failure>;
}

/// How long a turn is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// Its median counts.
    pub(super) samples: u32,
    /// Length of one.
    pub(super) sample: Duration,
}

impl Turn {
    /// A sample's TSC cycles.
    pub(super) fn sample_cycles(self) -> u64 {
        (self.sample.as_secs_f64() * dpdk::tsc_hz() as f64) as u64
    }
}

/// A turn of ours and one of a yardstick in the same phase: packets per second.
#[derive(Debug, Clone, Copy)]
struct Both {
    ours: f64,
    its: f64,
    /// Cycles between the cores, by the probes around.
    cores: f64,
    /// Nobody else took time meanwhile.
    calm: bool,
}

/// What a case has given.
pub(super) struct Contest {
    pub(super) case: Case,
    /// All our turns: packets per second.
    pub(super) rates: Samples,
    /// Cycles between the cores: all probes.
    pub(super) probes: Samples,
    /// By yardstick.
    both: Vec<Vec<Both>>,
}

impl Contest {
    /// Takes `rounds` rounds, and up to as many again where the phase changed in between or others took time; fewer after an
    /// interrupt.
    pub(super) fn run(
        case: Case,
        turn: Turn,
        rounds: u32,
        cores: [usize; 2],
        ours: &mut dyn Contestant,
        yardsticks: &mut [&mut dyn Contestant],
    ) -> Result<Self, Failure> {
        let both = yardsticks.iter().map(|_| Vec::new()).collect();
        let mut contest =
            Self { case, rates: Samples::default(), probes: Samples::default(), both };
        for round in 0..2 * rounds {
            let calm = |both: &Vec<Both>| both.iter().filter(|both| both.calm).count();
            let enough = contest.both.iter().all(|both| calm(both) >= rounds as usize);
            if round >= rounds && enough || round > 0 && interrupt::came() {
                break;
            }
            let look = Look::now();
            let mut probes = Samples(vec![machine::round_trip(cores)?]);
            let rate = ours.turn(case, turn)?;
            probes.0.push(machine::round_trip(cores)?);
            let mut pairs = Vec::new();
            for yardstick in yardsticks.iter_mut() {
                let its = yardstick.turn(case, turn)?;
                probes.0.push(machine::round_trip(cores)?);
                let alike = machine::same_phase(&probes.0);
                pairs.push(alike.then(|| (its, probes.median())));
            }
            let calm = !look.since().counts();
            Rounds::count(!calm || pairs.iter().any(Option::is_none));
            for (pair, both) in pairs.into_iter().zip(&mut contest.both) {
                both.extend(pair.map(|(its, cores)| Both { ours: rate, its, cores, calm }));
            }
            contest.rates.0.push(rate);
            contest.probes.0.extend(probes.0);
        }
        Ok(contest)
    }

    /// How we compare with a yardstick, by the turns in the same phase: those that nobody disturbed, or all if there are none.
    pub(super) fn against(&self, yardstick: usize) -> Option<Comparison> {
        let all = self.both.get(yardstick).filter(|both| !both.is_empty())?;
        let calm: Vec<Both> = all.iter().copied().filter(|both| both.calm).collect();
        let both = if calm.is_empty() { all } else { &calm };
        let of = |what: fn(&Both) -> f64| Samples(both.iter().map(what).collect());
        Some(Comparison {
            pairs: both.len(),
            ours: of(|both| both.ours),
            its: of(|both| both.its).median(),
            ratio: of(|both| both.ours / both.its).median(),
            cores: of(|both| both.cores).median(),
        })
    }
}

/// Pairs of turns, each in one phase: medians.
pub(super) struct Comparison {
    pub(super) pairs: usize,
    /// Packets per second, ours in these pairs.
    pub(super) ours: Samples,
    pub(super) its: f64,
    pub(super) ratio: f64,
    /// Cycles between the cores.
    pub(super) cores: f64,
}
