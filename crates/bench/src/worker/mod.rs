//! A worker that forwards in memory: the whole forwarder on one core, with ports that need no NIC.

mod bed;
mod router;

pub(crate) use bed::{BUFFERS, Bed, EGRESS, Source, begin};
pub(crate) use router::{PORTS, Router, Running, mac};
