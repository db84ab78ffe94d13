//! Tables for people, and results in the form of all measurements.

use super::Measured;
use super::place::Place;
use super::work::Kind;
use crate::results::{Outcome, Samples, table};
use crate::terminal::say;

/// Of a digest's own time, the share that has to show for the processor to be the limit: below it, digests are hidden behind
/// waits for memory.
const SHOWS: f64 = 0.9;

/// Prints the tables.
pub(super) fn print(all: &[Measured], gigabits: f64) {
    let mut header = vec!["where, what, frame B".to_owned()];
    let times = all.first().map(|one| one.rates.iter().map(|(n, _)| *n).collect::<Vec<_>>());
    header.extend(times.unwrap_or_default().iter().map(|n| format!("n = {n}")));
    let rows = all.iter().map(|one| {
        let mut row = vec![format!("{}, {}, {}", one.place, one.kind, one.frame)];
        row.extend(one.rates.iter().map(|(_, rates)| format!("{:.3}", rates.median() / 1e6)));
        row
    });
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    say!("Mpps with n pieces of work for each packet:\n{}", table(&header, rows.collect()));
    let rows = all.iter().map(|one| {
        vec![
            format!("{}, {}, {}", one.place, one.kind, one.frame),
            format!("{:.3}", one.rate / 1e6),
            one.largest.map_or_else(|| "not even forwarding".into(), |n| n.to_string()),
            format!("{:.0}", one.alone),
            one.cost().map_or_else(|| "-".into(), |cost| format!("{cost:.0}")),
        ]
    });
    let header = ["where, what, frame B", "Mpps", "largest n", "cycles alone", "cycles added"];
    say!("without loss at {gigabits} Gbit/s:\n{}", table(&header, rows.collect()));
    for place in Place::ALL {
        if let Some(limit) = limit(all, place) {
            say!("the limit in the {place}: {limit}");
        }
    }
}

/// What limits a place: the processor, if a digest costs what it costs by itself; else memory, behind whose waits it hides.
fn limit(all: &[Measured], place: Place) -> Option<&'static str> {
    let digests = all.iter().filter(|one| one.place == place && one.kind == Kind::Digest);
    let shares: Vec<f64> = digests.filter_map(|one| Some(one.cost()? / one.alone)).collect();
    let shares = Samples(shares);
    shares.median().is_finite().then(|| if shares.median() >= SHOWS { "CPU" } else { "memory" })
}

/// The results.
pub(super) fn outcomes(all: &[Measured], gigabits: f64) -> Vec<Outcome> {
    let mut results = Vec::new();
    for one in all {
        let of = |name: &str, unit, samples| {
            Outcome::new(name, unit, samples).with(&[
                ("place", one.place.to_string().into()),
                ("work", one.kind.to_string().into()),
                ("frame", one.frame.into()),
            ])
        };
        for (n, rates) in &one.rates {
            results
                .push(of("capacity rate", "packets/s", rates.clone()).with(&[("n", (*n).into())]));
        }
        let largest = one.largest.map(f64::from).into_iter().collect();
        let largest = of("capacity", "pieces of work/packet", Samples(largest));
        let limit = limit(all, one.place).unwrap_or("unknown");
        let largest = largest.with(&[("gigabits", gigabits.into())]);
        results.push(largest.seeing(&[("limit", limit.into())]));
    }
    results
}
