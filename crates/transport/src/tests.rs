//! Two stacks, wired to each other in memory.

mod attack;
mod close;
mod hostile;
mod open;
mod pair;
mod transfer;
