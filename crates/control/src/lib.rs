//! Configuration model and API types, shared by the daemon, the command line and the bench.
//!
//! | module | job |
//! | --- | --- |
//! | [`config`] | the TOML configuration: types, reading, checking |
//! | [`net`] | MAC addresses and prefixes as people write them |
//! | [`duration`] | durations as people write them |
#![forbid(unsafe_code)]

pub mod config;
pub mod duration;
pub mod net;
mod text;

pub use config::{Config, ConfigError};
