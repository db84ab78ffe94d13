//! The names, by subject. Each looks up what the descriptor is, and calls the C library's function unless it is ours.
//!
//! What each `SAFETY` line stands on, where it names the caller or the application: a pointer leads to what the manual page says,
//! unless `memory` finds that nothing is there, and nobody else changes that while the call lasts. No panic gets out to C: it ends
//! the process (`extern "C"`). A thread that is cancelled unwinds through them; but Rust takes no call of an `extern "C"` function to
//! unwind, so what has something to drop calls the function behind such a name instead.

#![allow(
    unreachable_pub,
    clippy::missing_safety_doc,
    reason = "C calls them by name; what they promise, their manual pages say"
)]

mod control;
mod data;
mod datagrams;
pub(crate) mod descriptors;
mod direct;
pub(crate) mod epoll;
mod files;
mod lifecycle;
mod lists;
mod messages;
mod names;
pub(crate) mod options;
mod passing;
mod pieces;
pub(crate) mod poll;
mod program;
mod receive;
mod select;
mod send;
mod signals;
mod sockets;
mod standard;
mod stdio;

pub(crate) use standard::follow_all;
