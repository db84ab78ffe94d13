//! What a file of results holds. Fields that it lacks are empty, and those that nobody knows are passed over, so that files of
//! other versions can be read.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::text::{flatten, printable};

/// One run: one file.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Run {
    /// The machine, and what else the figures depend on.
    pub(crate) environment: Map<String, Value>,
    pub(crate) results: Vec<Entry>,
}

/// One measured quantity.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) parameters: Map<String, Value>,
    pub(crate) value: Option<f64>,
    #[serde(default)]
    pub(crate) unit: String,
    #[serde(default, deserialize_with = "numbers")]
    pub(crate) samples: Vec<f64>,
    pub(crate) yardstick: Option<String>,
    pub(crate) yardstick_value: Option<f64>,
    pub(crate) ratio: Option<f64>,
}

/// JSON has no NaN: what could not be measured is written as null.
fn numbers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    Ok(Vec::<Option<f64>>::deserialize(from)?.into_iter().flatten().collect())
}

impl Run {
    /// The processor's name.
    pub(crate) fn cpu(&self) -> String {
        let name = self.environment.get("cpu").and_then(Value::as_str);
        name.filter(|name| !name.is_empty()).map_or_else(|| "unknown CPU".into(), printable)
    }

    /// The machine as far as the file tells: figures of one are compared as they are, those of two only by their yardsticks.
    pub(crate) fn machine(&self) -> String {
        match self.environment.get("cores").and_then(Value::as_u64) {
            Some(1) => format!("{}, 1 core", self.cpu()),
            Some(cores) => format!("{}, {cores} cores", self.cpu()),
            None => self.cpu(),
        }
    }

    /// Everything that is known of the environment: names and values.
    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        flatten(&self.environment)
    }
}

impl Entry {
    /// Its samples, or its value where there are none.
    pub(crate) fn samples(&self) -> Vec<f64> {
        if self.samples.is_empty() { self.value.into_iter().collect() } else { self.samples.clone() }
    }

    /// What its case was, without its name: `flows 1, routes 2`.
    pub(crate) fn details(&self) -> String {
        let details = flatten(&self.parameters);
        let details = details.iter().map(|(name, value)| format!("{name} {value}"));
        details.collect::<Vec<_>>().join(", ")
    }

    /// Its name and case.
    pub(crate) fn title(&self) -> String {
        let (name, details) = (printable(&self.name), self.details());
        if details.is_empty() { name } else { format!("{name} ({details})") }
    }
}
