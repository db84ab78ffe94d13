//! Standard output: tables, JSON, text. A reader that goes away is no failure of ours.

use std::io::Write as _;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table as Grid, presets};
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;

/// Writes bytes as they are.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    output.write_all(bytes).and_then(|()| output.flush()).map_err(Failure::Output)
}

/// Writes a text and ends its line.
pub(crate) fn line(text: impl AsRef<str>) -> Result<(), Failure> {
    bytes(format!("{}\n", text.as_ref().trim_end()).as_bytes())
}

/// Writes a value as JSON for people and programs.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| Failure::Print(error.to_string()))?;
    line(text)
}

/// A configuration of the API as the TOML that it is read from. What is not set is null there, and absent in TOML.
pub(crate) fn toml(mut value: Value) -> Result<String, Failure> {
    without_nulls(&mut value);
    toml::to_string_pretty(&value).map_err(|error| Failure::Print(error.to_string()))
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

/// A table without frame: columns of words to the left, of numbers to the right.
pub(crate) struct Table {
    grid: Grid,
    /// Which columns are numbers.
    numbers: Vec<bool>,
}

impl Table {
    /// With these columns; a name that starts with `#` is a column of numbers.
    pub(crate) fn new(columns: &[&str]) -> Self {
        let mut grid = Grid::new();
        grid.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        let numbers: Vec<_> = columns.iter().map(|name| name.starts_with('#')).collect();
        let mut table = Self { grid, numbers };
        let names = columns.iter().map(|name| name.trim_start_matches('#').to_uppercase());
        let header = table.cells(names.collect());
        table.grid.set_header(header);
        table
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        let row = self.cells(cells.into());
        self.grid.add_row(row);
    }

    /// Writes it; `none` in its place when it has no row.
    pub(crate) fn print(mut self, none: &str) -> Result<(), Failure> {
        if self.grid.is_empty() {
            return line(none);
        }
        for (index, column) in self.grid.column_iter_mut().enumerate() {
            column.set_padding((if index == 0 { 0 } else { 2 }, 0));
        }
        let lines: Vec<_> = self.grid.lines().map(|line| line.trim_end().to_owned()).collect();
        line(lines.join("\n"))
    }

    fn cells(&self, texts: Vec<String>) -> Vec<Cell> {
        let align = |(text, number): (String, &bool)| {
            let to = if *number { CellAlignment::Right } else { CellAlignment::Left };
            Cell::new(printable(&text)).set_alignment(to)
        };
        texts.into_iter().zip(&self.numbers).map(align).collect()
    }
}

/// Without what a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A value or a dash.
pub(crate) fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// `yes` or `no`.
pub(crate) fn yes(flag: bool) -> String {
    if flag { "yes" } else { "no" }.to_owned()
}

/// A word of the API, as it stands in JSON.
pub(crate) fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => "-".to_owned(),
    }
}
