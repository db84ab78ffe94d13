//! The machine at the beginning and at the end of a run: on a virtual machine neighbours come and go.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::distance::round_trip;
use super::disturbance::{Disturbance, Look};

/// A moment.
#[derive(Debug, Default, Serialize)]
pub(super) struct Moment {
    /// Seconds since 1970.
    time: u64,
    /// TSC cycles in which a cache line goes from the first core to the last and back; nothing where there is one core.
    pub(super) core_to_core: Option<f64>,
    #[serde(skip)]
    pub(super) cores: [usize; 2],
    #[serde(skip)]
    look: Option<Look>,
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
            look: Some(Look::now()),
        }
    }

    /// What others did between two moments.
    pub(super) fn disturbance_until(&self, later: &Self) -> Option<Disturbance> {
        Some(later.look?.after(&self.look?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_the_time_and_the_way_between_the_cores() {
        let cores = super::super::outermost();
        let now = Moment::now(cores);
        assert!(now.time > 1_600_000_000);
        assert_eq!(now.core_to_core.is_some(), cores[0] != cores[1]);
        assert!(now.disturbance_until(&Moment::now(cores)).is_some());
        assert_eq!(Moment::default().disturbance_until(&now), None);
    }
}
