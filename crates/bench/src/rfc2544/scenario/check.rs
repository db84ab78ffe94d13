//! Whether a scenario can be measured.

use super::model::{Device, Forwarding, Scenario, Test, VaryWord};
use super::wrong::Wrong;

/// Most flows each way: those of the carriers' white paper.
const MOST_FLOWS: u32 = 16_777_216;
/// Longest trial: s.
const LONGEST_TRIAL: f64 = 86_400.0;

impl Scenario {
    /// Whether it can be measured.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let Self { frames, flows, trials, .. } = self;
        for (key, empty) in [
            ("trials.tests", trials.tests.is_empty()),
            ("trials.latency-loads", trials.latency_loads.is_empty()),
        ] {
            if empty {
                return Err(Wrong::Empty(key));
            }
        }
        let share = |key, value| (key, value, 0.001, 1.0);
        let bounds = [
            ("frames.vlan", f64::from(frames.vlan.unwrap_or(1)), 1.0, 4094.0),
            ("flows.count", f64::from(flows.count), 1.0, f64::from(MOST_FLOWS)),
            ("trials.seconds", trials.seconds, 0.1, LONGEST_TRIAL),
            ("trials.settle", trials.settle, 0.0, 600.0),
            ("trials.line-rate", trials.line_rate.unwrap_or(1.0), 0.001, 1000.0),
            ("trials.loss", trials.loss, 0.0, 0.5),
            ("trials.resolution", trials.resolution, 0.0001, 0.5),
            ("trials.latency-seconds", trials.latency_seconds, 0.1, LONGEST_TRIAL),
            ("trials.latency-trials", f64::from(trials.latency_trials), 1.0, 1000.0),
            ("trials.burst-searches", f64::from(trials.burst_searches), 1.0, 1000.0),
            ("trials.burst-seconds", trials.burst_seconds, 0.001, 60.0),
        ];
        let loads = trials.latency_loads.iter().map(|load| share("trials.latency-loads", *load));
        for (key, value, least, most) in bounds.into_iter().chain(loads) {
            // A number that is none is out of all bounds.
            if !(least..=most).contains(&value) {
                return Err(Wrong::Bounds { key, value, least, most });
            }
        }
        if frames.sizes()?.is_empty() {
            return Err(Wrong::Empty("frames.sizes"));
        }
        let by_flow =
            matches!(self.device, Device::Millraced { forwarding: Forwarding::FlowTable, .. });
        if let Device::Millraced { routes: Some(routes), .. } = self.device {
            let most = self.most_routes();
            if !routes.is_power_of_two() || routes > most {
                return Err(Wrong::Routes { routes, most });
            }
        }
        if by_flow && frames.vlan.is_some() {
            return Err(Wrong::FlowVlan);
        }
        if flows.vary == VaryWord::Ports && flows.count > 1 << 16 {
            return Err(Wrong::Ports { count: flows.count });
        }
        if trials.tests.contains(&Test::Latency) && !trials.tests.contains(&Test::Throughput) {
            return Err(Wrong::NoThroughput);
        }
        Ok(())
    }
}
