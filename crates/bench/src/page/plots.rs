//! Plots of families, and of latencies.

use super::families::{Course, Family, apart};
use super::machines::Machine;
use crate::archive::{Entry, Run};
use crate::results::{Axis, LATENCY_DISTRIBUTION, Line, Plot};

/// Rates of Ethernet links: Gbit/s.
const LINKS: [f64; 7] = [1.0, 10.0, 25.0, 40.0, 100.0, 200.0, 400.0];
/// Preamble, start delimiter and the gap between frames (IEEE 802.3): bytes.
const BETWEEN_FRAMES: f64 = 20.0;
/// The latencies of so many runs fit into one plot.
const CURVES: usize = 8;

/// All plots of a command.
pub(super) fn plots(
    command: &str,
    runs: &[Run],
    machines: &[Machine],
    families: &[Family],
) -> Vec<Plot> {
    // Of a distribution, the curve says something, and how many frames it is of, nothing.
    let drawn = families.iter().filter(|family| family.name != LATENCY_DISTRIBUTION);
    let mut plots: Vec<Plot> = drawn.map(|family| of_family(command, family)).collect();
    plots.extend(latencies(command, runs, machines));
    plots
}

fn of_family(command: &str, family: &Family) -> Plot {
    let Family { name, unit, by, common, lines, left_out } = family;
    // Places are named by their numbers, evenly spaced: 64, 128, ... 1518, or 1, 10k, 1M.
    let mut places: Vec<(f64, String)> = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|point| (point.at, point.label.clone())))
        .collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    places.dedup_by(|a, b| a.0 == b.0);
    let at = |number: f64| places.iter().position(|(other, _)| *other == number);
    let at = |number: f64| at(number).map_or(0.0, |place| place as f64 + 1.0);
    let is_rate = unit == "frames/s" && by == "frame";
    let link = is_rate.then(|| link(lines, &places)).flatten();
    let most = lines.iter().flat_map(|line| &line.points).map(|point| point.spread[1]);
    let most = most.fold(link.as_ref().map_or(0.0, Line::top), f64::max);
    let (factor, prefix) = scale(most);
    let mut drawn: Vec<Line> = lines
        .iter()
        .map(|line| {
            let point = |value: f64| value / factor;
            let points = line.points.iter();
            let spreads = points.clone().map(|one| (at(one.at), one.spread.map(point)));
            Line::new(&line.name, points.map(|one| (at(one.at), point(one.value))).collect())
                .spread(spreads.collect())
        })
        .collect();
    drawn.extend(link.map(|line| line.divided(factor)));
    let top = drawn.iter().map(Line::top).fold(0.0, f64::max);
    let more = if *left_out > 0 { format!(" ({left_out} more lines)") } else { String::new() };
    Plot {
        name: file(&[command, name, unit, by]),
        title: format!("{name} by {by}{}{more}", in_brackets(common)),
        horizontal: Axis::named(places.into_iter().map(|(_, label)| label).collect(), by),
        vertical: Axis::up_to(if top > 0.0 { top * 1.1 } else { 1.0 }, format!("{prefix}{unit}")),
        lines: drawn,
    }
}

/// The line rate of the slowest link that carries all that was measured.
fn link(lines: &[Course], places: &[(f64, String)]) -> Option<Line> {
    let rate = |gigabits: f64, frame: f64| gigabits * 1e9 / 8.0 / (frame + BETWEEN_FRAMES);
    let carries = |gigabits: &f64| {
        let mut points = lines.iter().flat_map(|line| &line.points);
        points.all(|point| point.value <= rate(*gigabits, point.at) * 1.001)
    };
    let gigabits = LINKS.into_iter().find(carries)?;
    let points = places.iter().enumerate();
    let points = points.map(|(place, (frame, _))| (place as f64 + 1.0, rate(gigabits, *frame)));
    Some(Line::new(format!("line rate of {gigabits} Gbit/s"), points.collect()))
}

/// A factor and its prefix that leave values of a few digits.
fn scale(most: f64) -> (f64, &'static str) {
    match most {
        most if most >= 2e9 => (1e9, "G "),
        most if most >= 2e6 => (1e6, "M "),
        most if most >= 2e4 => (1e3, "k "),
        _ => (1.0, ""),
    }
}

/// Shares of frames by how long they took, of results that have their distribution.
fn latencies(command: &str, runs: &[Run], machines: &[Machine]) -> Option<Plot> {
    let entries = runs.iter().flat_map(|run| run.results.iter().map(move |entry| (run, entry)));
    let curves = entries.filter_map(|(run, entry)| Some((run, entry, curve(entry)?)));
    let curves: Vec<(&Run, &Entry, Curve)> = curves.take(CURVES).collect();
    // Most frames take microseconds, and the slowest a thousand times as long: only logarithms show both.
    let times = || curves.iter().flat_map(|(_, _, curve)| curve).map(|(time, _)| *time);
    let range = [times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max)];
    let words = curves.iter().map(|(run, entry, _)| {
        let parameters = entry.parameters().into_iter();
        let parameters = parameters.map(|(name, value)| format!("{name} {value}"));
        let whose = machines.iter().filter(|machine| machines.len() > 1 && machine.has(run));
        parameters.chain(whose.map(|machine| machine.label.clone())).collect::<Vec<String>>()
    });
    let (common, names) = apart(&words.collect::<Vec<_>>());
    let lines = curves.iter().zip(names).map(|((_, _, curve), name)| {
        let points = thinned(curve.clone()).into_iter();
        Line::new(name, points.map(|(time, share)| (time.log10(), share)).collect())
    });
    (!curves.is_empty()).then(|| Plot {
        name: file(&[command, "latency"]),
        title: format!("latency: share of frames that took no longer{}", in_brackets(&common)),
        horizontal: Axis::decades(range, "us"),
        vertical: Axis::up_to(1.05, "share of frames"),
        lines: lines.collect(),
    })
}

/// What all lines have in common, for a title.
fn in_brackets(words: &[String]) -> String {
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
}

/// A curve without the points that nobody would miss: those less than a thousandth above the one before.
fn thinned(curve: Curve) -> Curve {
    let mut shown = f64::NEG_INFINITY;
    let last = curve.len().saturating_sub(1);
    let points = curve.into_iter().enumerate().filter(|(place, (_, share))| {
        let is_seen = *share - shown >= 1e-3 || *place == last;
        shown = if is_seen { *share } else { shown };
        is_seen
    });
    points.map(|(_, point)| point).collect()
}

/// Times (us) and the shares of frames that took no longer.
type Curve = Vec<(f64, f64)>;

/// The curve of a result that has one.
fn curve(entry: &Entry) -> Option<Curve> {
    let points = entry.observed.get("ns_and_share")?.as_array()?;
    let point = |pair: &serde_json::Value| {
        let (time, share) = (pair.get(0)?.as_f64()? / 1e3, pair.get(1)?.as_f64()?);
        ((1e-3..1e9).contains(&time) && (0.0..=1.0).contains(&share)).then_some((time, share))
    };
    let points: Curve = points.iter().filter_map(point).collect();
    (!points.is_empty()).then_some(points)
}

/// A file name of these words.
pub(super) fn file(words: &[&str]) -> String {
    let name = words.join("-");
    let safe = name.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '-' });
    let name: String = safe.take(120).collect();
    name.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-").to_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::families::families;
    use super::super::machines::machines;
    use super::*;
    use crate::page::tests::run;

    fn svg(results: serde_json::Value) -> Vec<String> {
        drawn(&[run("Xeon", results)])
    }

    fn drawn(runs: &[Run]) -> Vec<String> {
        let machines = machines(runs);
        let families = families(runs, &machines);
        let plots = plots("rfc2544", runs, &machines, &families);
        plots.iter().map(|plot| plot.picture().unwrap().svg).collect()
    }

    #[test]
    fn throughput_stands_beside_the_line_rate() {
        let result = |frame: u64, rate: f64| json!({"name": "throughput", "unit": "frames/s", "value": rate, "parameters": {"frame": frame}});
        let plots = svg(json!([result(64, 14.88e6), result(512, 2.34e6), result(1518, 0.81e6)]));
        let [plot] = plots.as_slice() else { panic!("{}", plots.len()) };
        // The unit is that of the highest line, also where it is the link's.
        let slow = svg(json!([result(64, 0.3e6), result(512, 0.2e6), result(1518, 0.1e6)]));
        assert!(slow[0].contains("M frames/s") && !slow[0].contains("k frames/s"), "{}", slow[0]);
        for word in
            ["line rate of 10 Gbit/s", "throughput by frame", "M frames/s", "1518", "measured"]
        {
            assert!(plot.contains(word), "{word}: {plot}");
        }
    }

    #[test]
    fn latencies_are_a_curve() {
        let distribution = json!([[1000, 0.5], [2000, 0.9], [50_000, 1.0]]);
        let of = |frame: u64| {
            json!({"name": "latency distribution", "unit": "frames", "value": 3,
            "parameters": {"frame": frame}, "observed": {"ns_and_share": distribution}})
        };
        let plots = svg(json!([of(64), of(512), of(1518)]));
        assert_eq!(plots.len(), 1, "how many frames there were is no plot");
        assert!(plots[0].contains("share of frames that took no longer"));
        let labels = |plot: &str| {
            let lines: Vec<String> = plot.lines().map(|line| line.trim().to_owned()).collect();
            ["1", "10", "100"].iter().all(|mark| lines.iter().any(|line| line == mark))
        };
        assert!(labels(&plots[0]), "{}", plots[0]);
        let two = drawn(&["Xeon", "EPYC"].map(|cpu| run(cpu, json!([of(64)]))));
        assert!(two[0].contains("Xeon") && two[0].contains("EPYC"), "{}", two[0]);
        let fine = (0..5000).map(|place| (f64::from(place), f64::from(place) / 5000.0));
        let thin = thinned(fine.collect());
        assert!((800..=1001).contains(&thin.len()), "{}", thin.len());
        assert_eq!((thin.first(), thin.last()), (Some(&(0.0, 0.0)), Some(&(4999.0, 0.9998))));
        for broken in [json!(1), json!([]), json!([[1], "x", [null, 1]]), json!([[1e300, 5]])] {
            let plots = svg(json!([{"name": "x", "observed": {"ns_and_share": broken}}]));
            assert!(plots.is_empty(), "{plots:?}");
        }
    }

    #[test]
    fn a_name_of_a_file_leads_nowhere_else() {
        assert_eq!(file(&["queue", "../../etc/x", "packets/s"]), "queue-etc-x-packets-s");
    }

    #[test]
    fn no_name_is_markup() {
        let result = |n: u64| json!({"name": "<script>", "unit": "</svg>", "value": n, "parameters": {"n": n, "<b>": "<i>"}});
        let plots = svg(json!([result(1), result(2), result(3)]));
        assert!(!plots.is_empty());
        for plot in plots {
            assert!(!plot.contains("<script") && !plot.contains("<i>"), "{plot}");
            assert_eq!(plot.matches("</svg>").count(), 1, "{plot}");
        }
    }
}
