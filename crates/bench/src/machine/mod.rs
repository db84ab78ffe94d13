//! The machine that is measured on: what it is, and its cores.

mod cores;
mod distance;
mod environment;
mod moment;
mod settings;

pub(crate) use cores::{cores, on, outermost, pin};
pub(crate) use distance::round_trip;
pub(crate) use environment::{Environment, Finished};
