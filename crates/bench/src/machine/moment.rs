//! The machine at the beginning and at the end of a run: on a virtual machine neighbours come and go.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use doctor::machine::ProcessorTime;
use serde::Serialize;

use super::distance::round_trip;

/// A moment.
#[derive(Debug, Default, Serialize)]
pub(super) struct Moment {
    /// Seconds since 1970.
    time: u64,
    /// TSC cycles in which a cache line goes from the first core to the last and back; nothing where there is one core.
    core_to_core: Option<f64>,
    #[serde(skip)]
    pub(super) cores: [usize; 2],
    #[serde(skip)]
    processors: Option<ProcessorTime>,
}

impl Moment {
    /// Now; with the way from the first core to the last.
    pub(super) fn now(cores: [usize; 2]) -> Self {
        let [first, last] = cores;
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            time: time.map_or(0, |time| time.as_secs()),
            core_to_core: (first != last).then(|| round_trip(cores).ok()).flatten(),
            cores,
            processors: ProcessorTime::read(Path::new("/")).ok(),
        }
    }

    /// The share of all cores' time that the host took between two moments: 0 to 1.
    pub(super) fn stolen_until(&self, later: &Self) -> Option<f64> {
        Some(later.processors?.since(self.processors?).stolen_share())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_took_what_passed_between() {
        let at = |all, stolen| Moment {
            processors: Some(ProcessorTime { all, stolen }),
            ..Moment::default()
        };
        assert_eq!(at(100, 10).stolen_until(&at(200, 35)), Some(0.25));
        assert_eq!(Moment::default().stolen_until(&at(1, 1)), None);
        let cores = super::super::outermost();
        let now = Moment::now(cores);
        assert!(now.time > 1_600_000_000 && now.processors.is_some());
        assert_eq!(now.core_to_core.is_some(), cores[0] != cores[1]);
    }
}
