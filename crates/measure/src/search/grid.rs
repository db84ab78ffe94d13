//! Loads that can be asked for.

/// Evenly spaced loads from one step up to `top`, which is the highest and need not be a multiple.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    top: f64,
    steps: u32,
}

impl Grid {
    /// Loads up to `top` in steps of `resolution` of it (0.001: a thousandth), at least one and at most a million steps.
    #[must_use]
    pub fn new(top: f64, resolution: f64) -> Self {
        let steps = (1.0 / resolution.clamp(1e-6, 1.0)).round();
        Self { top, steps: steps as u32 }
    }

    /// The number of steps.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// The load of a step, in the unit of the top.
    #[must_use]
    pub fn load(&self, step: u32) -> f64 {
        self.top * f64::from(step) / f64::from(self.steps)
    }

    /// The loads below the lowest step: as many steps again, at least two, up to that one.
    #[must_use]
    pub fn below(&self) -> Self {
        Self { top: self.load(1), steps: self.steps.max(2) }
    }

    /// The highest step whose load is not above `load`.
    #[must_use]
    pub fn step(&self, load: f64) -> u32 {
        // The sum makes up for the rounding of `load`.
        (load / self.top * f64::from(self.steps) + 1e-6).clamp(0.0, f64::from(self.steps)) as u32
    }
}
