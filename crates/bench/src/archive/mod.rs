//! Results of earlier runs, read back from their JSON.

mod cases;
mod kept;
mod load;
mod model;
mod quantity;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use cases::{Case, Cases, Results};
pub(crate) use kept::{kept, two_newest};
pub(crate) use load::load;
pub(crate) use model::{Entry, Goal, Run};
pub(crate) use quantity::{beside, figure, quantity};
pub(crate) use text::printable;
