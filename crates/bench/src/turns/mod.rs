//! Turns: contestants alternate, so that what disturbs the machine disturbs all alike.

mod phase;

pub(crate) use phase::{round_trip, same_phase};
