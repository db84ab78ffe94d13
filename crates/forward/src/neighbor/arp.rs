//! What a received ARP packet means (RFC 826, RFC 5227).

use std::net::{IpAddr, Ipv4Addr};

use graph::{InterfaceId, Reason};
use wire::MacAddr;
use wire::arp::{Operation, Packet as Arp};

use super::machine::{Event, Machine};
use super::{Action, Packet, SlowPath, frame};
use crate::rib::is_host;

impl<P: Packet> SlowPath<P> {
    /// Takes an ARP packet in.
    pub(super) fn arp(&mut self, packet: P, now: u64, actions: &mut Vec<Action<P>>) {
        let Ok(arp) = Arp::parse(packet.network()).copied() else {
            return actions.push(Action::Drop { packet, reason: Reason::ArpMalformed });
        };
        let interface = packet.interface();
        let Some((mac, mine)) = self.interfaces.get(interface).map(|own| {
            let mine = |address: Ipv4Addr| own.addresses4.iter().any(|(own, _)| *own == address);
            (own.mac, (mine(arp.sender()), mine(arp.target())))
        }) else {
            return actions.push(Action::Drop { packet, reason: Reason::NoPort });
        };
        let (sender_is_mine, target_is_mine) = mine;
        let about_us = Action::Drop { packet, reason: Reason::ArpNotMine };
        if arp.sender_mac == mac {
            return actions.push(about_us);
        }
        if sender_is_mine {
            let address = arp.sender().into();
            return actions.push(Action::Conflict { interface, address, mac: arp.sender_mac });
        }
        let known = is_host(arp.sender().into())
            && self.learn((interface, arp.sender().into()), &arp, target_is_mine, now, actions);
        if target_is_mine && arp.operation() == Operation::Request {
            let to = (arp.sender_mac, arp.sender());
            if let Some(frame) = frame::arp_reply(mac, arp.target(), to) {
                actions.push(Action::Send { interface, frame });
            }
        } else if !known {
            actions.push(about_us);
        }
    }

    /// RFC 826's merge: what is known is updated by any packet; something new is learned only from
    /// one that is for us. Returns whether the sender is known now.
    fn learn(
        &mut self,
        sender: (InterfaceId, IpAddr),
        arp: &Arp,
        for_us: bool,
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) -> bool {
        let mac: MacAddr = arp.sender_mac;
        if let Some(index) = self.known(sender) {
            // An answer proves that the neighbour hears us only if we asked.
            let asked = self.table.get(index).is_some_and(|known| known.machine.probes > 0);
            // An interface without an address of its own asks from 0.0.0.0.
            let to_us = for_us || arp.target().is_unspecified();
            let solicited = to_us && asked && arp.operation() == Operation::Reply;
            let event = Event::Answered { mac: Some(mac), solicited, overrides: true };
            self.happen(index, event, now, actions);
            return true;
        }
        let new = for_us && arp.operation() == Operation::Request;
        new && self.meet(sender, Machine::heard(mac), now, actions)
    }
}
