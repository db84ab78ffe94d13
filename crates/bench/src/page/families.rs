//! Results that differ in one number, such as the frame size, belong into one plot.

use std::collections::BTreeMap;

use super::figures::Figure;
use super::machines::Machine;
use crate::archive::{Cases, Results, Run, printable};

/// Points that a line needs; two say no more than a table.
const POINTS: usize = 3;
/// Lines of a plot at most: more cannot be told apart.
const LINES: usize = 8;
/// Points of a line at most: a plot is as many pixels wide.
const MOST_POINTS: usize = 960;
/// Parameters of a case by which it is drawn; no command has as many.
const PARAMETERS: usize = 32;

/// Results of one name and unit that differ in one number.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Family {
    pub(super) name: String,
    pub(super) unit: String,
    /// What they differ in.
    pub(super) by: String,
    /// What is the same for all lines, as in `flows 10k`.
    pub(super) common: Vec<String>,
    pub(super) lines: Vec<Course>,
    /// Lines that are not shown.
    pub(super) left_out: usize,
}

/// One line: everything but that number is the same.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Course {
    /// What tells it from the others.
    pub(super) name: String,
    /// By that number, in ascending order.
    pub(super) points: Vec<Point>,
}

/// One result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point {
    /// The number, and as it was written.
    pub(super) at: f64,
    pub(super) label: String,
    pub(super) value: f64,
    /// The least and the most of its samples.
    pub(super) spread: [f64; 2],
}

/// What tells plots apart: name, unit, and the number's name.
type Key = (String, String, String);
/// Lines by the words that describe them.
type Lines = BTreeMap<Vec<String>, Vec<Point>>;

/// The families among the results of a command, in the order of their names.
pub(super) fn families(runs: &[Run], machines: &[Machine]) -> Vec<Family> {
    let mut plots: BTreeMap<Key, Lines> = BTreeMap::new();
    let cases = Cases::of(runs);
    for (_, results) in cases.iter() {
        for machine in machines {
            if let Some(found) = Figure::of(results, machine) {
                let whose = if machines.len() > 1 { machine.label.as_str() } else { "" };
                sort_in(&mut plots, results, whose, &found);
            }
        }
    }
    let families = plots.into_iter().filter_map(|((name, unit, by), lines)| {
        let lines = lines.into_iter().filter_map(drawable);
        let (words, mut points): (Vec<Vec<String>>, Vec<Vec<Point>>) = lines.unzip();
        let left_out = points.len().saturating_sub(LINES);
        points.truncate(LINES);
        let (common, names) = apart(&words);
        let lines = names.into_iter().zip(points);
        let lines: Vec<Course> = lines.map(|(name, points)| Course { name, points }).collect();
        (!lines.is_empty()).then_some(Family { name, unit, by, common, lines, left_out })
    });
    families.collect()
}

/// The words that all lines have in common, and of each the others: its name.
pub(super) fn apart(lines: &[Vec<String>]) -> (Vec<String>, Vec<String>) {
    let everywhere = |word: &&String| lines.iter().all(|words| words.contains(word));
    let common: Vec<String> = lines.iter().take(1).flatten().filter(everywhere).cloned().collect();
    let name = |words: &Vec<String>| {
        let own = words.iter().filter(|word| !common.contains(word)).cloned();
        let own: Vec<String> = own.collect();
        if own.is_empty() { "measured".to_owned() } else { own.join(", ") }
    };
    let names = lines.iter().map(name).collect();
    (common, names)
}

/// Puts a figure, and its yardstick's, into every plot by one of its numbers.
fn sort_in(plots: &mut BTreeMap<Key, Lines>, results: &Results<'_>, whose: &str, found: &Figure) {
    let Some((_, entry)) = results.first() else { return };
    let parameters = entry.parameters();
    for (place, (by, label)) in parameters.iter().enumerate().take(PARAMETERS) {
        let Some(at) = number(label) else { continue };
        let others = parameters.iter().enumerate().filter(|(other, _)| *other != place);
        let mut words: Vec<String> =
            others.map(|(_, (name, value))| format!("{name} {value}")).collect();
        words.extend((!whose.is_empty()).then(|| whose.to_owned()));
        let key = (printable(&entry.name), printable(&entry.unit), by.clone());
        let lines = plots.entry(key).or_default();
        let mut add = |who: Option<&str>, value: f64, spread: [f64; 2]| {
            let name = who.into_iter().map(str::to_owned).chain(words.iter().cloned());
            let point = Point { at, label: label.clone(), value, spread };
            let line = lines.entry(name.collect()).or_default();
            // A result that stands beside several yardsticks is one point.
            if line.len() < MOST_POINTS && !line.iter().any(|other| other.at == at) {
                line.push(point);
            }
        };
        add(None, found.value, [found.least, found.most]);
        if let Some((name, value)) = &found.yardstick {
            add(Some(&printable(name)), *value, [*value; 2]);
        }
    }
}

/// A line, if it has enough points that can be drawn.
fn drawable((words, mut points): (Vec<String>, Vec<Point>)) -> Option<(Vec<String>, Vec<Point>)> {
    // Beyond, axes have no digits left.
    let has_digits = |value: f64| value == 0.0 || (1e-9..1e15).contains(&value);
    points.retain(|point| {
        [point.value, point.spread[0], point.spread[1]].into_iter().all(has_digits)
    });
    points.sort_by(|a, b| a.at.total_cmp(&b.at));
    (points.len() >= POINTS).then_some((words, points))
}

/// The number that a parameter is: 64, or 10k.
fn number(text: &str) -> Option<f64> {
    let (digits, factor) = match text.strip_suffix(['k', 'M']) {
        Some(digits) if text.ends_with('M') => (digits, 1e6),
        Some(digits) => (digits, 1e3),
        None => (text, 1.0),
    };
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit());
    let number: f64 = digits.parse().ok().filter(|_| is_number)?;
    number.is_finite().then_some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::machines::machines;
    use crate::page::tests::run;

    fn of(results: serde_json::Value) -> Vec<Family> {
        let runs = [run("Xeon", results)];
        families(&runs, &machines(&runs))
    }

    #[test]
    fn results_that_differ_in_one_number_are_a_line() {
        let result = |frame: &str, burst: u64, value: u64| {
            serde_json::json!({"name": "one way", "unit": "packets/s", "value": value,
                "parameters": {"frame": frame, "burst": burst}, "yardstick": "memif",
                "yardstick_value": value / 2, "samples": [value - 1, value, value + 1]})
        };
        let all = [
            result("1024", 32, 20),
            result("64", 32, 40),
            result("mix", 32, 50),
            result("256", 32, 30),
            result("64", 1, 10),
        ];
        let families = of(all.to_vec().into());
        let [family] = families.as_slice() else { panic!("{families:?}") };
        assert_eq!((family.name.as_str(), family.by.as_str()), ("one way", "frame"));
        let [ours, memif] = family.lines.as_slice() else { panic!("{family:?}") };
        assert_eq!((ours.name.as_str(), memif.name.as_str()), ("measured", "memif"));
        assert_eq!(family.common, ["burst 32"]);
        let values: Vec<f64> = ours.points.iter().map(|point| point.value).collect();
        assert_eq!(values, [40.0, 30.0, 20.0]);
        assert_eq!(ours.points[0].spread, [39.0, 41.0]);
        let theirs: Vec<f64> = memif.points.iter().map(|point| point.value).collect();
        assert_eq!(theirs, [20.0, 15.0, 10.0]);
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let result = |n: u64, value: f64| serde_json::json!({"name": "x", "unit": "s", "value": value, "parameters": {"n": n}});
        let all = [result(1, 1e300), result(2, -1.0), result(3, 1e-300), result(4, 1.0)];
        assert!(of(all.to_vec().into()).is_empty());
    }

    #[test]
    fn what_nobody_could_see_is_not_drawn() {
        let result = |n: u64| serde_json::json!({"name": "x", "unit": "s", "value": 1, "parameters": {"n": n}});
        let families = of((0..2000).map(result).collect::<Vec<_>>().into());
        assert_eq!(families[0].lines[0].points.len(), MOST_POINTS);
        let names: serde_json::Map<_, _> =
            (0..100).map(|n| (format!("p{n}"), serde_json::json!(1))).collect();
        let by = |name: &str| {
            let result = |n: u64| {
                let mut parameters = names.clone();
                parameters.insert(name.into(), n.into());
                serde_json::json!({"name": "x", "unit": "s", "value": 1, "parameters": parameters})
            };
            of((0..3).map(result).collect::<Vec<_>>().into()).len()
        };
        // In the order of their names the first is looked at, and the last, which differs as well, is not.
        assert_eq!((by("a"), by("z")), (1, 0));
    }

    #[test]
    fn numbers_as_people_write_them() {
        assert_eq!(number("64"), Some(64.0));
        assert_eq!(number("10k"), Some(1e4));
        assert_eq!(number("1M"), Some(1e6));
        for word in ["", "k", "full", "IPv4", "inf", "NaN", "-1", "9".repeat(400).as_str()] {
            assert_eq!(number(word), None, "{word}");
        }
    }
}
