//! Socket calls. They change state only; [`Stack::flush`] sends what follows from them.

mod close;
mod data;
mod info;
mod open;
mod udp;

pub use info::Info;
