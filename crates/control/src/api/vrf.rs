//! VRFs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /v1/vrfs`: a router within the router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Vrf {
    /// Its name; `default` for the one that all is in that is in no other.
    pub name: String,
    /// Interfaces in it.
    pub interfaces: Vec<String>,
    /// IPv4 routes that were given to it.
    pub routes4: u64,
    /// IPv6 routes that were given to it.
    pub routes6: u64,
    /// It is not in the configuration any more: its routes wait until it is. Absent: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parked: bool,
}
