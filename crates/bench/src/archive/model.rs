//! What a file of results holds. Fields that it lacks are empty, and those that nobody knows are passed over, so that files of
//! other versions can be read.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::text::{flatten, printable};
use crate::results::Better;

/// One run: one file.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Run {
    /// Where it was read from.
    #[serde(skip)]
    pub(crate) path: PathBuf,
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
    #[serde(default)]
    pub(crate) observed: Map<String, Value>,
    pub(crate) value: Option<f64>,
    #[serde(default)]
    pub(crate) unit: String,
    #[serde(default, deserialize_with = "numbers")]
    pub(crate) samples: Vec<f64>,
    pub(crate) yardstick: Option<String>,
    pub(crate) yardstick_value: Option<f64>,
    pub(crate) ratio: Option<f64>,
    pub(crate) goal: Option<Goal>,
}

/// What the project wants of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(crate) struct Goal {
    pub(crate) value: f64,
    pub(crate) better: Better,
}

/// JSON has no NaN: what could not be measured is written as null.
fn numbers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    Ok(Vec::<Option<f64>>::deserialize(from)?.into_iter().flatten().collect())
}

impl Run {
    /// A text of the environment, such as the kernel's release.
    pub(crate) fn told(&self, name: &str) -> Option<String> {
        let text = self.environment.get(name).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(printable)
    }

    /// The processor's name.
    pub(crate) fn cpu(&self) -> String {
        self.told("cpu").unwrap_or_else(|| "unknown CPU".into())
    }

    /// The machine as far as the file tells: figures of one are compared as they are, those of two only by their yardsticks.
    pub(crate) fn machine(&self) -> String {
        match self.environment.get("cores").and_then(Value::as_u64) {
            Some(1) => format!("{}, 1 core", self.cpu()),
            Some(cores) => format!("{}, {cores} cores", self.cpu()),
            None => self.cpu(),
        }
    }

    /// What made it: the command's name, or that of its file.
    pub(crate) fn command(&self) -> String {
        let line = self.environment.get("command").and_then(Value::as_str).unwrap_or_default();
        let name = line.split_whitespace().next().map(str::to_owned);
        let file = || self.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        printable(&name.or_else(file).unwrap_or_default())
    }

    /// What disturbed it, in words, with its file's name; `None` if nothing did.
    pub(crate) fn disturbed(&self) -> Option<String> {
        let words = self.environment.get("disturbed")?.as_array()?;
        let words: Vec<String> = words.iter().filter_map(Value::as_str).map(printable).collect();
        let file = self.path.file_name().map(|name| printable(&name.to_string_lossy()));
        (!words.is_empty())
            .then(|| format!("{} was disturbed: {}", file.unwrap_or_default(), words.join("; ")))
    }

    /// Everything that is known of the environment: names and values.
    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        flatten(&self.environment)
    }
}

impl Entry {
    /// Its samples, or its value where there are none.
    pub(crate) fn samples(&self) -> Vec<f64> {
        if self.samples.is_empty() {
            self.value.into_iter().collect()
        } else {
            self.samples.clone()
        }
    }

    /// Whether what was measured can do more, perhaps: the load was the highest that tester or line had, or the search was cut short.
    pub(crate) fn is_least(&self) -> bool {
        let is = |name: &str| self.observed.get(name).and_then(Value::as_bool) == Some(true);
        let share = self.observed.get("share_of_top").and_then(Value::as_f64);
        // Loads are computed from their steps.
        is("by_tester") || is("cut_short") || share.is_some_and(|share| share > 1.0 - 1e-9)
    }

    /// Names and values of its parameters, in the order of their names. Lists and objects describe no case.
    pub(crate) fn parameters(&self) -> Vec<(String, String)> {
        let parameters = self.parameters.iter();
        let plain = parameters.filter(|(_, value)| !value.is_array() && !value.is_object());
        flatten(&plain.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// What its case was, without its name: `flows 1, routes 2`.
    pub(crate) fn details(&self) -> String {
        let details = self.parameters().into_iter();
        details.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
    }

    /// Its name and case.
    pub(crate) fn title(&self) -> String {
        let (name, details) = (printable(&self.name), self.details());
        if details.is_empty() { name } else { format!("{name} ({details})") }
    }
}
