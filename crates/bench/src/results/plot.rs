//! Plots, as SVG.

use std::path::Path;

use plotters::prelude::*;

use crate::failure::Failure;

/// Pixels of a plot.
const SIZE: (u32, u32) = (960, 420);

/// One line of a plot.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// An axis, which begins at 0.
pub(crate) struct Axis {
    pub(crate) name: &'static str,
    pub(crate) end: f64,
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
        self.draw(&file).map_err(|why| Failure::Plot { path: file, why: why.to_string() })
    }

    fn draw(&self, file: &Path) -> Result<(), Box<dyn std::error::Error>> {
        let area = SVGBackend::new(file, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(36)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..self.horizontal.end, 0.0..self.vertical.end)?;
        let [across, up] = [self.horizontal.name, self.vertical.name];
        chart.configure_mesh().x_desc(across).y_desc(up).draw()?;
        for (place, line) in self.lines.iter().enumerate() {
            let color = Palette99::pick(place).to_rgba();
            chart
                .draw_series(LineSeries::new(line.points.iter().copied(), color.stroke_width(2)))?
                .label(&line.name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2))
                });
        }
        chart.configure_series_labels().background_style(WHITE).border_style(BLACK).draw()?;
        area.present()?;
        Ok(())
    }
}
