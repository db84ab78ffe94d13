//! Results for people and for programs.

use super::Findings;
use super::cases::{Case, GOAL};
use super::ours::WakeUps;
use super::pair::Kind;
use super::rounds::{Comparison, Contest};
use crate::results::{Better, Outcome, Samples, table, verdict};
use crate::terminal::say;

/// So many times memif's packets per second are the goal, and so many ns from push to look.
const TIMES: f64 = 2.0;
const WAKE: f64 = 20_000.0;

/// Prints everything.
pub(super) fn print(findings: &Findings) {
    let header = [
        "packets between two processes",
        "Mpps",
        "cycles/packet",
        "memif Mpps",
        "ratio",
        "vhost-user Mpps",
        "ratio",
        "core to core",
    ];
    say!("{}", table(&header, findings.contests.iter().map(row).collect()));
    say!(
        "ratio: median of the pairs of turns in one phase of the machine (in brackets, where some were \
         not); core to core: TSC cycles there and back, least to most"
    );
    for (size, trips) in &findings.trips {
        let (median, late) = (trips.median(), trips.percentile(99.0));
        say!("one packet of {size} B there and back: median {median:.0} ns, p99 {late:.0} ns");
    }
    findings.wake_ups.iter().for_each(print_wake_ups);
    let goal = findings.contests.iter().find(|contest| contest.case == GOAL);
    if let Some(memif) = goal.and_then(|contest| contest.against(0)) {
        let met = verdict(memif.ratio >= TIMES);
        say!("{GOAL}: {:.2} times memif's packets/s; goal {TIMES}: {met}", memif.ratio);
    }
}

fn print_wake_ups(wake_ups: &WakeUps) {
    let WakeUps { pause, samples, slept, bare } = wake_ups;
    let us = |samples: &Samples| {
        let (median, late) = (samples.median() / 1e3, samples.percentile(99.0) / 1e3);
        format!("median {median:.1} us, p99 {late:.1} us")
    };
    say!(
        "wake-up by doorbell, a packet every {pause:?}, {:.0} % found a sleeper: {}; goal {:.0} us: {}; the \
         kernel's wake-up of a thread alone: {}",
        slept * 100.0,
        us(samples),
        WAKE / 1e3,
        verdict(samples.median() <= WAKE),
        us(bare)
    );
}

fn row(contest: &Contest) -> Vec<String> {
    let rate = contest.rates.median();
    let least = contest.probes.min();
    let most = contest.probes.max();
    let mut row = vec![
        contest.case.to_string(),
        format!("{:.2}", rate / 1e6),
        format!("{:.1}", dpdk::tsc_hz() as f64 / rate),
    ];
    for yardstick in 0..Kind::ALL.len() {
        let Some(it) = contest.against(yardstick) else {
            row.extend(["-", "-"].map(String::from));
            continue;
        };
        let missing = it.pairs < contest.rates.0.len();
        let pairs = if missing { format!(" ({})", it.pairs) } else { String::new() };
        row.extend([format!("{:.2}", it.its / 1e6), format!("{:.2}{pairs}", it.ratio)]);
    }
    row.push(format!("{least:.0}-{most:.0}"));
    row
}

/// Everything in the form of a report.
pub(super) fn outcomes(findings: &Findings) -> Vec<Outcome> {
    let mut all: Vec<Outcome> = findings.contests.iter().flat_map(of_contest).collect();
    for (size, trips) in &findings.trips {
        let parameters = [("frame", (*size).into())];
        for (name, value) in [("median", trips.median()), ("p99", trips.percentile(99.0))] {
            let name = format!("round trip of one packet, {name}");
            all.push(Outcome::new(&name, "ns", Samples(vec![value])).with(&parameters));
        }
    }
    all.extend(findings.wake_ups.iter().flat_map(of_wake_ups));
    all
}

fn of_wake_ups(wake_ups: &WakeUps) -> [Outcome; 2] {
    let WakeUps { pause, samples, slept, bare } = wake_ups;
    let parameters = [("every us", (pause.as_micros() as u64).into())];
    let mut median = Outcome::new("wake-up by doorbell", "ns", samples.clone())
        .with(&parameters)
        .seeing(&[("slept", (*slept).into())])
        .against("the kernel's alone", bare.median(), Better::Less);
    median.goal = Some((WAKE, Better::Less));
    let late = Samples(vec![samples.percentile(99.0)]);
    let late = Outcome::new("wake-up by doorbell, p99", "ns", late).with(&parameters).against(
        "the kernel's alone",
        bare.percentile(99.0),
        Better::Less,
    );
    [median, late]
}

fn of_contest(contest: &Contest) -> Vec<Outcome> {
    let rates = |samples: &Samples| named(contest.case, "packets/s", samples.clone());
    let hz = dpdk::tsc_hz() as f64;
    let cycles = Samples(contest.rates.0.iter().map(|rate| hz / rate).collect());
    let cycles = named(contest.case, "TSC cycles/packet", cycles);
    let mut all = vec![cycles.seeing(&[("core to core", contest.probes.median().into())])];
    for (number, kind) in Kind::ALL.into_iter().enumerate() {
        if let Some(it) = contest.against(number) {
            let Comparison { pairs, ours, its, ratio, cores } = it;
            let mut outcome = rates(&ours)
                .seeing(&[("pairs", pairs.into()), ("core to core", cores.into())])
                .against(kind.name(), its, Better::More);
            outcome.ratio = Some(ratio);
            if kind == Kind::Memif && contest.case == GOAL {
                outcome.goal = Some((TIMES * its, Better::More));
            }
            all.push(outcome);
        }
    }
    if all.len() == 1 {
        all.push(rates(&contest.rates));
    }
    all
}

fn named(case: Case, unit: &'static str, samples: Samples) -> Outcome {
    Outcome::new(case.way.name(), unit, samples)
        .with(&[("frame", case.size.into()), ("burst", case.burst.into())])
}
