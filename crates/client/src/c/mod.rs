//! The C border: `millrace.h` is made of this folder by `scripts/header`.
//!
//! Each function catches panics, answers null pointers with an error, and gives 0 or a count, or one of the
//! negative statuses. What they can't check, and what each `SAFETY` line stands on: pointers that are not null point
//! to what the header says; a channel is used by one thread at a time; no other thread uses a client that reattaches.
#![allow(unreachable_pub, reason = "C reaches it by name")]

mod client;
mod fault;
mod held;
mod open;
mod options;
mod receive;
mod send;
mod wait;

use fault::{Fault, guard};
use held::{ChannelHandle, PacketView};
