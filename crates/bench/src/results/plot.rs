//! Plots, as SVG.

use std::path::Path;

use plotters::prelude::*;

use crate::failure::Failure;

/// Pixels of a plot.
const SIZE: (u32, u32) = (960, 420);
/// Of one whose places are rows: its width, what a row takes, and what stands above and below them.
const WIDTH: u32 = 1160;
const ROW: u32 = 20;
const AROUND: u32 = 100;
/// Room for the names of rows: pixels, and characters of 12 pixels' height that fit.
const NAMES: u32 = 580;
const NAME: usize = 90;

/// Of lines, so that neighbours differ and each can be seen on white.
const COLORS: [RGBColor; 8] = [
    RGBColor(200, 30, 60),
    RGBColor(0, 110, 180),
    RGBColor(30, 140, 60),
    RGBColor(220, 120, 0),
    RGBColor(120, 50, 160),
    RGBColor(0, 150, 160),
    RGBColor(120, 80, 40),
    RGBColor(90, 90, 90),
];

/// Whether something was drawn.
type Drawn = Result<(), Box<dyn std::error::Error>>;

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

    /// With smaller values.
    pub(crate) fn divided(mut self, factor: f64) -> Self {
        self.points.iter_mut().for_each(|(_, value)| *value /= factor);
        self.spreads.iter_mut().flat_map(|(_, spread)| spread).for_each(|value| *value /= factor);
        self
    }

    /// With the least and the most of the samples at some of its points.
    pub(crate) fn spread(mut self, spreads: Vec<(f64, [f64; 2])>) -> Self {
        self.spreads = spreads;
        self
    }
}

/// An axis.
pub(crate) struct Axis {
    name: String,
    begin: f64,
    end: f64,
    marks: Marks,
}

/// What stands at an axis.
enum Marks {
    Numbers,
    /// Names of 1, 2, ... on an axis that has no scale.
    Names(Vec<String>),
    /// Places are decimal logarithms.
    Powers,
    /// Places are binary logarithms.
    Factors,
}

impl Axis {
    /// From 0.
    pub(crate) fn up_to(end: f64, name: impl Into<String>) -> Self {
        Self { name: name.into(), begin: 0.0, end, marks: Marks::Numbers }
    }

    /// The places 1, 2, ... have these names.
    pub(crate) fn named(labels: Vec<String>, name: impl Into<String>) -> Self {
        let end = labels.len() as f64 + 0.5;
        Self { name: name.into(), begin: 0.0, end, marks: Marks::Names(labels) }
    }

    /// Whole decades around these numbers, both above 0; points lie at their decimal logarithms.
    pub(crate) fn decades([least, most]: [f64; 2], name: impl Into<String>) -> Self {
        let begin = least.log10().floor();
        let end = most.log10().ceil().max(begin + 1.0);
        Self { name: name.into(), begin, end, marks: Marks::Powers }
    }

    /// From half to double; points lie at their binary logarithms.
    pub(crate) fn factors(name: impl Into<String>) -> Self {
        Self { name: name.into(), begin: -1.0, end: 1.0, marks: Marks::Factors }
    }

    /// How many marks there are; `None`: as many as find room.
    fn count(&self) -> Option<usize> {
        match &self.marks {
            Marks::Numbers => None,
            // One more for 0.
            Marks::Names(names) => Some(names.len() + 1),
            Marks::Powers => Some((self.end - self.begin) as usize + 1),
            Marks::Factors => Some(5),
        }
    }

    fn label(&self, place: f64) -> String {
        let is_whole = (place - place.round()).abs() < 1e-6;
        match &self.marks {
            Marks::Numbers => place.to_string(),
            // Marks between the places have no name.
            Marks::Names(names) => {
                let number = is_whole.then(|| (place.round() as usize).checked_sub(1)).flatten();
                number.and_then(|number| names.get(number)).cloned().unwrap_or_default()
            }
            Marks::Powers if is_whole => 10_f64.powf(place.round()).to_string(),
            Marks::Powers => String::new(),
            Marks::Factors => format!("{:.2}", place.exp2()),
        }
    }
}

/// A drawn picture.
pub(crate) struct Picture {
    name: String,
    /// SVG.
    pub(crate) svg: String,
}

impl Picture {
    /// Writes it into a folder, which is made where there is none.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let failed = |source| Failure::File { path: folder.into(), source };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let file = folder.join(format!("{}.svg", self.name));
        std::fs::write(&file, &self.svg).map_err(|source| Failure::File { path: file, source })
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
        self.picture()?.write(folder)
    }

    /// The picture: lines over the places.
    pub(crate) fn picture(&self) -> Result<Picture, Failure> {
        self.drawn(Self::draw)
    }

    /// The picture turned: the places are rows, the first one on top, with dots in them instead of lines.
    pub(crate) fn rows(&self) -> Result<Picture, Failure> {
        self.drawn(Self::draw_rows)
    }

    fn drawn(&self, draw: fn(&Self, &mut String) -> Drawn) -> Result<Picture, Failure> {
        let mut svg = String::new();
        let drawn = draw(self, &mut svg).map_err(|why| why.to_string());
        drawn.map_err(|why| Failure::Plot { path: self.name.clone().into(), why })?;
        Ok(Picture { name: self.name.clone(), svg })
    }

    fn draw(&self, svg: &mut String) -> Drawn {
        let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 16))
            .margin(12)
            .margin_right(28)
            .x_label_area_size(36)
            .y_label_area_size(64)
            .build_cartesian_2d(
                self.horizontal.begin..self.horizontal.end,
                self.vertical.begin..self.vertical.end,
            )?;
        let label = |place: &f64| self.horizontal.label(*place);
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(&self.horizontal.name).y_desc(&self.vertical.name).max_light_lines(2);
        if let Some(count) = self.horizontal.count() {
            mesh.x_labels(count).x_label_formatter(&label);
        }
        mesh.draw()?;
        for (place, line) in self.lines.iter().enumerate() {
            let color = COLORS[place % COLORS.len()].to_rgba();
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

    fn draw_rows(&self, svg: &mut String) -> Drawn {
        let count = self.horizontal.count().unwrap_or_default();
        let height = AROUND + ROW * count as u32;
        let area = SVGBackend::with_string(svg, (WIDTH, height)).into_drawing_area();
        area.fill(&WHITE)?;
        // The first place is the highest.
        let top = count as f64;
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 16))
            .margin(12)
            .margin_right(28)
            .x_label_area_size(36)
            .y_label_area_size(NAMES)
            .build_cartesian_2d(self.vertical.begin..self.vertical.end, 0.0..top)?;
        let name =
            |row: &f64| -> String { self.horizontal.label(top - row).chars().take(NAME).collect() };
        let label = |value: &f64| self.vertical.label(*value);
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(&self.vertical.name).x_label_formatter(&label).max_light_lines(1);
        if let Some(count) = self.vertical.count() {
            mesh.x_labels(count);
        }
        mesh.y_labels(count + 1).y_label_formatter(&name).draw()?;
        for (number, line) in self.lines.iter().enumerate() {
            let color = COLORS[number % COLORS.len()];
            let points = line.points.iter().map(|(place, value)| (*value, top - place));
            chart
                .draw_series(points.map(|at| Circle::new(at, 4, color.filled())))?
                .label(&line.name)
                .legend(move |at| Circle::new(at, 4, color.filled()));
            let spreads = line.spreads.iter();
            chart.draw_series(spreads.map(|(place, ends)| {
                PathElement::new(ends.map(|end| (end, top - place)), color.stroke_width(2))
            }))?;
        }
        chart.configure_series_labels().background_style(WHITE).border_style(BLACK).draw()?;
        area.present()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_their_marks() {
        let decades = Axis::decades([0.3, 250.0], "us");
        assert_eq!((decades.begin, decades.end, decades.count()), (-1.0, 3.0, Some(5)));
        let labels = [-1.0, 0.0, 0.5, 3.0].map(|place| decades.label(place));
        assert_eq!(labels, ["0.1", "1", "", "1000"]);
        // A single time needs room as well.
        assert_eq!(Axis::decades([1.0, 1.0], "us").end, 1.0);
        let named = Axis::named(vec!["64".into(), "mix".into()], "frame");
        assert_eq!([0.0, 1.0, 1.5, 2.0, 3.0].map(|at| named.label(at)), ["", "64", "", "mix", ""]);
        let factors = Axis::factors("after to before");
        assert_eq!([-1.0, 0.0, 0.5].map(|at| factors.label(at)), ["0.50", "1.00", "1.41"]);
    }

    #[test]
    fn rows_stand_below_each_other_in_their_order() {
        let names: Vec<String> = (1..=40).map(|row| format!("row {row}")).collect();
        let line = Line::new("it", vec![(1.0, 0.25), (40.0, 0.5)]).spread(vec![(1.0, [0.0, 0.5])]);
        let plot = Plot {
            name: "rows".into(),
            title: "title".into(),
            horizontal: Axis::named(names, ""),
            vertical: Axis::factors("factor"),
            lines: vec![line],
        };
        let svg = plot.rows().unwrap().svg;
        let places: Vec<usize> =
            (1..=40).map(|row| svg.find(&format!("\nrow {row}\n")).unwrap()).collect();
        // Names are written from the bottom.
        assert!(places.is_sorted_by(|one, next| one > next), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 3, "two, and one in the legend: {svg}");
        assert!(svg.contains("\n1.41\n") && svg.contains("factor"), "{svg}");
    }
}
