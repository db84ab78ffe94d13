//! A measured quantity, its yardstick and its goal.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::samples::Samples;

/// One measured quantity.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    /// What was measured: results of two runs with the same name, parameters and unit are compared.
    pub(crate) parameters: Map<String, Value>,
    /// What was seen besides; it differs from run to run.
    pub(crate) observed: Map<String, Value>,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) samples: Samples,
    pub(crate) yardstick: Option<String>,
    pub(crate) yardstick_value: Option<f64>,
    /// Ours to the yardstick's; above 1 is better for ours, whatever the unit.
    pub(crate) ratio: Option<f64>,
    /// The value that the project wants.
    #[serde(serialize_with = "as_object")]
    pub(crate) goal: Option<(f64, Better)>,
}

/// Which direction is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Better {
    Less,
    More,
}

fn as_object<S: Serializer>(goal: &Option<(f64, Better)>, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Goal {
        value: f64,
        better: Better,
    }
    goal.map(|(value, better)| Goal { value, better }).serialize(to)
}

fn owned(pairs: &[(&str, Value)]) -> impl Iterator<Item = (String, Value)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone()))
}

impl Outcome {
    /// A quantity whose value is the median of its samples, with nothing to compare to.
    pub(crate) fn new(name: &str, unit: &'static str, samples: Samples) -> Self {
        Self {
            name: name.into(),
            parameters: Map::new(),
            observed: Map::new(),
            value: samples.median(),
            unit,
            samples,
            yardstick: None,
            yardstick_value: None,
            ratio: None,
            goal: None,
        }
    }

    pub(crate) fn with(mut self, parameters: &[(&str, Value)]) -> Self {
        self.parameters.extend(owned(parameters));
        self
    }

    pub(crate) fn seeing(mut self, observed: &[(&str, Value)]) -> Self {
        self.observed.extend(owned(observed));
        self
    }

    pub(crate) fn against(mut self, yardstick: &str, value: f64, better: Better) -> Self {
        self.compare(yardstick, value, better);
        self
    }

    /// Sets the yardstick and the ratio.
    pub(crate) fn compare(&mut self, yardstick: &str, value: f64, better: Better) {
        self.yardstick = Some(yardstick.into());
        self.yardstick_value = Some(value);
        let ratio = match better {
            Better::Less => value / self.value,
            Better::More => self.value / value,
        };
        self.ratio = ratio.is_finite().then_some(ratio);
    }

    /// The same with a yardstick that was measured in the same rounds: the ratio is that of the rounds.
    pub(crate) fn beside(mut self, yardstick: &str, its: &Samples, better: Better) -> Self {
        let ratios = match better {
            Better::Less => its.ratios(&self.samples),
            Better::More => self.samples.ratios(its),
        };
        self.compare(yardstick, its.median(), better);
        self.ratio = Some(ratios.median()).filter(|ratio| ratio.is_finite());
        self
    }

    /// Whether the goal is met, if there is one.
    pub(crate) fn meets_goal(&self) -> Option<bool> {
        self.goal.map(|(limit, better)| match better {
            Better::Less => self.value <= limit,
            Better::More => self.value >= limit,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_on_its_side() {
        let mut outcome = Outcome::new("memory", "bytes", Samples(vec![1.0]));
        assert_eq!(outcome.meets_goal(), None);
        outcome.goal = Some((0.5, Better::Less));
        assert_eq!(outcome.meets_goal(), Some(false));
        outcome.goal = Some((0.5, Better::More));
        assert_eq!(outcome.meets_goal(), Some(true));
    }

    #[test]
    fn the_ratio_is_that_of_the_rounds() {
        let its = Samples(vec![1.0, 10.0, 100.0]);
        let of = |better| {
            let ours = Samples(vec![2.0, 20.0, 1.0]);
            Outcome::new("x", "1/s", ours).beside("y", &its, better)
        };
        assert_eq!(of(Better::More).ratio, Some(2.0));
        assert_eq!(of(Better::Less).ratio, Some(0.5));
        assert_eq!(of(Better::Less).yardstick_value, Some(10.0));
    }
}
