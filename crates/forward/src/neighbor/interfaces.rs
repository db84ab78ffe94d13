//! What a change of interfaces does to routes and neighbours.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use graph::{InterfaceId, Reason};

use super::{Action, Packet, SlowPath, frame};
use crate::rib::{NextHopMacs, RouteError};
use crate::state::{Interfaces, Mode};

impl<P: Packet> SlowPath<P> {
    /// Interfaces that given routes and configured neighbours name, those too that are not there; some more than once.
    pub fn named_interfaces(&self) -> impl Iterator<Item = InterfaceId> + '_ {
        let neighbors = self.fixed.keys().map(|(interface, _)| *interface);
        self.rib.named_interfaces().chain(neighbors)
    }

    /// Shows new interfaces to the workers, and follows with neighbours and routes; many of these are left to
    /// [`Self::converge`]. New addresses are announced on their links.
    pub fn set_interfaces(
        &mut self,
        interfaces: Arc<Interfaces>,
        macs: &NextHopMacs,
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) {
        self.shared.interfaces.store(interfaces.clone());
        let live: BTreeSet<InterfaceId> = self.rib.live_interfaces().collect();
        let gone = self.rib.set_interfaces(&interfaces, macs);
        let lost: Vec<u32> = gone.iter().flat_map(|id| self.table.on(*id)).collect();
        for index in lost {
            self.forget(index, Reason::NeighborUnresolved, actions);
        }
        let before = std::mem::replace(&mut self.interfaces, interfaces);
        let came = self.rib.live_interfaces().filter(|id| !live.contains(id) || gone.contains(id));
        let came = came.collect();
        self.place(came, now, actions);
        self.announce(&before, &gone, actions);
        self.members_due = true;
    }

    /// Gives configured neighbours their entries whose interface is there now or again, and those that found no room.
    fn place(&mut self, came: Vec<InterfaceId>, now: u64, actions: &mut Vec<Action<P>>) {
        let mut due = std::mem::take(&mut self.unplaced);
        // All addresses, IPv4 first.
        let (first, last) = (Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::from([0xff; 16]).into());
        for id in came {
            due.extend(self.fixed.range((id, first)..=(id, last)).map(|(key, _)| *key));
        }
        for neighbor in due {
            let Some(mac) = self.fixed.get(&neighbor).copied() else { continue };
            if self.known(neighbor).is_some() {
                continue;
            }
            match self.fix(neighbor, mac, now, actions) {
                // Without its interface it waits until that is there, and its link up.
                Ok(()) | Err(RouteError::NoSuchInterface(_)) => {}
                Err(_) => {
                    self.unplaced.insert(neighbor);
                }
            }
        }
    }

    /// Tells the links about addresses that are new on them, and links that are up again about all of theirs.
    fn announce(&self, before: &Interfaces, gone: &[InterfaceId], actions: &mut Vec<Action<P>>) {
        for (id, interface) in self.interfaces.iter().filter(|(_, interface)| interface.up) {
            if !matches!(interface.mode, Mode::Routed | Mode::BridgeIp(_)) {
                continue;
            }
            let old = before.get(id).filter(|old| old.up && !gone.contains(&id));
            let new4 = interface.addresses4.iter().map(|(own, _)| *own);
            let new4 =
                new4.filter(|own| old.is_none_or(|old| old.addresses4.iter().all(|o| o.0 != *own)));
            let new6 = interface.addresses6.iter().map(|(own, _)| *own);
            let new6 =
                new6.filter(|own| old.is_none_or(|old| old.addresses6.iter().all(|o| o.0 != *own)));
            for own in new4.map(IpAddr::V4).chain(new6.map(IpAddr::V6)) {
                let frame = frame::announcement(interface.mac, own);
                actions.extend(frame.map(|frame| Action::Send { interface: id, frame }));
            }
        }
    }
}
