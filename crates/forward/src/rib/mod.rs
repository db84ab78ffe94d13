//! Routes and next hops as the control thread knows them, written into [`crate::state`].
//!
//! In each VRF, a prefix may have a route from each [`Source`]; the first usable one is what the workers see.
//!
//! | file | job |
//! | --- | --- |
//! | `prefix` | a prefix of either family |
//! | `route` | routes as they are given and listed |
//! | `error` | why a change is refused |
//! | `link` | interfaces as routes see them; the routes that their addresses imply |
//! | `next_hop` | next hops by what they lead to, counted and written |
//! | `group` | slots of an ECMP group, moved as little as possible |
//! | `target` | what routes share: sets of next hops, reserved answers |
//! | `fib` | the routes of one family, by source, and its look-up table |
//! | `check` | whether a batch of changes makes sense |
//! | `neighbors` | next hops and routes of neighbours |
//! | `vrf` | the routes of one VRF, and of all |
//! | `table` | all of it together: [`Rib`] |
//! | `lpm` | the look-up tables as both families' code sees them |
//! | `list` | routes and next hops for people to see |

mod check;
mod error;
mod fib;
mod group;
mod link;
mod list;
mod lpm;
mod neighbors;
mod next_hop;
mod prefix;
mod route;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod vrf;

pub(crate) use check::is_host;
pub use error::{ApplyError, RouteError};
pub use link::NextHopMacs;
pub use list::{Explanation, NextHopInfo};
pub use next_hop::Status;
pub use prefix::Prefix;
pub use route::{Change, Route, RouteInfo, Source, Target, Via};
pub use table::{Limits, Miss, Rib};
