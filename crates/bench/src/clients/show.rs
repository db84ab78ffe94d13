//! Results for people and for programs.

use super::Finding;
use super::conduct::Conduct;
use super::turn::Counted;
use crate::results::{Better, Outcome, table, verdict};
use crate::terminal::say;

const HEADER: [&str; 9] = [
    "the client",
    "channels",
    "cycles/packet",
    "times",
    "least",
    "times",
    "us/round",
    "lost",
    "counted for it",
];

/// So many times as long as without a client a packet of everybody else may take, whatever a client does.
const GOAL: f64 = 1.5;

/// Prints everything. `probes`: cycles between the cores, before and after.
pub(super) fn print(findings: &[Finding], probes: [f64; 2]) {
    let alone = alone(findings, Finding::least);
    let rows = findings.iter().map(|finding| row(finding, alone));
    say!("{}", table(&HEADER, rows.collect()));
    say!(
        "cycles/packet: the worker's time for a packet of everybody else, in TSC cycles, median of rounds, and least of all samples; \
         times: to that without a client, median of rounds, and least to least; none: nothing was forwarded for a second; \
         us/round: its time from one look at the port to the next; core to core: {:.0} and {:.0} cycles",
        probes[0],
        probes[1]
    );
    if let Some((most, times)) = worst(findings) {
        let (name, channels, met) = (most.conduct.name(), most.channels, verdict(times <= GOAL));
        let times = number(times);
        say!(
            "most: {times} times ({name}; channels {channels}); goal: at most {GOAL} times: {met}"
        );
    }
}

/// The client that costs most, and how many times.
fn worst(findings: &[Finding]) -> Option<(&Finding, f64)> {
    let clients = findings.iter().filter(|finding| finding.conduct != Conduct::Nobody);
    let times = clients.map(|finding| (finding, finding.ratios.median()));
    times.max_by(|one, other| one.1.total_cmp(&other.1))
}

/// What it is without a client.
fn alone(findings: &[Finding], what: impl Fn(&Finding) -> f64) -> f64 {
    let alone = findings.iter().find(|finding| finding.conduct == Conduct::Nobody);
    alone.map_or(f64::NAN, what)
}

fn row(finding: &Finding, alone: f64) -> Vec<String> {
    vec![
        finding.conduct.name().into(),
        finding.channels.to_string(),
        number(finding.median()),
        number(finding.ratios.median()),
        number(finding.least()),
        number(finding.least() / alone),
        number(finding.of(|turn| turn.round).median()),
        finding.lost().to_string(),
        counted(finding),
    ]
}

/// Infinite where no packet was forwarded.
fn number(value: f64) -> String {
    match value {
        v if v.is_infinite() => "none".into(),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// What was counted for it in all turns.
fn total(finding: &Finding) -> [u64; 7] {
    let mut total = [0; 7];
    for turn in &finding.turns {
        total.iter_mut().zip(turn.counted.0).for_each(|(all, one)| *all += one);
    }
    total
}

fn counted(finding: &Finding) -> String {
    let all = Counted::NAMES.into_iter().zip(total(finding)).filter(|(_, count)| *count > 0);
    all.map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

/// Everything in the form of a report.
pub(super) fn outcomes(findings: &[Finding]) -> Vec<Outcome> {
    let alone = alone(findings, Finding::median);
    findings.iter().map(|finding| outcome(finding, alone)).collect()
}

fn outcome(finding: &Finding, alone: f64) -> Outcome {
    let cycles = finding.of(|turn| turn.cycles);
    let mut outcome = Outcome::new("forward beside a client", "TSC cycles/packet", cycles)
        .with(&[("client", finding.conduct.name().into()), ("channels", finding.channels.into())]);
    outcome = outcome.seeing(&[
        ("lost", finding.lost().into()),
        ("least", finding.least().into()),
        ("done", finding.turns.iter().map(|turn| turn.done).sum::<u64>().into()),
        ("us per round", finding.of(|turn| turn.round).median().into()),
    ]);
    for (name, count) in Counted::NAMES.into_iter().zip(total(finding)) {
        outcome = outcome.seeing(&[(name, count.into())]);
    }
    outcome = outcome.against("no client", alone, Better::Less);
    outcome.ratio = Some(1.0 / finding.ratios.median()).filter(|ratio| ratio.is_finite());
    outcome.goal = (finding.conduct != Conduct::Nobody).then_some((GOAL * alone, Better::Less));
    outcome
}
