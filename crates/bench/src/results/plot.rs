//! Plots, as SVG.

use std::path::Path;

use plotters::prelude::*;

use crate::failure::Failure;

/// Pixels of a plot.
const SIZE: (u32, u32) = (960, 420);

/// One line of a plot.
pub(crate) struct Line {
    name: String,
    points: Vec<(f64, f64)>,
    /// From where to where the samples of a point lie.
    spreads: Vec<(f64, [f64; 2])>,
}

impl Line {
    pub(crate) fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, spreads: Vec::new() }
    }

    /// The highest that it comes.
    pub(crate) fn top(&self) -> f64 {
        let points = self.points.iter().map(|(_, value)| *value);
        points.chain(self.spreads.iter().map(|(_, [_, most])| *most)).fold(0.0, f64::max)
    }

    /// With the least and the most of the samples at some of its points.
    pub(crate) fn spread(mut self, spreads: Vec<(f64, [f64; 2])>) -> Self {
        self.spreads = spreads;
        self
    }
}

/// An axis, which begins at 0.
pub(crate) struct Axis {
    name: String,
    end: f64,
    /// Names of 1, 2, ... on an axis that has no scale.
    labels: Vec<String>,
}

impl Axis {
    pub(crate) fn up_to(end: f64, name: impl Into<String>) -> Self {
        Self { name: name.into(), end, labels: Vec::new() }
    }

    /// The places 1, 2, ... have these names.
    pub(crate) fn named(labels: Vec<String>, name: impl Into<String>) -> Self {
        Self { name: name.into(), end: labels.len() as f64 + 0.5, labels }
    }

    fn label(&self, place: f64) -> String {
        // Marks between the places have no name.
        let is_place = place >= 1.0 && (place - place.round()).abs() < 1e-6;
        let label = is_place.then(|| self.labels.get(place.round() as usize - 1)).flatten();
        label.cloned().unwrap_or_default()
    }
}

/// One picture.
pub(crate) struct Plot {
    /// Of its file.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) horizontal: Axis,
    pub(crate) vertical: Axis,
    pub(crate) lines: Vec<Line>,
}

impl Plot {
    /// Draws it into a folder, which is made where there is none.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let failed = |source| Failure::File { path: folder.into(), source };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let file = folder.join(format!("{}.svg", self.name));
        std::fs::write(&file, self.svg()?).map_err(|source| Failure::File { path: file, source })
    }

    /// The picture.
    pub(crate) fn svg(&self) -> Result<String, Failure> {
        let mut svg = String::new();
        let drawn = self.draw(&mut svg).map_err(|why| why.to_string());
        drawn.map_err(|why| Failure::Plot { path: self.name.clone().into(), why })?;
        Ok(svg)
    }

    fn draw(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 16))
            .margin(12)
            .x_label_area_size(36)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..self.horizontal.end, 0.0..self.vertical.end)?;
        let label = |place: &f64| self.horizontal.label(*place);
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(&self.horizontal.name).y_desc(&self.vertical.name);
        if !self.horizontal.labels.is_empty() {
            // One mark for each place, and for 0.
            mesh.x_labels(self.horizontal.labels.len() + 1).x_label_formatter(&label);
        }
        mesh.draw()?;
        for (place, line) in self.lines.iter().enumerate() {
            let color = Palette99::pick(place).to_rgba();
            chart
                .draw_series(LineSeries::new(line.points.iter().copied(), color.stroke_width(2)))?
                .label(&line.name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2))
                });
            let spreads = line.spreads.iter();
            chart.draw_series(spreads.map(|(place, [least, most])| {
                PathElement::new([(*place, *least), (*place, *most)], color.stroke_width(1))
            }))?;
        }
        chart.configure_series_labels().background_style(WHITE).border_style(BLACK).draw()?;
        area.present()?;
        Ok(())
    }
}
