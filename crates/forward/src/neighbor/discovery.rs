//! What a received neighbour discovery message means (RFC 4861 7.2).

use std::net::Ipv6Addr;

use graph::{InterfaceId, Reason};
use wire::MacAddr;
use wire::ndp::{self, Flags, Message};
use wire::protocol::Protocol;
use wire::{icmpv6, ipv6};

use super::machine::{Event, Machine, State};
use super::{Action, Packet, SlowPath, frame};
use crate::rib::is_host;
use crate::state::Interface;

/// What of a message matters here.
enum Discovery {
    Solicitation {
        source: Ipv6Addr,
        target: Ipv6Addr,
        mac: Option<MacAddr>,
    },
    Advertisement {
        target: Ipv6Addr,
        mac: Option<MacAddr>,
        flags: Flags,
    },
    /// Router discovery and redirects: a router takes no part in either unless told to.
    Other,
}

/// Checks and reads a message; `None`: RFC 4861 says to discard it.
fn read(packet: &[u8]) -> Option<Discovery> {
    let header = ipv6::Header::parse(packet).ok()?;
    if header.next_header() != Protocol::ICMPV6 {
        return None;
    }
    let body = packet.get(ipv6::HEADER_LENGTH..header.total_length())?;
    let (source, destination) = (header.source(), header.destination());
    icmpv6::Header::parse(body, source, destination).ok()?;
    let message = match ndp::parse(body, source, destination, header.hop_limit()).ok()? {
        Message::NeighborSolicitation { target, options } => {
            Discovery::Solicitation { source, target, mac: options.source_link_layer() }
        }
        Message::NeighborAdvertisement { flags, target, options } => {
            Discovery::Advertisement { target, mac: options.target_link_layer(), flags }
        }
        _ => Discovery::Other,
    };
    match message {
        // A group address as somebody's own is nobody's.
        Discovery::Solicitation { mac: Some(mac), .. }
        | Discovery::Advertisement { mac: Some(mac), .. }
            if !mac.is_unicast() =>
        {
            None
        }
        message => Some(message),
    }
}

/// How an address is ours on an interface.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ours {
    Own,
    /// The address of all routers on one of its networks (RFC 4291 2.6.1).
    Anycast,
}

fn ours(interface: &Interface, address: Ipv6Addr) -> Option<Ours> {
    if interface.addresses6.iter().any(|(own, _)| *own == address) {
        return Some(Ours::Own);
    }
    interface.is_of_routers(address).then_some(Ours::Anycast)
}

impl<P: Packet> SlowPath<P> {
    /// Takes a neighbour discovery message in.
    pub(super) fn discovery(&mut self, packet: P, now: u64, actions: &mut Vec<Action<P>>) {
        let interface = packet.interface();
        let reason = match read(packet.network()) {
            None => Some(Reason::NdMalformed),
            Some(Discovery::Other) => Some(Reason::IcmpUnhandled),
            Some(Discovery::Solicitation { source, target, mac }) => {
                let refused = self.solicited(interface, (source, mac), target, now, actions);
                if refused == Some(Reason::NeighborUnresolved) && self.may_wait(&packet, source) {
                    return self.resolve((interface, source.into()), packet, now, actions);
                }
                refused
            }
            Some(Discovery::Advertisement { target, mac, flags }) => {
                self.advertised(interface, (target, mac), flags, now, actions)
            }
        };
        if let Some(reason) = reason {
            actions.push(Action::Drop { packet, reason });
        }
    }

    /// RFC 4861 7.2.3, 7.2.4.
    fn solicited(
        &mut self,
        interface: InterfaceId,
        (source, mac): (Ipv6Addr, Option<MacAddr>),
        target: Ipv6Addr,
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) -> Option<Reason> {
        let Some(own) = self.interfaces.get(interface) else { return Some(Reason::NoPort) };
        let Some(how) = ours(own, target) else { return Some(Reason::IcmpUnhandled) };
        let own_mac = own.mac;
        // Hosts expect no anycast address as a source.
        let from = if how == Ours::Own { Some(target) } else { frame::source6(own, target) };
        if mac == Some(own_mac) || ours(own, source) == Some(Ours::Own) {
            return Some(Reason::IcmpUnhandled);
        }
        let mut to = None;
        if !source.is_unspecified() {
            let neighbor = (interface, source.into());
            if !is_host(source.into()) {
                return Some(Reason::NdMalformed);
            }
            match (self.known(neighbor), mac) {
                (Some(index), Some(mac)) => self.happen(index, Event::Heard(mac), now, actions),
                (None, Some(mac)) => {
                    self.meet(neighbor, Machine::heard(mac), now, actions);
                }
                _ => {}
            }
            let known = || {
                let machine = self.table.get(self.known(neighbor)?)?.machine;
                machine.is_resolved().then_some(machine.mac)
            };
            let Some(mac) = mac.or_else(known) else { return Some(Reason::NeighborUnresolved) };
            to = Some((mac, source));
        }
        let frame = frame::advertisement(own_mac, target, to, from?, how == Ours::Own);
        actions.extend(frame.map(|frame| Action::Send { interface, frame }));
        None
    }

    /// Whether a solicitation whose sender's address is not known waits until it is, and comes here again then (RFC 4861
    /// 7.2.4): the sender is on the link, and has not failed to answer. One to a group always says the address.
    fn may_wait(&self, solicitation: &P, source: Ipv6Addr) -> bool {
        let neighbor = (solicitation.interface(), source.into());
        let state = self.known(neighbor).and_then(|index| self.table.get(index));
        let to_group = ipv6::Header::peek(solicitation.network())
            .is_none_or(|header| header.destination().is_multicast());
        !to_group
            && self.rib.is_on_link(neighbor.0, neighbor.1)
            && state.is_none_or(|known| known.machine.state == State::Incomplete)
    }

    /// RFC 4861 7.2.5.
    fn advertised(
        &mut self,
        interface: InterfaceId,
        (target, mac): (Ipv6Addr, Option<MacAddr>),
        flags: Flags,
        now: u64,
        actions: &mut Vec<Action<P>>,
    ) -> Option<Reason> {
        let Some(own) = self.interfaces.get(interface) else { return Some(Reason::NoPort) };
        if ours(own, target) == Some(Ours::Own) {
            if let Some(mac) = mac.filter(|mac| *mac != own.mac) {
                actions.push(Action::Conflict { interface, address: target.into(), mac });
            }
            return None;
        }
        // Nobody asked: there is nothing to update.
        let Some(index) = self.known((interface, target.into())) else {
            return Some(Reason::IcmpUnhandled);
        };
        let Flags { solicited, override_known: overrides, .. } = flags;
        self.table.set_router(index, flags.router);
        self.happen(index, Event::Answered { mac, solicited, overrides }, now, actions);
        None
    }
}
