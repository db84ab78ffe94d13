//! The searches of RFC 2544 26, as state machines: ask for the next trial, tell how it went.
//!
//! Loads are steps of a grid, from 1 to its top, so that two searches can give the same answer to the letter.

pub use burst::{Burst, BurstSummary};
pub use grid::Grid;
pub use loss::LossCurve;
pub use throughput::{Strategy, Throughput};

mod burst;
mod grid;
mod loss;
#[cfg(test)]
mod tests;
mod throughput;
