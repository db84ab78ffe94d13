//! Routes and next hops as the control thread knows them, written into [`crate::state`].
//!
//! In each VRF, a prefix may have routes of several [`Place`]s, from different sources and at different distances. The best that is
//! usable is what workers see: the router's own, then the least distance, then the least metric; the next one takes over when
//! it goes. What changes costs as much as depends on it: `users` and `depend` know which routes name a target and which targets an
//! interface, `hosts` which neighbours a prefix decides about. What takes long is done in steps (`converge`).
//!
//! | file | job |
//! | --- | --- |
//! | `prefix` | a prefix of either family |
//! | `source` | what routes come from, by name |
//! | `route` | routes as they are given and listed |
//! | `error` | why a change is refused |
//! | `link` | interfaces as routes see them; the routes that their addresses imply |
//! | `next_hop` | next hops by what they lead to, counted and written |
//! | `group` | slots of an ECMP group, moved as little as possible |
//! | `target` | what routes share: sets of next hops, reserved answers |
//! | `depend` | which targets depend on an interface, an address or a VRF |
//! | `due` | targets that wait until their next hops are found anew |
//! | `layer` | the routes of one source at one distance |
//! | `users` | which routes name a target |
//! | `hosts` | neighbours' own routes, and what they depend on |
//! | `converge` | next hops found and routes shown again after a change, many of them in steps |
//! | `pass` | how far a pass over all routes has come, and what is kept until it is over |
//! | `fib` | all routes of one family in one VRF, and its look-up table |
//! | `check` | whether a batch of changes makes sense |
//! | `neighbors` | next hops and routes of neighbours |
//! | `vrf` | the routes of one VRF, and of all |
//! | `table` | all of it together: [`Rib`] |
//! | `lpm` | the look-up tables as both families' code sees them |
//! | `list` | routes and next hops for people to see |

mod check;
mod converge;
mod depend;
mod due;
mod error;
mod fib;
mod group;
mod hosts;
mod layer;
mod link;
mod list;
mod lpm;
mod neighbors;
mod next_hop;
mod pass;
mod prefix;
mod route;
mod source;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod users;
mod vrf;

pub(crate) use check::is_host;
pub use error::{ApplyError, RouteError};
pub use link::NextHopMacs;
pub use list::{Explanation, NextHopInfo};
pub use next_hop::Status;
pub use prefix::Prefix;
pub use route::{Change, MOST_DISTANCE, Place, Route, RouteInfo, STATIC_DISTANCE, Target, Via};
pub use source::{Source, SourceNameError};
pub use table::{Limits, Miss, Rib};
