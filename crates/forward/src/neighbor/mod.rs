//! Neighbours: ARP (RFC 826) and neighbour discovery (RFC 4861) by one state machine.
//!
//! Nothing here reads a clock or a socket: time and packets come in as arguments, and what is to be
//! done comes out as [`Action`]s. [`SlowPath`] ties the neighbours to the routing table.
//!
//! | file | job |
//! | --- | --- |
//! | `machine` | the states of one neighbour and what moves it (RFC 4861 appendix C) |
//! | `settings` | times and bounds |
//! | `table` | all neighbours, their timers, packets that wait |
//! | `hearing` | whether the workers listen for answers |
//! | `action` | what the caller is to do; what a packet must offer |
//! | `frame` | the frames that are sent |
//! | `arp`, `discovery` | what received messages mean |
//! | `configured` | neighbours that people add and remove |
//! | `interfaces` | what a change of interfaces does |
//! | `slow_path` | neighbours and routes together: [`SlowPath`] |
//! | `list` | neighbours for people to see |

mod action;
mod arp;
mod configured;
mod discovery;
mod frame;
mod hearing;
mod interfaces;
mod list;
mod machine;
mod settings;
mod slow_path;
mod table;
#[cfg(test)]
mod tests;

pub use action::{Action, Packet};
pub use configured::NeighborError;
pub use list::NeighborInfo;
pub use machine::State;
pub use settings::{Bounds, Timing};
pub use slow_path::SlowPath;
