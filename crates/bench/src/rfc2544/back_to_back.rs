//! Back-to-back frames (RFC 2544 26.4, RFC 9004): the longest burst at the highest load of which nothing is lost.

use measure::load::Sizes;
use measure::search::{Burst, BurstSummary};

use super::Session;
use super::trial::Load;
use crate::failure::Failure;

/// Searches. `None`: it was interrupted before the first search was over.
pub(super) fn measure(
    session: &mut Session<'_>,
    sizes: Sizes,
    top: f64,
    throughput: f64,
) -> Result<Option<BurstSummary>, Failure> {
    let trials = &session.scenario.trials;
    let bits = sizes.mean_wire_bits(session.least);
    let longest = (top / bits * trials.burst_seconds).clamp(1.0, f64::from(u32::MAX - 1)) as u32;
    let mut burst = Burst::new(longest, trials.burst_searches);
    let searches = trials.burst_searches;
    while let Some(length) = burst.next() {
        session.bar.set_message(format!(
            "{sizes} B: bursts, search {} of {searches}, {length} frames",
            burst.done() + 1
        ));
        let frames = u64::from(length);
        let load = Load { sizes, rate: top, frames, settle: session.settle, variation: false };
        let outcome = session.trial(&load, 0.0)?;
        if session.is_stopped() {
            break;
        }
        burst.tell(length, outcome.map(|outcome| outcome.loss() == 0.0));
    }
    Ok(burst.summary(throughput / bits, top / bits))
}
