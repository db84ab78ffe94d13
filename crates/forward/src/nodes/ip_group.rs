//! `ip-group`: IP in a group frame, to a group, or from or to a link-local address. None of it is forwarded
//! (RFC 1812 5.3.4, RFC 3927 7, RFC 4291 2.5.6); what is for this router goes to `ip-local`.
//!
//! Needs `interface` and `network`.

use std::net::Ipv6Addr;

use graph::{Context, InterfaceId, Node, Reason, Slot, Vector};
use wire::{icmpv6, ipv4, ipv6};

use super::disposal::refuse;
use super::family::{Refusal, V4, V6, icmp, kind6};
use super::icmp_error::came_to_many;
use super::ip_input::check;
use super::{arc, snapshot::Snapshot};
use crate::state::{Interface, Interfaces};

graph::edges! {
    /// Next nodes of `ip-group`.
    pub(crate) Next {
        Local => "ip-local",
        Features => "input-features",
        Error => "icmp-error",
    }
}

/// What the sender of a packet is told that was to leave the link on which its address means something (RFC 4443 3.1).
const BEYOND_SCOPE: Refusal = Refusal {
    error: icmp(kind6::UNREACHABLE, icmpv6::unreachable::BEYOND_SCOPE, 0),
    reason: Reason::Ip6LinkLocal,
};

/// The node.
pub(crate) struct IpGroup {
    interfaces: Snapshot<Interfaces>,
}

impl IpGroup {
    /// The node, reading these interfaces.
    #[must_use]
    pub(crate) fn new(interfaces: Snapshot<Interfaces>) -> Self {
        Self { interfaces }
    }
}

impl Node for IpGroup {
    type Next = Next;

    fn name(&self) -> &'static str {
        "ip-group"
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let interfaces = self.interfaces.get();
        for &slot in slots {
            let id = cx.vector.interface[usize::from(slot)];
            let verdict = match cx.vector.network(slot).first().map(|byte| byte >> 4) {
                Some(4) => admit4(cx.vector, slot, interfaces, id),
                Some(6) => admit6(cx.vector, slot, interfaces, id),
                _ => Err(Reason::Ip4Version),
            };
            match verdict {
                Ok(()) => {
                    arc::send_by_input(interfaces, &[slot], (Next::Features, Next::Local), cx);
                }
                Err(Reason::Ip6LinkLocal) if was_to_leave(cx.vector.network(slot)) => {
                    refuse(cx, slot, BEYOND_SCOPE, Next::Error);
                }
                Err(reason) => cx.drop(slot, reason),
            }
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        format!("IP to a group on interface {}", vector.interface[usize::from(slot)])
    }
}

/// Nothing here listens to IPv4 groups or broadcasts, and a unicast packet in a group frame is
/// discarded (RFC 1122 3.3.6): what is left is from or to a link-local address.
fn admit4(
    vector: &mut Vector,
    slot: Slot,
    interfaces: &Interfaces,
    id: InterfaceId,
) -> Result<(), Reason> {
    check::<V4>(vector, slot, false)?;
    let to_many = came_to_many(vector, slot);
    let destination =
        ipv4::Header::peek(vector.network(slot)).ok_or(Reason::Ip4Truncated)?.destination();
    if destination.is_broadcast() {
        Err(Reason::LocalProtocol)
    } else if destination.is_multicast() {
        Err(Reason::Ip4Multicast)
    } else if !to_many && interfaces.is_own(id, destination.into()) {
        Ok(())
    } else if to_many || destination.is_link_local() {
        Err(Reason::Ip4MartianDestination)
    } else {
        Err(Reason::Ip4MartianSource)
    }
}

fn admit6(
    vector: &mut Vector,
    slot: Slot,
    interfaces: &Interfaces,
    id: InterfaceId,
) -> Result<(), Reason> {
    check::<V6>(vector, slot, true)?;
    let destination =
        ipv6::Header::peek(vector.network(slot)).ok_or(Reason::Ip6Truncated)?.destination();
    let interface = interfaces.get(id).ok_or(Reason::NoPort)?;
    if destination.is_multicast() {
        let mine = joined(interface, destination);
        return if mine { Ok(()) } else { Err(Reason::Ip6Multicast) };
    }
    // RFC 4291 2.8: a link-local address is one of the interface that the packet came in on.
    let mine = interfaces.is_own(id, destination.into()) || interfaces.is_anycast(id, destination);
    if mine { Ok(()) } else { Err(Reason::Ip6LinkLocal) }
}

/// Whether a packet is from a link-local address to one that is none.
fn was_to_leave(packet: &[u8]) -> bool {
    ipv6::Header::peek(packet).is_some_and(|header| {
        header.source().is_unicast_link_local() && !header.destination().is_unicast_link_local()
    })
}

/// The groups of a router's interface (RFC 4291 2.7.1, 2.8): all nodes, all routers, and the solicited node of each of its
/// addresses, anycast ones too.
fn joined(interface: &Interface, group: Ipv6Addr) -> bool {
    const NODES: [Ipv6Addr; 5] = [
        Ipv6Addr::new(0xff01, 0, 0, 0, 0, 0, 0, 1),
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
        Ipv6Addr::new(0xff01, 0, 0, 0, 0, 0, 0, 2),
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2),
        Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 0, 2),
    ];
    let own = interface.addresses6.iter().map(|(address, _)| *address);
    let mut asked = own.chain(interface.of_routers()).map(ipv6::solicited_node);
    NODES.contains(&group) || asked.any(|asked| asked == group)
}
