//! Results as pictures.

use std::path::Path;

use super::contest::{COURSES, Contest};
use super::model::{Direction, Model};
use super::software::Measured;
use super::{LONGEST, SHORTEST};
use crate::failure::Failure;
use crate::results::{Axis, Line, Plot};

/// A picture of something by packet size.
fn plot(name: String, title: String, unit: &'static str, lines: Vec<Line>) -> Plot {
    let top = lines.iter().map(Line::top).fold(1.0, f64::max) * 1.1;
    let horizontal = Axis::up_to(LONGEST as f64 + 2.0, "bytes of the packet");
    Plot { name, title, horizontal, vertical: Axis::up_to(top, unit), lines }
}

/// A line over all packet sizes.
fn over_sizes(name: String, of: impl Fn(u64) -> f64) -> Line {
    let points = (SHORTEST..=LONGEST).map(|size| (size as f64, of(size))).collect();
    Line::new(name, points)
}

/// Both ways.
fn both(contest: &Contest) -> [(&'static str, &Model); 2] {
    [("written back", &contest.classic), ("self-described", &contest.own)]
}

/// Bytes of a packet over its size, in units of 64 B and on the link.
fn bytes(contest: &Contest) -> Vec<Plot> {
    let of = |name: &str, direction| {
        let units = both(contest).map(|(way, model)| {
            over_sizes(format!("{way}, units of 64 B"), |size| model.document(direction, size))
        });
        let link = both(contest).map(|(way, model)| {
            over_sizes(format!("{way}, link"), |size| {
                let (up, down) = model.bytes(direction, size);
                up + down
            })
        });
        plot(
            format!("bytes-{name}"),
            format!("{name}: bytes for a packet"),
            "bytes/packet",
            units.into_iter().chain(link).collect(),
        )
    };
    vec![of("receive", Direction::Receive), of("transmit", Direction::Transmit)]
}

/// What the self-described way saves, over the packet size.
fn saved(contest: &Contest) -> Plot {
    let lines = [("receive", Direction::Receive), ("transmit", Direction::Transmit)];
    let lines = lines.map(|(name, direction)| {
        over_sizes(name.to_owned(), |size| {
            let of = |model: &Model| model.document(direction, size);
            (1.0 - of(&contest.own) / of(&contest.classic)) * 100.0
        })
    });
    plot(
        "saved".into(),
        "what self-described packets save, units of 64 B".into(),
        "% less",
        lines.into(),
    )
}

/// Packets/s of each link over the packet size, a plot for each width.
fn rates(contests: &[Contest], lanes: &[u32]) -> Vec<Plot> {
    let of = |lanes: &u32| {
        COURSES.map(|(course, directions)| {
            let lines = contests.iter().flat_map(|contest| {
                let generation = contest.own.link.generation.number();
                both(contest).map(|(way, model)| {
                    let name = format!("generation {generation}, {way}");
                    over_sizes(name, |size| model.rate(directions, size, *lanes) / 1e6)
                })
            });
            plot(
                format!("link-{course}-x{lanes}"),
                format!("{course} over a link of {lanes} lanes"),
                "Mpackets/s",
                lines.collect(),
            )
        })
    };
    lanes.iter().flat_map(of).collect()
}

/// Packets/s between two cores over the packet size.
fn between_cores(measured: &[Measured]) -> Option<Plot> {
    let hz = dpdk::tsc_hz() as f64;
    let layouts = &measured.first()?.layouts;
    let lines = layouts.iter().enumerate().map(|(place, (layout, _))| {
        let points = measured.iter().filter_map(|measured| {
            let (_, cycles) = measured.layouts.get(place)?;
            Some((measured.size as f64, hz / cycles.median() / 1e6))
        });
        Line::new(layout.name(), points.collect())
    });
    Some(plot("two-cores".into(), "between two cores".into(), "Mpackets/s", lines.collect()))
}

/// Draws everything into a folder.
pub(super) fn write(
    folder: &Path,
    contests: &[Contest],
    lanes: &[u32],
    measured: &[Measured],
) -> Result<(), Failure> {
    let mut plots = rates(contests, lanes);
    if let Some(contest) = contests.first() {
        plots.extend(bytes(contest));
        plots.push(saved(contest));
    }
    plots.extend(between_cores(measured));
    plots.iter().try_for_each(|plot| plot.write(folder))
}
