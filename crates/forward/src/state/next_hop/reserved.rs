//! Indices that mean the same in every table.

use super::super::{VRF_NUMBERS, VrfId};

/// No route: must be what the tables return for a miss.
pub const MISS: u32 = 0;
/// A blackhole route.
pub const BLACKHOLE: u32 = 1;
/// An unreachable route.
pub const UNREACHABLE: u32 = 2;
/// The router's own address.
pub const LOCAL: u32 = 3;
/// The broadcast address of a connected network.
pub const BROADCAST: u32 = 4;
/// To be looked up in the default VRF; so much more: in the VRF of that number.
const VRF: u32 = 16;
/// First index that is given out.
pub const FIRST: u32 = VRF + 1 + VRF_NUMBERS as u32;

/// To be looked up in that VRF.
#[must_use]
pub fn of_vrf(id: VrfId) -> u32 {
    VRF + u32::from(id)
}

/// The VRF in which a packet is to be looked up.
#[inline]
#[must_use]
pub fn vrf(index: u32) -> Option<VrfId> {
    (VRF..FIRST).contains(&index).then(|| (index - VRF) as VrfId)
}
