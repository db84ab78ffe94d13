//! What a host could do better for a data plane, and where ports, queues and workers belong on it.
//!
//! [`Machine::read`] reads facts below a root, so that copies of `/proc` and `/sys` do as well as the real ones;
//! [`checks::all`] judges them and changes nothing.
//!
//! | module | job |
//! | --- | --- |
//! | [`machine`] | what `/proc` and `/sys` tell, with a reason for each thing that they do not |
//! | [`setup`] | what the data plane is to do: worker cores, ports, buffers |
//! | [`checks`] | one file per group of checks: pure functions of the two |
//! | [`finding`] | what is, what would be better, why, and how |
//! | `parameters` | one kernel command line out of many remedies |
//! | [`change`] | changes that can be undone |
//! | [`apply`] | making them, and the script that undoes them |
//! | [`plan`](mod@plan) | which cores get a worker, and which of them polls which queue |
//! | [`cores`] | sets of cores |
//! | [`root`] | bounded reads |
#![forbid(unsafe_code)]

pub mod apply;
pub mod change;
pub mod checks;
pub mod cores;
pub mod finding;
pub mod machine;
mod parameters;
pub mod plan;
pub mod root;
pub mod setup;

pub use change::Change;
pub use cores::CoreSet;
pub use finding::{Finding, Group, Remedy, State};
pub use machine::Machine;
pub use parameters::kernel_parameters;
pub use setup::Setup;
