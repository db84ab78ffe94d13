//! Whether two groups of samples differ, and by how much.

mod bootstrap;
mod rank;

pub(super) use bootstrap::{Interval, median, ratio_of_medians};
pub(super) use rank::{least_p, mann_whitney};
