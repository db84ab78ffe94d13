//! VRFs: routers within the router, each with routes and interfaces of its own (RFC 4364 3).

use tables::{Lpm4Reader, Lpm6Reader};

/// Number of a VRF.
pub type VrfId = u16;

/// The VRF of interfaces that are in no other. It has no name.
pub const DEFAULT_VRF: VrfId = 0;

/// The VRF of what has none any more. No VRF has this number: there are no routes and no addresses in it.
pub const NO_VRF: VrfId = VrfId::MAX;

/// VRFs at most, besides the default one. With the first route of each length, a VRF's tables take the memory of two huge
/// pages a family (a root of 2^16 entries, and as much of what is kept beside it): up to 8 MiB, so that all take 512 MiB.
pub const MOST_VRFS: usize = 64;

/// Numbers of VRFs besides the default one: twice as many, because a number is not given out again at once, and all
/// VRFs may be replaced by others together.
pub const VRF_NUMBERS: usize = 2 * MOST_VRFS;

/// The look-up tables of a VRF.
#[derive(Debug, Clone)]
pub struct VrfTables {
    /// IPv4 routes.
    pub routes4: Lpm4Reader,
    /// IPv6 routes.
    pub routes6: Lpm6Reader,
}

/// The look-up tables of the VRFs that there are besides the default one: replaced as a whole.
#[derive(Debug, Clone, Default)]
pub struct Vrfs(Vec<Option<VrfTables>>);

impl Vrfs {
    /// The tables of a VRF.
    #[must_use]
    pub fn get(&self, id: VrfId) -> Option<&VrfTables> {
        self.0.get(usize::from(id)).and_then(Option::as_ref)
    }
}

impl FromIterator<(VrfId, VrfTables)> for Vrfs {
    fn from_iter<I: IntoIterator<Item = (VrfId, VrfTables)>>(tables: I) -> Self {
        let mut list = Vec::new();
        for (id, tables) in tables {
            let at = usize::from(id);
            if list.len() <= at {
                list.resize(at + 1, None);
            }
            list[at] = Some(tables);
        }
        Self(list)
    }
}
