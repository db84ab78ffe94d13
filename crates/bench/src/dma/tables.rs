//! Results for people.

use comfy_table::Table;

use super::contest::{COURSES, Contest, combined};
use super::ledger::Crossed;
use super::model::{Direction, Model, Way};
use super::results::Proven;
use super::software::{Lines, Measured};
use super::{LONGEST, SHORTEST};
use crate::results::{Samples, table};

/// What was agreed on, in one line.
pub(super) fn settings(contest: &Contest) -> String {
    let Model { link, way, fetch } = contest.classic;
    let batch = if let Way::Classic { batch } = way { batch } else { 0 };
    format!(
        "payload {} B, read requests {} B, answers {} B, addresses of {} bits; {fetch} descriptors a \
         fetch; written back after {batch}, or self-described\n",
        link.payload,
        link.request,
        link.completion,
        if link.wide { 64 } else { 32 },
    )
}

/// Both ways, and what the second saves.
fn compared(contest: &Contest, of: impl Fn(&Model) -> f64) -> [String; 3] {
    let (classic, own) = (of(&contest.classic), of(&contest.own));
    let saved = (1.0 - own / classic) * 100.0;
    [format!("{classic:.1}"), format!("{own:.1}"), format!("{saved:.1} %")]
}

/// Bytes of a packet, each way: the mean over the sizes.
fn bytes_row(contest: &Contest, direction: Direction, label: &str, sizes: &[u64]) -> Vec<String> {
    let count = sizes.len() as f64;
    let document = |model: &Model| {
        sizes.iter().map(|size| model.document(direction, *size)).sum::<f64>() / count
    };
    let link = |model: &Model| {
        let both = sizes.iter().map(|size| model.bytes(direction, *size));
        both.map(|(up, down)| up + down).sum::<f64>() / count
    };
    let mut row = vec![format!("{} {label}", direction.name())];
    row.extend(compared(contest, document));
    row.extend(compared(contest, link));
    row
}

/// Bytes of a packet for each size, and the mean over all that there are.
pub(super) fn bytes(contest: &Contest, sizes: &[u64]) -> Table {
    let all: Vec<u64> = (SHORTEST..=LONGEST).collect();
    let mut rows = Vec::new();
    for direction in Direction::BOTH {
        let of = |size: &u64| bytes_row(contest, direction, &format!("{size} B"), &[*size]);
        rows.extend(sizes.iter().map(of));
        let label = format!("{SHORTEST} to {LONGEST} B, mean");
        rows.push(bytes_row(contest, direction, &label, &all));
    }
    let header = [
        "bytes/packet",
        "units: written back",
        "self-described",
        "less",
        "link: written back",
        "self-described",
        "less",
    ];
    table(&header, rows)
}

/// Packets/s of each link: M/s, written back and self-described.
pub(super) fn rates(contests: &[Contest], lanes: &[u32], sizes: &[u64]) -> Table {
    let rows = combined(contests, lanes, sizes).map(|(contest, lanes, size)| {
        let generation = contest.own.link.generation.number();
        let mut row = vec![format!("generation {generation} x{lanes}, {size} B")];
        for (_, directions) in COURSES {
            let rate = |model: &Model| model.rate(directions, size, lanes) / 1e6;
            let (classic, own) = (rate(&contest.classic), rate(&contest.own));
            row.extend([format!("{classic:.1}"), format!("{own:.1}")]);
        }
        row
    });
    let courses = COURSES
        .iter()
        .flat_map(|(course, _)| [format!("{course}: written back"), "self-described".to_owned()]);
    let header: Vec<String> = std::iter::once("Mpackets/s".to_owned()).chain(courses).collect();
    table(&header.iter().map(String::as_str).collect::<Vec<_>>(), rows.collect())
}

/// What the soft device counted, beside the model.
pub(super) fn proofs(proofs: &[Proven]) -> Table {
    let mut rows = Vec::new();
    for proven in proofs {
        let (counted, modelled) = (proven.proof.counted.total(), proven.proof.modelled.total());
        let directions = [("up", counted.up, modelled.up), ("down", counted.down, modelled.down)];
        for (towards, counted, modelled) in directions {
            let Crossed { writes, reads, completions, bytes, units } = counted;
            let mut row = vec![format!("{}, {}, {towards}", proven.direction.name(), proven.way)];
            let numbers = [proven.packets, writes, reads, completions, bytes, units];
            row.extend(numbers.map(|number| number.to_string()));
            row.push(modelled.bytes.to_string());
            row.push(if counted == modelled { "equal" } else { "not equal" }.to_owned());
            rows.push(row);
        }
    }
    let header = [
        "soft device",
        "packets",
        "writes",
        "reads",
        "completions",
        "bytes",
        "units of 64 B",
        "modelled bytes",
        "each packet",
    ];
    table(&header, rows)
}

/// What the layouts take between two cores.
pub(super) fn between_cores(measured: &[Measured]) -> Table {
    let hz = dpdk::tsc_hz() as f64;
    let mut rows = Vec::new();
    for Measured { size, layouts } in measured {
        for (layout, cycles) in layouts {
            let Lines { carried, claimed } = Lines::of(*layout, *size);
            let (median, least) = (cycles.median(), cycles.min());
            rows.push(vec![
                format!("{size} B, {}", layout.name()),
                format!("{carried:.2}"),
                format!("{claimed:.2}"),
                format!("{median:.1}"),
                format!("{least:.1}"),
                format!("{:.2}", hz / median / 1e6),
            ]);
        }
    }
    let header =
        ["two cores", "lines carried", "lines claimed", "cycles/packet", "least", "Mpackets/s"];
    table(&header, rows)
}

/// How far apart the cores were meanwhile.
pub(super) fn probes(probes: &Samples) -> String {
    format!(
        "a cache line took {:.0} to {:.0} cycles from core to core and back, {:.0} in the median",
        probes.min(),
        probes.max(),
        probes.median()
    )
}
