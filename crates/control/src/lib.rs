//! Configuration model and API types, shared by the daemon, the command line and the bench.
//!
//! | module | job |
//! | --- | --- |
//! | [`api`] | requests and answers of the API |
//! | [`client`] | a client of the API |
//! | [`config`] | the TOML configuration: types, reading, checking |
//! | [`net`] | MAC addresses and prefixes as people write them |
//! | [`state`] | what a daemon keeps from one run to the next |
//! | [`duration`] | durations as people write them |
//! | [`cores`] | the cores that this process may use |
#![forbid(unsafe_code)]

pub mod api;
pub mod client;
pub mod config;
pub mod cores;
pub mod duration;
pub mod net;
pub mod state;
mod text;

pub use config::{Config, ConfigError};
pub use net::{InterfaceAddress, MacAddr, Prefix};

/// API socket where none is configured.
pub const DEFAULT_SOCKET: &str = "/run/millrace/millrace.sock";
