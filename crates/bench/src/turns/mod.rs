//! Turns: contestants alternate, so that what disturbs the machine disturbs all alike.

mod calm;
mod rounds;
mod sampling;

pub(crate) use calm::Calm;
pub(crate) use rounds::{Rounds, alternate};
pub(crate) use sampling::Sampling;
