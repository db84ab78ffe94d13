//! One kernel command line out of many remedies.

use crate::cores::CoreSet;
use crate::finding::{Finding, Remedy};

/// The parameters that all complaints ask for, each once: `isolcpus=... nohz_full=...`. Empty: none.
#[must_use]
pub fn kernel_parameters(findings: &[Finding]) -> String {
    let mut merged: Vec<(&str, String)> = Vec::new();
    let complaints = findings.iter().filter(|finding| finding.state.is_complaint());
    let texts =
        complaints.flat_map(|finding| &finding.remedies).filter_map(|remedy| match remedy {
            Remedy::KernelParameter(text) => Some(text),
            _ => None,
        });
    for word in texts.flat_map(|text| text.split_whitespace()) {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match merged.iter_mut().find(|(known, _)| *known == key) {
            // Node by node, as in 0:64,1:64.
            Some((_, known)) if key == "hugepages" => *known = format!("{known},{value}"),
            Some((_, known)) => *known = united(known, value),
            None => merged.push((key, value.to_owned())),
        }
    }
    let written = |(key, value): (&str, String)| match value.as_str() {
        "" => key.to_owned(),
        value => format!("{key}={value}"),
    };
    merged.into_iter().map(written).collect::<Vec<_>>().join(" ")
}

/// Two values of one parameter: the flags of the first, and the cores of both.
fn united(one: &str, other: &str) -> String {
    let flags = one.split(',').filter(|part| part.parse::<CoreSet>().is_err());
    let cores = |value: &str| {
        let sets: Vec<CoreSet> = value.split(',').filter_map(|part| part.parse().ok()).collect();
        sets.iter().fold(CoreSet::default(), |all, set| all.with(set))
    };
    let all = cores(one).with(&cores(other)).to_string();
    let parts = flags.chain((!all.is_empty()).then_some(all.as_str()));
    parts.collect::<Vec<_>>().join(",")
}
