//! Frame loss rate (RFC 2544 26.3).

use measure::load::Sizes;
use measure::outcome::Counts;
use measure::search::LossCurve;

use super::Session;
use crate::failure::Failure;

/// Steps of the load: RFC 2544 26.3 wants a tenth or less.
const GRANULARITY: f64 = 0.1;

/// Loss at one load.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    /// bit/s on the wire, each way.
    pub(super) rate: f64,
    /// Share of the highest load.
    pub(super) share: f64,
    /// 0 to 1.
    pub(super) loss: f64,
    pub(super) counts: Counts,
}

/// Measures the curve; what is complete is kept. Loads that the tester cannot keep are left out.
pub(super) fn measure(
    session: &mut Session<'_>,
    sizes: Sizes,
    top: f64,
    into: &mut Vec<Point>,
) -> Result<(), Failure> {
    let seconds = session.scenario.trials.seconds;
    let mut curve = LossCurve::new(GRANULARITY);
    while let Some(share) = curve.next() {
        session.bar.set_message(format!("{sizes} B: frame loss at {:.0} %", 100.0 * share));
        let load = session.lasting(sizes, top * share, seconds);
        let outcome = session.trial(&load, 0.0)?;
        if session.is_stopped() {
            break;
        }
        // A load that was not kept is no point of the curve, and the next one is lower.
        let loss = outcome.as_ref().map_or(f64::NAN, super::trial::Outcome::loss);
        curve.tell(share, loss);
        into.extend(outcome.map(|outcome| Point {
            rate: top * share,
            share,
            loss,
            counts: outcome.total(),
        }));
    }
    Ok(())
}
