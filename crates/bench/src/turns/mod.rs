//! Turns: contestants alternate, so that what disturbs the machine disturbs all alike.

mod phase;
mod rounds;
mod sampling;

pub(crate) use phase::same_phase;
pub(crate) use rounds::{Rounds, alternate};
pub(crate) use sampling::Sampling;
