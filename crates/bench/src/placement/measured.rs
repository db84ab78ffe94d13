//! What the turns of the rows have given, beside the yardstick: all threads on one core.

use super::rows::Row;
use super::turn::Turn;
use crate::machine::Disturbance;
use crate::results::{Better, Outcome, Samples};

/// What everything is compared with.
const YARDSTICK: &str = "all on one core";

/// A row, and its turns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measured {
    pub(super) row: Row,
    /// One for each round; none where the machine cannot.
    pub(super) turns: Vec<Turn>,
}

impl Measured {
    /// Packets/s, by rounds: of those that nothing disturbed, or of all where there are none.
    pub(super) fn rates(&self) -> Samples {
        let calm = self.turns.iter().filter(|turn| !turn.is_disturbed());
        let calm: Vec<f64> = calm.filter_map(Turn::rate).collect();
        if calm.is_empty() {
            return Samples(self.turns.iter().filter_map(Turn::rate).collect());
        }
        Samples(calm)
    }

    /// Rounds that were disturbed.
    pub(super) fn disturbed(&self) -> usize {
        self.turns.iter().filter(|turn| turn.is_disturbed()).count()
    }

    /// What the machine's host and other programs took at most.
    pub(super) fn worst(&self) -> Disturbance {
        let all = self.turns.iter().map(|turn| turn.disturbance);
        all.fold(Disturbance::default(), Disturbance::or)
    }

    /// The share of packets that found no place in a ring.
    pub(super) fn lost(&self) -> Samples {
        let taken = self.turns.iter().filter_map(|turn| turn.taken.as_ref().ok());
        Samples(taken.map(|taken| taken.lost).collect())
    }

    /// Bytes from one buffer to the next.
    pub(super) fn apart(&self) -> Option<usize> {
        self.turns.iter().find_map(|turn| turn.taken.as_ref().ok()?.apart)
    }

    /// To the rate of another row, by the rounds in which the machine was the same for both, or by all where there are none.
    pub(super) fn ratio(&self, other: &Self) -> Option<f64> {
        let rounds = self.turns.iter().zip(&other.turns);
        let ratio = |(own, its): (&Turn, &Turn)| Some(own.rate()? / its.rate()?);
        let alike = rounds.clone().filter(|(own, its)| own.is_like(its));
        let alike: Vec<f64> = alike.filter_map(ratio).collect();
        let all = if alike.is_empty() { rounds.filter_map(ratio).collect() } else { alike };
        Some(Samples(all).median()).filter(|ratio| ratio.is_finite())
    }

    /// Why there is nothing.
    pub(super) fn lack(&self) -> Option<&str> {
        match &self.row.setup {
            Err(why) => Some(why),
            Ok(_) if self.rates().0.is_empty() => {
                let mut whys = self.turns.iter().filter_map(|turn| turn.taken.as_ref().err());
                Some(whys.next().map_or("there was no round", String::as_str))
            }
            Ok(_) => None,
        }
    }
}

/// The row that others are compared with.
pub(super) fn yardstick(all: &[Measured]) -> Option<&Measured> {
    all.iter().find(|one| one.row.what.is_yardstick() && one.lack().is_none())
}

/// All rows in the form of a report; those that could not be measured have no value, but the reason.
pub(super) fn outcomes(all: &[Measured], frame: u16) -> Vec<Outcome> {
    let its = yardstick(all);
    let outcome = |one: &Measured| {
        let what = &one.row.what;
        let new = Outcome::new(what.name(), "packets/s", one.rates())
            .with(&what.parameters())
            .with(&[("frame", frame.into())]);
        let setup = match (&one.row.setup, one.lack()) {
            (Ok(setup), None) => setup,
            (_, why) => return new.seeing(&[("cannot_run", why.unwrap_or_default().into())]),
        };
        let probes = one.turns.iter().flat_map(|turn| turn.probes.0.iter().copied());
        let probes = Samples(probes.collect());
        let mut new = new.seeing(&[
            ("cores", setup.cores.to_vec().into()),
            ("pages", setup.memory.pages.to_string().into()),
            ("lost", one.lost().median().into()),
            ("buffers_apart", one.apart().into()),
            ("disturbed", one.disturbed().into()),
            ("stolen", one.worst().stolen.into()),
            ("others", one.worst().others.into()),
            ("core_to_core", probes.median().into()),
        ]);
        if let (Some(its), false) = (its, what.is_yardstick()) {
            new.compare(YARDSTICK, its.rates().median(), Better::More);
            new.ratio = one.ratio(its);
        }
        new
    };
    all.iter().map(outcome).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::memory::{Memory, Pages};
    use super::super::pair::Pair;
    use super::super::places::Placement;
    use super::super::rows::{Setup, What};
    use super::super::stage::Taken;
    use super::*;

    const APART: Placement = Placement {
        receive_worker: Pair::Cache,
        worker_transmit: Pair::Same,
        receive_transmit: Pair::Cache,
    };

    fn turn(rate: f64, stolen: f64, phase: f64) -> Turn {
        let taken = Ok(Taken { rate, lost: 0.25, apart: Some(2368) });
        let disturbance = Disturbance { stolen, others: 0.0 };
        Turn { taken, disturbance, probes: Samples(vec![phase, phase]) }
    }

    fn measured(placement: Placement, turns: Vec<Turn>) -> Measured {
        let setup = Setup { cores: [1, 0, 0], memory: Memory::usual(Pages::Ordinary) };
        Measured { row: Row { what: What::Cores(placement), setup: Ok(setup) }, turns }
    }

    #[test]
    fn only_rounds_in_one_phase_are_compared() {
        let its = vec![turn(100.0, 0.0, 300.0), turn(100.0, 0.0, 300.0), turn(50.0, 0.0, 300.0)];
        let one = measured(Placement::ONE_CORE, its);
        let ours = vec![turn(60.0, 0.0, 310.0), turn(10.0, 0.5, 300.0), turn(10.0, 0.0, 900.0)];
        let two = measured(APART, ours);
        assert_eq!(two.ratio(&one), Some(0.6));
        assert_eq!(
            (two.rates().0, two.disturbed(), two.worst().stolen),
            (vec![60.0, 10.0], 1, 0.5)
        );
        let noisy = measured(APART, vec![turn(50.0, 0.5, 300.0)]);
        assert_eq!((noisy.ratio(&one), noisy.rates().0), (Some(0.5), vec![50.0]));
    }

    #[test]
    fn what_cannot_be_run_is_in_the_report_with_its_reason() {
        let one = measured(Placement::ONE_CORE, vec![turn(100.0, 0.0, 300.0)]);
        let two = measured(APART, vec![turn(60.0, 0.0, 310.0)]);
        let far = Placement { worker_transmit: Pair::Far, ..APART };
        let row = Row { what: What::Cores(far), setup: Err("there is one NUMA node".into()) };
        let none = Measured { row, turns: Vec::new() };
        let broken = Turn { taken: Err("no memory".into()), ..turn(0.0, 0.0, 1.0) };
        let broken = measured(Placement { receive_worker: Pair::Far, ..APART }, vec![broken]);
        let outcomes = outcomes(&[one, two, none, broken], 64);
        let json: Vec<Value> =
            outcomes.iter().map(|outcome| serde_json::to_value(outcome).unwrap()).collect();
        assert_eq!(json[0]["value"], 100.0);
        assert_eq!(json[0]["yardstick"], Value::Null);
        assert_eq!((&json[1]["ratio"], &json[1]["yardstick_value"]), (&0.6.into(), &100.0.into()));
        let parameters = serde_json::json!({"receive_worker": "same L3", "worker_transmit": "same core",
            "receive_transmit": "same L3", "frame": 64});
        assert_eq!(json[1]["parameters"], parameters);
        assert_eq!(json[1]["observed"]["cores"], serde_json::json!([1, 0, 0]));
        assert_eq!(json[1]["observed"]["lost"], 0.25);
        assert_eq!(
            (&json[2]["value"], &json[2]["samples"]),
            (&Value::Null, &serde_json::json!([]))
        );
        assert_eq!(json[2]["observed"]["cannot_run"], "there is one NUMA node");
        assert_eq!(json[3]["observed"]["cannot_run"], "no memory");
    }
}
