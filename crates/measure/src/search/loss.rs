//! Frame loss rate (RFC 2544 26.3): loss at the highest load and at ever lower ones.

/// A curve: from the top in even steps down, until two trials in a row have lost nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct LossCurve {
    steps: u32,
    points: Vec<(f64, f64)>,
}

impl LossCurve {
    /// A curve in steps of `granularity` of the highest load: RFC 2544 26.3 wants no more than a tenth.
    #[must_use]
    pub fn new(granularity: f64) -> Self {
        Self { steps: (1.0 / granularity.clamp(0.001, 0.1)).round() as u32, points: Vec::new() }
    }

    /// The next load, as a share of the highest; `None`: the curve is complete.
    #[must_use]
    pub fn next(&self) -> Option<f64> {
        let clean = |points: &[(f64, f64)]| points.iter().all(|(_, loss)| *loss == 0.0);
        if self.points.last_chunk::<2>().is_some_and(|last| clean(last)) {
            return None;
        }
        let left = self.steps.checked_sub(u32::try_from(self.points.len()).ok()?)?;
        (left > 0).then(|| f64::from(left) / f64::from(self.steps))
    }

    /// Tells the loss of the load that was asked for: 0 to 1.
    pub fn tell(&mut self, load: f64, loss: f64) {
        self.points.push((load, loss));
    }

    /// Loads and losses so far, the highest load first.
    #[must_use]
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }
}
