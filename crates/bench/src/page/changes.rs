//! What changed since earlier results, with its confidence interval.

use std::fmt::Write as _;

use super::html::escape;
use crate::compare::{Judged, Verdict};

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
