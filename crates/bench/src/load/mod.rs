//! The load, the same in each run: routes, addresses, and the packets of the in-memory source.

mod addresses;
mod frames;
mod packets;
mod prefixes;
mod random;

pub(crate) use addresses::Destination;
pub(crate) use frames::Frames;
pub(crate) use packets::Packets;
pub(crate) use prefixes::{Inside, Prefixes, host, sample};
pub(crate) use random::Random;
