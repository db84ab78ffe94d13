//! What people see.

use std::collections::BTreeMap;

use super::measured::{Measured, yardstick};
use super::rows::{Row, What};
use crate::machine::Disturbance;
use crate::results::table;
use crate::terminal::say;

/// Says what would be measured, and what cannot be.
pub(super) fn plan(rows: &[Row]) {
    let can = rows.iter().filter_map(|row| {
        let setup = row.setup.as_ref().ok()?;
        Some(vec![row.what.words(), cores(setup.cores), setup.memory.pages.to_string()])
    });
    say!("{}", table(&["what", "cores", "pages"], can.collect()));
    let cannot = rows.iter().filter_map(|row| Some((row, row.setup.as_ref().err()?.as_str())));
    lacks(cannot);
}

/// Whether a row belongs to a table.
type IsPart = fn(&What) -> bool;

/// Prints the tables.
pub(super) fn print(all: &[Measured]) {
    let parts: [(&str, IsPart); 3] = [
        ("threads on cores", |what| matches!(what, What::Cores(_))),
        ("DPDK's memory, all threads on one core", |what| matches!(what, What::Pages(..))),
        ("memory channels, all threads on one core", |what| matches!(what, What::Channels(_))),
    ];
    for (title, is_part) in parts {
        let part = all.iter().filter(|one| is_part(&one.row.what) && one.lack().is_none());
        let rows: Vec<_> = part.filter_map(|one| row(one, all)).collect();
        if !rows.is_empty() {
            let header =
                [title, "cores", "Mpps", "least", "most", "to one core", "lost %", "disturbed"];
            say!("{}", table(&header, rows));
        }
    }
    say!(
        "median of the rounds, least and most; to one core: ratio to all threads on one core in the same rounds; lost: what \
         the next thread could not take; disturbed: rounds in which the host or other programs took time (at most so \
         much of it, and so many cores) or the way between the cores changed, which do not count where there are others"
    );
    channels(all);
    let lacking = all.iter().filter_map(|one| Some((&one.row, one.lack()?)));
    lacks(lacking);
}

fn row(one: &Measured, all: &[Measured]) -> Option<Vec<String>> {
    let (rates, setup) = (one.rates(), one.row.setup.as_ref().ok()?);
    let mpps = |rate: f64| format!("{:.2}", rate / 1e6);
    let ratio = yardstick(all).and_then(|its| one.ratio(its));
    let disturbed = match (one.disturbed(), one.worst()) {
        (0, _) => "-".to_owned(),
        (count, Disturbance { stolen, others }) => {
            let (of, host) = (one.turns.len(), stolen * 100.0);
            format!("{count} of {of} (host {host:.1} %, others {others:.1})")
        }
    };
    Some(vec![
        one.row.what.words(),
        cores(setup.cores),
        mpps(rates.median()),
        mpps(rates.min()),
        mpps(rates.max()),
        ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}")),
        format!("{:.1}", one.lost().median() * 100.0),
        disturbed,
    ])
}

/// Says what `-n` has changed at all.
fn channels(all: &[Measured]) {
    let told = all.iter().filter(|one| matches!(one.row.what, What::Channels(_)));
    let apart: Vec<String> = told
        .filter_map(|one| Some(format!("{}: {} B", one.row.what.words(), one.apart()?)))
        .collect();
    if !apart.is_empty() {
        say!(
            "-n changes no hardware: DPDK only spreads the buffers of a pool over so many channels. From one buffer to the next: {}",
            apart.join(", ")
        );
    }
}

/// `1`, or `1 0 1` for receiver, worker and transmitter.
fn cores(cores: [u16; 3]) -> String {
    match cores {
        [receive, worker, transmit] if receive == worker && worker == transmit => {
            receive.to_string()
        }
        cores => cores.map(|core| core.to_string()).join(" "),
    }
}

/// Lists what this machine cannot do, by the reason.
fn lacks<'a>(rows: impl Iterator<Item = (&'a Row, &'a str)>) {
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (row, why) in rows {
        reasons.entry(why).or_default().push(row.what.words());
    }
    let count: usize = reasons.values().map(Vec::len).sum();
    if count > 0 {
        say!("this machine cannot run {count} rows:");
    }
    for (why, rows) in reasons {
        say!("{why}:");
        rows.iter().for_each(|row| say!("  {row}"));
    }
}
