//! Two stacks, wired to each other in memory.

mod close;
mod open;
mod pair;
mod transfer;
