//! Scenario files.
//!
//! | file | job |
//! | --- | --- |
//! | `model`, `device` | what a file can say |
//! | `variants` | one file, several scenarios |
//! | `needs` | what the machine must have |
//! | `length` | how long it takes |
//! | `check`, `wrong` | whether it can be measured, and what is wrong with it |

mod check;
mod device;
mod length;
mod model;
mod needs;
#[cfg(test)]
mod tests;
mod variants;
mod wrong;

use std::net::IpAddr;
use std::path::Path;

use measure::load::Sizes;
use serde_json::{Map, Value};

use crate::failure::Failure;
use wrong::Wrong;

pub(super) use device::{Attach, Device, Forwarding, Millraced, NEXT_HOPS};
pub(super) use model::{Scenario, Test};
pub(super) use needs::Machine;

/// What scenarios measure, by their names, for the results: all of their keys.
pub(super) fn configuration(scenarios: &[Scenario]) -> Map<String, Value> {
    let keys = |scenario: &Scenario| serde_json::to_value(scenario).unwrap_or(Value::Null);
    scenarios.iter().map(|scenario| (scenario.name(), keys(scenario))).collect()
}

impl Scenario {
    /// Reads and checks a file: all of its variants.
    pub(super) fn read(path: &Path) -> Result<Vec<Self>, Failure> {
        let failed = |source| Failure::File { path: path.into(), source };
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let wrong = |wrong: Wrong| Failure::Scenario { path: path.into(), why: wrong.to_string() };
        Self::parse(&text).map_err(wrong)
    }

    /// Whether it can be measured on these cores, of which the tester has one, and `far` is on another NUMA node than that. `path`:
    /// the file that it was read from.
    pub(super) fn fits(
        &self,
        path: &Path,
        usable: &[usize],
        far: Option<usize>,
    ) -> Result<(), Failure> {
        let wrong = |wrong: Wrong| Failure::Scenario { path: path.into(), why: wrong.to_string() };
        self.check_cores(usable, far).map_err(wrong)
    }

    /// Whether the device is to be on another NUMA node than the tester.
    pub(super) fn is_far(&self) -> bool {
        self.device.millraced().is_some_and(|daemon| daemon.other_node)
    }

    /// Whether the device shares a core with the tester. `first`: the device's, if it names none.
    pub(super) fn shares(&self, tester: usize, first: usize) -> bool {
        let named = self.device.cores();
        named.iter().any(|(_, core)| *core == tester) || named.is_empty() && first == tester
    }

    fn parse(text: &str) -> Result<Vec<Self>, Wrong> {
        let scenarios = variants::parse(text)?;
        scenarios.iter().try_for_each(Self::check)?;
        Ok(scenarios)
    }

    /// Frame sizes, which were checked when the scenario was read.
    pub(super) fn sizes(&self) -> Vec<Sizes> {
        self.frames.sizes().unwrap_or_default()
    }

    /// Length of the network of each way's flows of an IP version, which differ in the bits behind it.
    pub(super) fn network_length(&self, ipv6: bool) -> u32 {
        let bits = if ipv6 { 128 } else { 32 };
        bits - if self.flows.count > 1 << 16 { 24 } else { 16 }
    }

    /// The most routes that can share it: one for each address, and no more than tables hold.
    fn most_routes(&self) -> u32 {
        if self.flows.count > 1 << 16 { 1 << 20 } else { 1 << 16 }
    }

    /// Title and variant.
    pub(super) fn name(&self) -> String {
        let variant = self.variant.as_ref().map(|variant| format!(", {variant}"));
        let case = self.case.as_ref().map(|case| format!("{case} "));
        format!("{}{}{}", case.unwrap_or_default(), self.title, variant.unwrap_or_default())
    }

    /// Source and destination of each way's flow 0 of an IP version.
    ///
    /// RFC 2544 C.2.2 and RFC 5180 8 have networks for measurements. That of IPv4 holds 65,536 flows each way; more take all of
    /// 10.0.0.0/8 and 11.0.0.0/8, so only inside a test bed.
    pub(super) fn addresses(&self, ipv6: bool) -> [[IpAddr; 2]; 2] {
        let parse = |text: &str| text.parse().unwrap_or(IpAddr::from([0, 0, 0, 0]));
        let [left, right] = match (ipv6, self.flows.count > 1 << 16) {
            (true, _) => ["2001:2::1:0:0", "2001:2:0:8000::1:0:0"],
            (false, false) => ["198.18.0.0", "198.19.0.0"],
            (false, true) => ["10.0.0.0", "11.0.0.0"],
        }
        .map(parse);
        [[left, right], [right, left]]
    }
}
