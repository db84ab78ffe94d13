//! Socket calls. They change state only; [`Stack::flush`] sends what follows from them.

mod close;
mod data;
mod info;
mod open;

pub use info::Info;
