//! Two hosts' sockets back to back: every call as an application makes it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod connect;
mod datagram;
mod errors;
mod fragments;
mod hostile;
mod listen;
mod moving;
mod names;
mod options;
mod pair;
mod readiness;
mod received;
mod shown;
mod stream;
