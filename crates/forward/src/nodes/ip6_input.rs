//! `ip6-input`: validates IPv6 packets (RFC 8200 3, 4).
//!
//! The plain packets of plain frames do not come here: `ethernet-input` has checked them.
//! Needs `interface` and `network`; fills `wide` with the destination address, for the look-up. Extension headers are the destination's business and are not
//! looked at here (RFC 8200 4; RFC 7045 2.1).

use std::net::Ipv6Addr;

use graph::{Context, Node, Picked, Reason, Slot, Vector};
use wire::ipv6::{Header, Malformed};
use wire::special;

use super::snapshot::Snapshot;
use super::{arc, family};
use crate::state::{Interfaces, Settings};

graph::edges! {
    /// Next nodes of `ip6-input`.
    pub(crate) Next {
        Lookup => "ip6-lookup",
        Flow => "flow6-lookup",
        Features => "input-features",
        Group => "ip-group",
    }
}

/// The node.
pub(crate) struct Ip6Input {
    interfaces: Snapshot<Interfaces>,
    settings: Snapshot<Settings>,
    next: Next,
}

impl Ip6Input {
    /// The node; `flows`: look for an exact match before the routes.
    #[must_use]
    pub(crate) fn new(
        interfaces: Snapshot<Interfaces>,
        settings: Snapshot<Settings>,
        flows: bool,
    ) -> Self {
        Self { interfaces, settings, next: if flows { Next::Flow } else { Next::Lookup } }
    }
}

impl Node for Ip6Input {
    type Next = Next;

    fn name(&self) -> &'static str {
        "ip6-input"
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let martians = self.settings.get().martians;
        let mut good = Picked::new();
        for &slot in slots {
            match check(cx.vector, slot, martians) {
                Ok(destination) => {
                    cx.vector.wide[usize::from(slot)] = destination.to_bits();
                    good.push(slot);
                }
                // Never routed, but perhaps for us.
                Err(Reason::Ip6Multicast | Reason::Ip6LinkLocal) => cx.send(slot, Next::Group),
                Err(reason) => cx.drop(slot, reason),
            }
        }
        let next = (Next::Features, self.next);
        arc::send_by_input(self.interfaces.get(), good.of(slots), next, cx);
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        family::describe(vector.network(slot))
    }
}

/// Validates one packet and takes link padding off. Group and link-local addresses are refused
/// with `Ip6Multicast` and `Ip6LinkLocal`: such packets are not forwarded, but may be for us.
#[inline]
pub(super) fn check(vector: &mut Vector, slot: Slot, martians: bool) -> Result<Ipv6Addr, Reason> {
    let network = usize::from(vector.network[usize::from(slot)]);
    let Some(buffer) = vector.buffer_mut(slot) else { return Err(Reason::Forgotten) };
    let present = buffer.len().saturating_sub(network);
    let packet = buffer.data().get(network..).unwrap_or(&[]);
    let header = Header::parse_within(packet, present).map_err(reason)?;
    let (source, destination) = (header.source(), header.destination());
    let padding = present - header.total_length();
    // A chained packet is longer than any padding.
    if padding > 0 && !buffer.is_chained() && !buffer.trim(padding) {
        return Err(Reason::Ip6PayloadLength);
    }
    // Before the martians: duplicate address detection comes from `::` (RFC 4862 5.4.2).
    if destination.is_multicast() {
        return Err(Reason::Ip6Multicast);
    }
    if martians {
        if special::is_martian_source_v6(source) {
            return Err(Reason::Ip6MartianSource);
        }
        if special::is_martian_destination_v6(destination) {
            return Err(Reason::Ip6MartianDestination);
        }
    }
    if destination.is_unicast_link_local() || source.is_unicast_link_local() {
        return Err(Reason::Ip6LinkLocal);
    }
    Ok(destination)
}

fn reason(malformed: Malformed) -> Reason {
    match malformed {
        Malformed::Truncated => Reason::Ip6Truncated,
        Malformed::Version => Reason::Ip6Version,
        Malformed::PayloadLength => Reason::Ip6PayloadLength,
    }
}
