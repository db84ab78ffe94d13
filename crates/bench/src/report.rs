//! Results: the one form of JSON that every measurement has, and a table for people.

use std::path::Path;

use comfy_table::{CellAlignment, Table, presets::NOTHING};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::say;
use crate::statistics::Samples;

/// All of one run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) environment: Environment,
    pub(crate) results: Vec<Outcome>,
}

/// One measured quantity.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) parameters: Map<String, Value>,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) samples: Samples,
    pub(crate) yardstick: Option<String>,
    pub(crate) yardstick_value: Option<f64>,
    /// Ours to the yardstick's; above 1 is better for ours, whatever the unit.
    pub(crate) ratio: Option<f64>,
    /// The value that the project wants, for the table.
    #[serde(skip)]
    pub(crate) goal: Option<(f64, Better)>,
}

/// Which direction is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    Less,
    More,
}

impl Outcome {
    /// A quantity whose value is the median of its samples, with nothing to compare to.
    pub(crate) fn new(name: &str, unit: &'static str, samples: Samples) -> Self {
        Self {
            name: name.into(),
            parameters: Map::new(),
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
        let owned = parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        self.parameters.extend(owned);
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

    /// Whether the goal is met, if there is one.
    pub(crate) fn meets_goal(&self) -> Option<bool> {
        self.goal.map(|(limit, better)| match better {
            Better::Less => self.value <= limit,
            Better::More => self.value >= limit,
        })
    }
}

impl Report {
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let failed = |source| Failure::File { path: path.into(), source };
        let file = std::fs::File::create(path).map_err(failed)?;
        Ok(serde_json::to_writer_pretty(file, self)?)
    }
}

/// A table whose first column is text and whose others are numbers.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(header.to_vec());
    table.add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Whether a goal is met, in the words of the table.
pub(crate) fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "not met" }
}

/// Prints results as a table.
pub(crate) fn print(results: &[Outcome]) {
    let header = ["what", "ours", "least", "unit", "yardstick", "its", "ratio", "goal", ""];
    let or = |value: Option<String>| value.unwrap_or_else(|| "-".into());
    let rows = results.iter().map(|outcome| {
        let details = outcome.parameters.iter();
        let details: Vec<_> = details.map(|(name, value)| format!("{name} {value}")).collect();
        let goal = outcome.goal.map(|(limit, better)| {
            let sign = if better == Better::Less { "<=" } else { ">=" };
            format!("{sign} {}", number(limit))
        });
        vec![
            format!("{} ({})", outcome.name, details.join(", ")),
            number(outcome.value),
            number(outcome.samples.min()),
            outcome.unit.to_owned(),
            or(outcome.yardstick.clone()),
            or(outcome.yardstick_value.map(number)),
            or(outcome.ratio.map(|ratio| format!("{ratio:.2}"))),
            or(goal),
            outcome.meets_goal().map_or("", verdict).to_owned(),
        ]
    });
    say!("{}", table(&header, rows.collect()));
}

fn number(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.2}M", v / 1e6),
        v if v >= 1e4 => format!("{:.1}k", v / 1e3),
        v => format!("{v:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_agreed_form() {
        let cycles = Outcome::new("forward", "cycles/packet", Samples(vec![50.0, 40.0, 60.0]))
            .with(&[("flows", 10.into())])
            .against("testpmd io", 25.0, Better::Less);
        let rate =
            Outcome::new("insert", "1/s", Samples(vec![4e6])).against("x", 2e6, Better::More);
        let mut plain = Outcome::new("memory", "bytes", Samples(vec![1.0]));
        assert_eq!(plain.meets_goal(), None);
        plain.goal = Some((0.5, Better::Less));
        assert_eq!(plain.meets_goal(), Some(false));
        plain.goal = Some((0.5, Better::More));
        assert_eq!(plain.meets_goal(), Some(true));
        let environment = Environment::default();
        let report = Report { environment, results: vec![cycles, rate, plain] };
        let json = serde_json::to_value(&report).unwrap();
        let keys =
            |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
        assert_eq!(keys(&json), ["environment", "results"]);
        let first = &json["results"][0];
        let mut form = keys(first);
        form.sort();
        let mut agreed = [
            "name",
            "parameters",
            "value",
            "unit",
            "samples",
            "yardstick",
            "yardstick_value",
            "ratio",
        ];
        agreed.sort_unstable();
        assert_eq!(form, agreed);
        assert_eq!(first["value"], 50.0);
        assert_eq!(first["samples"], serde_json::json!([50.0, 40.0, 60.0]));
        assert_eq!(first["parameters"]["flows"], 10);
        assert_eq!(first["ratio"], 0.5);
        assert_eq!(json["results"][1]["ratio"], 2.0);
        assert_eq!(json["results"][2]["ratio"], Value::Null);
        for key in ["cpu", "tsc_hz", "kernel", "dpdk", "hugepages", "revision"] {
            assert!(json["environment"].get(key).is_some(), "{key}");
        }
    }
}
