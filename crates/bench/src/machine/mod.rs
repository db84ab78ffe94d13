//! The machine that is measured on: what it is, and its cores.

mod cores;
mod environment;

pub(crate) use cores::{cores, on, outermost, pin};
pub(crate) use environment::Environment;
