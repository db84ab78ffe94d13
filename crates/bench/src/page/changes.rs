//! What changed since earlier results, with its confidence interval.

use std::fmt::Write as _;

use super::html::escape;
use crate::compare::{Judged, Verdict};
use crate::results::{Axis, Line, Plot};

/// Changes that the plot has room for.
const MOST: usize = 40;

/// What came of a case, in the order of the colours.
const KINDS: [(&str, &[Verdict]); 4] = [
    ("worse", &[Verdict::Worse]),
    ("better", &[Verdict::Better]),
    ("different", &[Verdict::Different]),
    ("no more than noise", &[Verdict::Noise, Verdict::Same, Verdict::Few]),
];

/// The picture of an interval: pixels for a factor of two, up or down, and the height.
const OCTAVE: f64 = 100.0;
const HEIGHT: u32 = 14;

/// A list of all changes; what is no more than noise comes last.
pub(super) fn list(judged: &[Judged]) -> String {
    let mut html = String::from("<ul>\n");
    for judged in judged {
        let class = match judged.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            _ => "other",
        };
        let (interval, line) = (interval(judged), escape(&judged.line()));
        let _ = writeln!(html, "<li class=\"{class}\">{interval}{line}</li>");
    }
    html + "</ul>\n"
}

/// The first of all changes as rows: ratios with their confidence intervals; nothing where no change has a ratio.
pub(super) fn plot(judged: &[Judged]) -> Option<Plot> {
    let drawable = |judged: &Judged| {
        let (ratio, interval) = (judged.ratio?, judged.interval?);
        Some((judged.what.clone(), judged.verdict, ratio, interval))
    };
    let all: Vec<(String, Verdict, f64, [f64; 2])> = judged.iter().filter_map(drawable).collect();
    let shown = &all[..all.len().min(MOST)];
    let at = |ratio: f64| ratio.log2().clamp(-1.0, 1.0);
    let lines = KINDS.map(|(name, verdicts)| {
        let numbered = (1..).map(f64::from).zip(shown);
        let own = numbered.filter(|(_, (_, verdict, ..))| verdicts.contains(verdict));
        let points = own.clone().map(|(row, (_, _, ratio, _))| (row, at(*ratio)));
        let spreads = own.map(|(row, (.., interval))| (row, interval.map(at)));
        Line::new(name, points.collect()).spread(spreads.collect())
    });
    let more = all.len() - shown.len();
    let more = if more > 0 { format!(" ({more} more)") } else { String::new() };
    (!shown.is_empty()).then(|| Plot {
        name: "changes".into(),
        title: format!("what changed, with 95 % confidence intervals{more}"),
        horizontal: Axis::named(shown.iter().map(|(what, ..)| what.clone()).collect(), "case"),
        vertical: Axis::factors("after to before"),
        lines: lines.into(),
    })
}

/// The interval as a bar on a scale from half to double; the mark in the middle is no change.
fn interval(judged: &Judged) -> String {
    let (Some(ratio), Some([low, high])) = (judged.ratio, judged.interval) else {
        return String::new();
    };
    let place = |ratio: f64| (OCTAVE + OCTAVE * ratio.log2()).clamp(0.0, 2.0 * OCTAVE);
    let [ratio, low, high] = [ratio, low, high].map(place);
    let (width, middle) = (2.0 * OCTAVE, HEIGHT / 2);
    format!(
        "<svg width=\"{width}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"95 % confidence interval\">\
         <path d=\"M0 {middle}H{width}M{OCTAVE} 0V{HEIGHT}\" stroke=\"#ccc\"/>\
         <path d=\"M{low:.1} {middle}H{high:.1}\" stroke=\"currentColor\" stroke-width=\"3\"/>\
         <circle cx=\"{ratio:.1}\" cy=\"{middle}\" r=\"4\" fill=\"currentColor\"/></svg> "
    )
}
