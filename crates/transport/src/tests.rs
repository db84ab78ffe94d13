//! Two stacks, wired to each other in memory.

mod accurate;
mod admission;
mod aside;
mod attack;
mod bind;
mod budget;
mod chain;
mod close;
mod fast_open;
mod foreign;
mod forward;
mod hostile;
mod info;
mod layers;
mod moving;
mod offload;
mod open;
mod options;
pub(crate) mod pair;
mod path;
mod rate;
mod shortcuts;
mod signals;
mod sink;
mod time_wait;
mod transfer;
mod udp;
