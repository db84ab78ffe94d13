//! Words of a foreign file, made fit for a terminal.

use serde_json::{Map, Value};

/// A text without characters that move a terminal's cursor or change its colours.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { '?' } else { char }).collect()
}

/// Names and values in the order of their names; what is nested has its names joined by dots, and a list stands on one line.
pub(crate) fn flatten(map: &Map<String, Value>) -> Vec<(String, String)> {
    let mut flat = Vec::new();
    collect("", map, &mut flat);
    flat.sort();
    flat
}

fn collect(above: &str, map: &Map<String, Value>, flat: &mut Vec<(String, String)>) {
    for (name, value) in map {
        let name = format!("{above}{}", printable(name));
        match value {
            Value::Object(map) => collect(&format!("{name}."), map, flat),
            value => flat.push((name, text(value))),
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::Bool(value) => if *value { "yes" } else { "no" }.into(),
        Value::String(text) => printable(text),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Object(map) => {
            let pairs = flatten(map).into_iter();
            pairs.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(" ")
        }
        Value::Number(number) => number.to_string(),
    }
}
