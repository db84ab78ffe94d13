//! Commands that look at packets.

pub(crate) mod capture;
pub(crate) mod trace;
