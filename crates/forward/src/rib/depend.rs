//! Which targets a change of interfaces, addresses or VRFs can concern.

use std::collections::BTreeSet;
use std::net::IpAddr;

use graph::InterfaceId;

use super::Target;
use super::link::Changes;
use super::route::Goal;
use crate::state::VrfId;

/// Targets by what decides about their next hops.
#[derive(Debug, Default)]
pub(super) struct Dependents {
    by_interface: BTreeSet<(InterfaceId, u32)>,
    /// Next hops that are looked for on all networks.
    anywhere: BTreeSet<(IpAddr, u32)>,
    /// Next hops whose interface is named: they are left out while they are own addresses.
    named: BTreeSet<(IpAddr, u32)>,
    by_vrf: BTreeSet<(VrfId, u32)>,
}

impl Dependents {
    /// There is a target of that goal now.
    pub(super) fn add(&mut self, goal: &Goal, target: u32) {
        self.each(goal, target, Change::Add);
    }

    /// There is none any more.
    pub(super) fn remove(&mut self, goal: &Goal, target: u32) {
        self.each(goal, target, Change::Remove);
    }

    fn each(&mut self, goal: &Goal, target: u32, change: Change) {
        match goal {
            Goal::Connected(interface)
            | Goal::Route(_, Target::Port(interface) | Target::Flood(interface)) => {
                change.make(&mut self.by_interface, (*interface, target));
            }
            Goal::Route(_, Target::Via(hops)) => {
                for hop in hops {
                    let by_address = match hop.interface {
                        Some(interface) => {
                            change.make(&mut self.by_interface, (interface, target));
                            &mut self.named
                        }
                        None => &mut self.anywhere,
                    };
                    change.make(by_address, (hop.address, target));
                }
            }
            Goal::Route(_, Target::Vrf(vrf)) => change.make(&mut self.by_vrf, (*vrf, target)),
            Goal::Route(..) => {}
        }
    }

    /// The targets whose next hops may be others after these changes.
    pub(super) fn of(&self, changes: &Changes) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        for interface in &changes.interfaces {
            found.extend(between(&self.by_interface, *interface, *interface));
        }
        for network in &changes.networks {
            let (first, last) = network.bounds();
            found.extend(between(&self.anywhere, first, last));
        }
        for address in &changes.addresses {
            found.extend(between(&self.named, *address, *address));
        }
        for vrf in &changes.vrfs {
            found.extend(between(&self.by_vrf, *vrf, *vrf));
        }
        found
    }
}

#[derive(Clone, Copy)]
enum Change {
    Add,
    Remove,
}

impl Change {
    fn make<T: Ord>(self, set: &mut BTreeSet<T>, entry: T) {
        match self {
            Self::Add => set.insert(entry),
            Self::Remove => set.remove(&entry),
        };
    }
}

fn between<T: Copy + Ord>(
    set: &BTreeSet<(T, u32)>,
    first: T,
    last: T,
) -> impl Iterator<Item = u32> + '_ {
    set.range((first, 0)..=(last, u32::MAX)).map(|(_, target)| *target)
}
