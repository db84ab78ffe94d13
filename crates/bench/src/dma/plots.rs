//! Results as pictures.

use std::path::Path;

use plotters::prelude::*;

use super::contest::{COURSES, Contest};
use super::model::{Direction, Model};
use super::software::Measured;
use super::{LONGEST, SHORTEST};
use crate::failure::Failure;

/// Pixels of a plot.
const SIZE: (u32, u32) = (960, 420);

/// One line of a plot: its name, and its points by packet size.
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
}

/// One picture.
struct Plot {
    /// Of its file.
    name: String,
    title: String,
    /// Of the vertical axis.
    unit: &'static str,
    lines: Vec<Line>,
}

/// A line over all packet sizes.
fn over_sizes(name: String, of: impl Fn(u64) -> f64) -> Line {
    let points = (SHORTEST..=LONGEST).map(|size| (size as f64, of(size))).collect();
    Line { name, points }
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
        Plot {
            name: format!("bytes-{name}"),
            title: format!("{name}: bytes for a packet"),
            unit: "bytes/packet",
            lines: units.into_iter().chain(link).collect(),
        }
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
    Plot {
        name: "saved".into(),
        title: "what self-described packets save, units of 64 B".into(),
        unit: "% less",
        lines: lines.into(),
    }
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
            Plot {
                name: format!("link-{course}-x{lanes}"),
                title: format!("{course} over a link of {lanes} lanes"),
                unit: "Mpackets/s",
                lines: lines.collect(),
            }
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
        Line { name: layout.name(), points: points.collect() }
    });
    Some(Plot {
        name: "two-cores".into(),
        title: "between two cores".into(),
        unit: "Mpackets/s",
        lines: lines.collect(),
    })
}

/// Draws everything into a folder.
pub(super) fn write(
    folder: &Path,
    contests: &[Contest],
    lanes: &[u32],
    measured: &[Measured],
) -> Result<(), Failure> {
    let failed = |source| Failure::File { path: folder.into(), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut plots = rates(contests, lanes);
    if let Some(contest) = contests.first() {
        plots.extend(bytes(contest));
        plots.push(saved(contest));
    }
    plots.extend(between_cores(measured));
    for plot in &plots {
        let file = folder.join(format!("{}.svg", plot.name));
        draw(&file, plot).map_err(|why| Failure::Plot { path: file, why: why.to_string() })?;
    }
    Ok(())
}

fn draw(file: &Path, plot: &Plot) -> Result<(), Box<dyn std::error::Error>> {
    let values = plot.lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
    let top = values.fold(1.0, f64::max) * 1.1;
    let area = SVGBackend::new(file, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(&plot.title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..LONGEST as f64 + 2.0, 0.0..top)?;
    chart.configure_mesh().x_desc("bytes of the packet").y_desc(plot.unit).draw()?;
    for (place, line) in plot.lines.iter().enumerate() {
        let color = Palette99::pick(place).to_rgba();
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), color.stroke_width(2)))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart.configure_series_labels().background_style(WHITE).border_style(BLACK).draw()?;
    area.present()?;
    Ok(())
}
