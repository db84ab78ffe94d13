//! `ip4-input`: validates IPv4 packets (RFC 1812 5.2.2).
//!
//! The plain packets of plain frames do not come here: `ethernet-input` has checked them.
//! Needs `interface` and `network`; fills `word` with the destination address, for the look-up.

use std::net::Ipv4Addr;

use graph::{Context, Node, Picked, Reason, Slot, Vector};
use wire::ipv4::{Header, Malformed, Options};
use wire::special;

use super::snapshot::Snapshot;
use super::{arc, family};
use crate::state::{Interfaces, Settings};

graph::edges! {
    /// Next nodes of `ip4-input`.
    pub(crate) Next {
        Lookup => "ip4-lookup",
        Flow => "flow4-lookup",
        Features => "input-features",
        Group => "ip-group",
    }
}

/// The node.
pub(crate) struct Ip4Input {
    interfaces: Snapshot<Interfaces>,
    settings: Snapshot<Settings>,
    next: Next,
}

impl Ip4Input {
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

impl Node for Ip4Input {
    type Next = Next;

    fn name(&self) -> &'static str {
        "ip4-input"
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let martians = self.settings.get().martians;
        let mut good = Picked::new();
        for &slot in slots {
            match check(cx.vector, slot, martians) {
                Ok(destination) => {
                    cx.vector.word[usize::from(slot)] = destination.to_bits();
                    good.push(slot);
                }
                // Also in a unicast frame, a group address is never routed.
                Err(Reason::Ip4Multicast) => cx.send(slot, Next::Group),
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

/// Validates one packet, takes link padding off, and says why it is not to be forwarded, or its
/// destination.
#[inline]
pub(super) fn check(vector: &mut Vector, slot: Slot, martians: bool) -> Result<Ipv4Addr, Reason> {
    let network = usize::from(vector.network[usize::from(slot)]);
    let Some(buffer) = vector.buffer_mut(slot) else { return Err(Reason::Forgotten) };
    let present = buffer.len().saturating_sub(network);
    let packet = buffer.data().get(network..).unwrap_or(&[]);
    let header = Header::parse_within(packet, present).map_err(reason)?;
    let (source, destination) = (header.source(), header.destination());
    let padding = present - usize::from(header.total_length());
    if header.has_options() {
        check_options(packet)?;
    }
    if martians {
        if special::is_martian_source_v4(source) {
            return Err(Reason::Ip4MartianSource);
        }
        if special::is_martian_destination_v4(destination) {
            return Err(Reason::Ip4MartianDestination);
        }
    }
    // A chained packet is longer than any padding.
    if padding > 0 && !buffer.is_chained() && !buffer.trim(padding) {
        return Err(Reason::Ip4TotalLength);
    }
    if destination.is_multicast() { Err(Reason::Ip4Multicast) } else { Ok(destination) }
}

/// RFC 7126 4.3, 4.5: packets with source-route options are dropped; other options are passed on.
#[cold]
fn check_options(packet: &[u8]) -> Result<(), Reason> {
    for option in Options::new(packet) {
        let option = option.map_err(|_| Reason::Ip4Options)?;
        if option.is_source_route() {
            return Err(Reason::Ip4SourceRoute);
        }
    }
    Ok(())
}

fn reason(malformed: Malformed) -> Reason {
    match malformed {
        Malformed::Truncated => Reason::Ip4Truncated,
        Malformed::Version => Reason::Ip4Version,
        Malformed::HeaderLength => Reason::Ip4HeaderLength,
        Malformed::TotalLength => Reason::Ip4TotalLength,
        Malformed::Checksum => Reason::Ip4Checksum,
    }
}
