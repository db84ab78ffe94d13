//! What tables for people are made of.

use comfy_table::{CellAlignment, Table, presets::NOTHING};

use super::outcome::{Better, Outcome};
use crate::terminal::say;

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
