//! The machine that is measured on: what it is, and its cores.

mod cores;
mod distance;
mod disturbance;
mod environment;
mod moment;
mod settings;

pub(crate) use cores::{cores, on, outermost, pin};
pub(crate) use distance::{round_trip, same_phase};
pub(crate) use disturbance::{Disturbance, Look, Rounds};
pub(crate) use environment::{Environment, Finished};
