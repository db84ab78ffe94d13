//! What the bench compares with: DPDK's own tables, and a packet source that `dpdk-testpmd` and `l3fwd` can
//! use as well.

mod source;
mod tables;

pub use source::{Report, SOURCE_PLUGIN, Template, attach_source, write_templates};
pub use tables::{Fib, HashTable, Lpm, YardstickError};
