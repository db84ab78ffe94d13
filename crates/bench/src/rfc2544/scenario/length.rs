//! How long a scenario takes.

use measure::search::{Grid, Throughput};

use super::model::{Scenario, Test, Trials};

/// Trials of a search for the longest burst: as many as a million frames have binary digits.
const BURST_TRIALS: f64 = 20.0;
/// Loads of a frame loss curve at most.
const LOSS_LOADS: f64 = 10.0;
/// The tester alone, and starting the device: s.
const BEGINNING: f64 = 3.0;

impl Scenario {
    /// How long it takes at most if no trial is repeated, in words.
    pub(in crate::rfc2544) fn length(&self) -> String {
        words(self.seconds())
    }

    /// The same: s.
    pub(in crate::rfc2544) fn seconds(&self) -> f64 {
        let of_a_size: f64 = self.trials.in_order().map(|test| self.trials.seconds_of(test)).sum();
        BEGINNING + self.sizes().len() as f64 * (1.0 + of_a_size)
    }
}

impl Trials {
    /// How long a test of one frame size takes at most if no trial is repeated: s.
    pub(in crate::rfc2544) fn seconds_of(&self, test: Test) -> f64 {
        let trial = self.seconds + self.settle;
        match test {
            Test::Throughput => {
                let steps = Grid::new(1.0, self.resolution).steps();
                let loads = Throughput::new(self.strategy(), steps).left();
                f64::from(loads) * f64::from(self.searches) * trial
            }
            Test::Latency => {
                let trials = self.latency_loads.len() as f64 * f64::from(self.latency_trials);
                trials * self.latency_seconds
            }
            Test::FrameLoss => LOSS_LOADS * trial,
            Test::BackToBack => {
                f64::from(self.burst_searches) * BURST_TRIALS * (self.burst_seconds + self.settle)
            }
        }
    }
}

/// A time: s.
fn words(seconds: f64) -> String {
    match seconds {
        short if short < 100.0 => format!("{short:.0} s"),
        minutes if minutes < 6000.0 => format!("{:.0} min", minutes / 60.0),
        hours => format!("{:.1} h", hours / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(text: &str) -> String {
        let text = format!("title = \"x\"\ndevice = {{ kind = \"none\" }}\n{text}");
        Scenario::parse(&text).unwrap()[0].length()
    }

    #[test]
    fn a_scenario_says_how_long_it_takes() {
        let one = "frames = { sizes = [64] }\n[trials]\nseconds = 10\nsettle = 0\n";
        // Ten steps: the top, and four halves.
        assert_eq!(length(&format!("{one}tests = [\"throughput\"]\nresolution = 0.1")), "54 s");
        let stepwise = "tests = [\"throughput\"]\nresolution = 0.1\nsearch = \"stepwise\"";
        assert_eq!(length(&format!("{one}{stepwise}")), "2 min");
        assert_eq!(length(&format!("{one}tests = [\"frame-loss\"]")), "2 min");
        // All of the standard: ten sizes, seven halves of a hundred steps, and twenty trials of two minutes.
        assert_eq!(length(""), "8.2 h");
    }
}
