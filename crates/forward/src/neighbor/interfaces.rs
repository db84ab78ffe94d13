//! What a change of interfaces does to routes and neighbours.

use std::net::IpAddr;
use std::sync::Arc;

use graph::{InterfaceId, Reason};

use super::{Action, Packet, SlowPath, frame};
use crate::rib::NextHopMacs;
use crate::state::{Interfaces, Mode};

impl<P: Packet> SlowPath<P> {
    /// Interfaces that static routes and configured neighbours name, those too that are not there; some more than once.
    pub fn named_interfaces(&self) -> impl Iterator<Item = InterfaceId> + '_ {
        let neighbors = self.fixed.keys().map(|(interface, _)| *interface);
        self.rib.named_interfaces().chain(neighbors)
    }

    /// Shows new interfaces to the workers, and follows with routes and neighbours. New addresses
    /// are announced on their links.
    pub fn set_interfaces(
        &mut self,
        interfaces: Arc<Interfaces>,
        macs: &NextHopMacs,
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) {
        self.shared.interfaces.store(interfaces.clone());
        let gone = self.rib.set_interfaces(&interfaces, macs);
        let lost = self.table.iter().filter(|(_, known)| gone.contains(&known.interface));
        let lost: Vec<u32> = lost.map(|(index, _)| index).collect();
        for index in lost {
            self.forget(index, Reason::NeighborUnresolved, actions);
        }
        let before = std::mem::replace(&mut self.interfaces, interfaces);
        for ((interface, address), mac) in self.fixed.clone() {
            if self.known((interface, address)).is_none() {
                // Without its interface it waits until that is there, and its link up.
                let _ = self.fix((interface, address), mac, now, actions);
            }
        }
        self.announce(&before, &gone, actions);
        self.next_check = 0;
    }

    /// Tells the links about addresses that are new on them, and links that are up again about all of theirs.
    fn announce(&self, before: &Interfaces, gone: &[InterfaceId], actions: &mut Vec<Action<P>>) {
        for (id, interface) in (0..=InterfaceId::MAX).zip(&self.interfaces.list) {
            let Some(interface) = interface.as_ref().filter(|interface| interface.up) else {
                continue;
            };
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
