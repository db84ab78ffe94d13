//! Packet functions from shared objects (`crates/function`), as functions of the graph.

mod instance;
mod object;

pub use instance::Instance;
pub use object::{LoadError, Object};
