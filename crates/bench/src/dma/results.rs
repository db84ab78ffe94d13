//! Results in the form that every measurement has.

use super::contest::{COURSES, Contest, combined};
use super::ledger::Ledger;
use super::model::{Direction, Model};
use super::proof::Proof;
use super::software::Measured;
use crate::results::{Better, Outcome, Samples};

/// What the yardstick is called.
const CLASSIC: &str = "descriptors written back";

/// Bytes of a packet for each size, both ways.
pub(super) fn bytes(contest: &Contest, sizes: &[u64]) -> Vec<Outcome> {
    let outcome = |what, unit, direction: Direction, size: u64, bytes: &dyn Fn(&Model) -> f64| {
        Outcome::new(what, unit, Samples(vec![bytes(&contest.own)]))
            .with(&[("direction", direction.name().into()), ("size", size.into())])
            .against(CLASSIC, bytes(&contest.classic), Better::Less)
    };
    let each = sizes.iter().flat_map(|size| Direction::BOTH.map(|direction| (*size, direction)));
    each.flat_map(|(size, direction)| {
        let document = |model: &Model| model.document(direction, size);
        let up = |model: &Model| model.bytes(direction, size).0;
        let down = |model: &Model| model.bytes(direction, size).1;
        [
            outcome("units of 64 B", "bytes/packet", direction, size, &document),
            outcome("device to host", "bytes/packet", direction, size, &up),
            outcome("host to device", "bytes/packet", direction, size, &down),
        ]
    })
    .collect()
}

/// Packets/s of each link for each size, both ways.
pub(super) fn rates(contests: &[Contest], lanes: &[u32], sizes: &[u64]) -> Vec<Outcome> {
    let mut results = Vec::new();
    for (contest, lanes, size) in combined(contests, lanes, sizes) {
        for (what, directions) in COURSES {
            let rate = |model: &Model| model.rate(directions, size, lanes);
            let parameters = [
                ("generation", contest.own.link.generation.number().into()),
                ("lanes", lanes.into()),
                ("direction", what.into()),
                ("size", size.into()),
            ];
            results.push(
                Outcome::new("link", "packets/s", Samples(vec![rate(&contest.own)]))
                    .with(&parameters)
                    .against(CLASSIC, rate(&contest.classic), Better::More),
            );
        }
    }
    results
}

/// A stream that device and driver exchanged, and what came of it.
#[derive(Debug)]
pub(super) struct Proven {
    pub(super) way: &'static str,
    pub(super) direction: Direction,
    pub(super) packets: u64,
    pub(super) proof: Proof,
}

impl Proven {
    pub(super) fn outcome(&self) -> Outcome {
        let both = |ledger: &Ledger| {
            let total = ledger.total();
            total.up + total.down
        };
        let (counted, modelled) = (both(&self.proof.counted), both(&self.proof.modelled));
        Outcome::new("soft device", "bytes", Samples(vec![counted.bytes as f64]))
            .with(&[
                ("way", self.way.into()),
                ("direction", self.direction.name().into()),
                ("packets", self.packets.into()),
            ])
            .seeing(&[
                ("writes", counted.writes.into()),
                ("reads", counted.reads.into()),
                ("completions", counted.completions.into()),
                ("units", counted.units.into()),
            ])
            .against("model", modelled.bytes as f64, Better::Less)
    }
}

/// Cycles and packets/s of the layouts between two cores, for one size. The first layout is the yardstick.
pub(super) fn between_cores(measured: &Measured) -> Vec<Outcome> {
    let hz = dpdk::tsc_hz() as f64;
    let rates = |cycles: &Samples| Samples(cycles.0.iter().map(|cycles| hz / cycles).collect());
    let base = measured.layouts.first().map(|(layout, cycles)| (layout.name(), cycles));
    let outcomes = measured.layouts.iter().map(|(layout, cycles)| {
        let parameters = [("layout", layout.name().into()), ("size", measured.size.into())];
        let mut taken = Outcome::new("two cores", "cycles/packet", cycles.clone());
        let mut rate = Outcome::new("two cores", "packets/s", rates(cycles));
        if let Some((name, base)) = base.as_ref().filter(|(name, _)| *name != layout.name()) {
            taken = taken.against(name, base.median(), Better::Less);
            rate = rate.against(name, rates(base).median(), Better::More);
        }
        [taken.with(&parameters), rate.with(&parameters)]
    });
    outcomes.flatten().collect()
}
