//! Latency (RFC 2544 26.2) and how it varies from frame to frame (RFC 8219 7.3), at shares of the throughput.

use measure::load::Sizes;
use measure::outcome::{Latency, LatencySummary, Variation, VariationSummary};

use super::Session;
use super::trial::Load;
use crate::failure::Failure;

/// The latencies at one load.
#[derive(Debug)]
pub(super) struct Measured {
    /// Share of the throughput.
    pub(super) load: f64,
    /// Of each trial.
    pub(super) trials: Vec<LatencySummary>,
    pub(super) variations: Vec<VariationSummary>,
    /// Of all trials.
    pub(super) all: Latency,
    pub(super) variation: Variation,
}

/// Measures at each of the scenario's loads; what is complete is kept.
pub(super) fn measure(
    session: &mut Session<'_>,
    sizes: Sizes,
    throughput: f64,
    into: &mut Vec<Measured>,
) -> Result<(), Failure> {
    let trials = &session.scenario.trials;
    let (seconds, count) = (trials.latency_seconds, trials.latency_trials);
    if throughput <= 0.0 {
        return Ok(());
    }
    for load in &trials.latency_loads {
        let mut measured = Measured {
            load: *load,
            trials: Vec::new(),
            variations: Vec::new(),
            all: Latency::default(),
            variation: Variation::default(),
        };
        for trial in 1..=count {
            session.bar.set_message(format!(
                "{sizes} B: latency at {:.0} % of the throughput, trial {trial} of {count}",
                100.0 * load
            ));
            let offered = session.lasting(sizes, throughput * load, seconds);
            let offered = Load { variation: true, ..offered };
            // Latencies of a disturbed trial are what they are; a repetition would choose among them.
            let Some(outcome) = session.trial(&offered, 1.0)? else { break };
            measured.trials.extend(outcome.latency.summary());
            measured.variations.extend(outcome.variation.summary());
            measured.all.add(&outcome.latency);
            measured.variation.add(&outcome.variation);
        }
        if !measured.trials.is_empty() {
            into.push(measured);
        }
        if session.is_stopped() {
            break;
        }
    }
    Ok(())
}
