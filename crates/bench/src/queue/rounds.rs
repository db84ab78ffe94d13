//! Contestants take turns, and only turns in the same phase of the machine are compared.

use std::time::Duration;

use super::cases::Case;
use crate::failure::Failure;
use crate::results::Samples;
use crate::{interrupt, machine, turns};

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
    /// Takes `rounds` rounds, and up to as many again where the phase changed in between; fewer after an interrupt.
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
            let enough = contest.both.iter().all(|both| both.len() >= rounds as usize);
            if round >= rounds && enough || round > 0 && interrupt::came() {
                break;
            }
            let mut probes = Samples(vec![machine::round_trip(cores)?]);
            let rate = ours.turn(case, turn)?;
            probes.0.push(machine::round_trip(cores)?);
            for (yardstick, both) in yardsticks.iter_mut().zip(&mut contest.both) {
                let its = yardstick.turn(case, turn)?;
                probes.0.push(machine::round_trip(cores)?);
                if turns::same_phase(&probes) {
                    both.push(Both { ours: rate, its, cores: probes.median() });
                }
            }
            contest.rates.0.push(rate);
            contest.probes.0.extend(probes.0);
        }
        Ok(contest)
    }

    /// How we compare with a yardstick, by the turns in the same phase.
    pub(super) fn against(&self, yardstick: usize) -> Option<Comparison> {
        let both = self.both.get(yardstick).filter(|both| !both.is_empty())?;
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
