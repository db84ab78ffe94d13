//! The load: packets of the in-memory source, their addresses and their sizes.

mod addresses;
mod frames;
mod packets;

pub(crate) use addresses::Destination;
pub(crate) use frames::Frames;
pub(crate) use packets::Packets;
