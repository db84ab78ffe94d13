//! Whether a route, neighbour or flow fits a configuration's interfaces: the same checks for the
//! configuration itself, the files that it names, and the API.

mod flow;
mod interfaces;
mod neighbor;
mod route;

pub use flow::FlowError;
pub use interfaces::{Interface, InterfaceKind};
pub use neighbor::NeighborError;
pub use route::RouteError;
