//! `[[vrf]]`: routers within the router, each with interfaces and routes of its own.

use serde::Serialize;

/// VRFs at most, besides the default one: see `forward::state::MOST_VRFS`.
pub const MOST_VRFS: usize = 64;

/// What people may call the VRF of all that is in no other. It is in no configuration, and no other VRF has this name.
pub const DEFAULT_VRF: &str = "default";

/// `[[vrf]]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Vrf {
    /// Unique among VRFs.
    pub name: String,
}

/// A VRF as it is kept: the default one has no name.
pub(crate) fn named(vrf: Option<String>) -> Option<String> {
    vrf.filter(|name| name != DEFAULT_VRF)
}
