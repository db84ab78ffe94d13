//! `ip4-input`, `ip6-input`: validate packets (RFC 1812 5.2.2; RFC 8200 3, 4).
//!
//! The plain packets of plain frames do not come here: `ethernet-input` has checked them.
//! Need `interface` and `network`; note the destination address for the look-up. IPv6's extension headers are the
//! destination's business and are not looked at here (RFC 8200 4; RFC 7045 2.1).

use graph::{Context, Edge as _, Node, Picked, Reason, Slot, Vector};
use wire::{ipv4, ipv6, special};

use super::arc;
use super::disposal::refuse;
use super::family::{self, Family, Names, Refusal, V4, V6, icmp, kind4};
use super::snapshot::Snapshot;
use crate::state::{Interfaces, Settings};

graph::edges! {
    /// Next nodes of an input; the names of the look-ups are the family's.
    pub(crate) Next {
        Lookup => "lookup",
        Flow => "flow",
        Features => "input-features",
        Group => "ip-group",
        Error => "icmp-error",
    }
}

/// The node.
pub(crate) struct IpInput<F> {
    interfaces: Snapshot<Interfaces>,
    settings: Snapshot<Settings>,
    next: Next,
    family: std::marker::PhantomData<F>,
}

impl<F: Validate> IpInput<F> {
    /// The node; `flows`: look for an exact match before the routes.
    #[must_use]
    pub(crate) fn new(
        interfaces: Snapshot<Interfaces>,
        settings: Snapshot<Settings>,
        flows: bool,
    ) -> Self {
        let next = if flows { Next::Flow } else { Next::Lookup };
        Self { interfaces, settings, next, family: std::marker::PhantomData }
    }
}

impl<F: Validate> Node for IpInput<F> {
    type Next = Next;

    fn name(&self) -> &'static str {
        F::NAMES.input
    }

    fn edges(&self) -> Vec<(Next, &'static str)> {
        let Names { flow, lookup: [lookup, _], .. } = F::NAMES;
        let named = Next::edges().into_iter().map(|(next, name)| match next {
            Next::Lookup => (next, lookup),
            Next::Flow => (next, flow),
            Next::Features | Next::Group | Next::Error => (next, name),
        });
        named.collect()
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let martians = self.settings.get().martians;
        let mut good = Picked::new();
        for &slot in slots {
            match check::<F>(cx.vector, slot, martians) {
                Ok(Destination::Routed(key)) => {
                    F::note(cx.vector, slot, key);
                    good.push(slot);
                }
                // Never routed, also in a unicast frame, but perhaps for us.
                Ok(Destination::OnLink) => cx.send(slot, Next::Group),
                Err(Reason::Ip4Options) => {
                    let problem = option_problem(cx.vector.network(slot));
                    refuse(cx, slot, problem, Next::Error);
                }
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

/// Where a valid packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination<K> {
    /// By the routes to this address.
    Routed(K),
    /// No further than its link: it is to a group or to all stations, or link-local.
    OnLink,
}

/// What makes a packet of a family valid.
pub(crate) trait Validate: Family {
    /// Why a packet is dropped that says another length than it has.
    const LENGTH: Reason;

    /// Length and destination of a packet, of which so many bytes are present, link padding among them, or why it is to be
    /// dropped.
    fn validate(
        packet: &[u8],
        present: usize,
        martians: bool,
    ) -> Result<(usize, Destination<Self::Key>), Reason>;
}

/// Validates one packet and takes link padding off.
#[inline]
pub(super) fn check<F: Validate>(
    vector: &mut Vector,
    slot: Slot,
    martians: bool,
) -> Result<Destination<F::Key>, Reason> {
    let network = usize::from(vector.network[usize::from(slot)]);
    let Some(buffer) = vector.buffer_mut(slot) else { return Err(Reason::Forgotten) };
    let present = buffer.len().saturating_sub(network);
    let packet = buffer.data().get(network..).unwrap_or(&[]);
    let (length, destination) = F::validate(packet, present, martians)?;
    let padding = present.saturating_sub(length);
    // A chained packet is longer than any padding.
    if padding > 0 && !buffer.is_chained() && !buffer.trim(padding) {
        return Err(F::LENGTH);
    }
    Ok(destination)
}

impl Validate for V4 {
    const LENGTH: Reason = Reason::Ip4TotalLength;

    #[inline]
    fn validate(
        packet: &[u8],
        present: usize,
        martians: bool,
    ) -> Result<(usize, Destination<u32>), Reason> {
        use ipv4::Malformed;
        let header =
            ipv4::Header::parse_within(packet, present).map_err(|malformed| match malformed {
                Malformed::Truncated => Reason::Ip4Truncated,
                Malformed::Version => Reason::Ip4Version,
                Malformed::HeaderLength => Reason::Ip4HeaderLength,
                Malformed::TotalLength => Reason::Ip4TotalLength,
                Malformed::Checksum => Reason::Ip4Checksum,
            })?;
        let (source, destination) = (header.source(), header.destination());
        if header.has_options() {
            check_options(packet)?;
        }
        if martians && special::is_martian_source_v4(source) {
            return Err(Reason::Ip4MartianSource);
        }
        if martians && special::is_martian_destination_v4(destination) {
            return Err(Reason::Ip4MartianDestination);
        }
        let length = usize::from(header.total_length());
        // RFC 1812 5.3.5.1: not by a default route either, where no interface has an address of its own.
        let to_many = destination.is_multicast() || destination.is_broadcast();
        // RFC 3927 7: whatever the routes say.
        let link_local = source.is_link_local() || destination.is_link_local();
        if to_many || martians && link_local {
            return Ok((length, Destination::OnLink));
        }
        Ok((length, Destination::Routed(destination.to_bits())))
    }
}

/// RFC 7126 4.3, 4.5: packets with source-route options are dropped; other options are passed on.
#[cold]
fn check_options(packet: &[u8]) -> Result<(), Reason> {
    for option in ipv4::Options::new(packet) {
        let option = option.map_err(|_| Reason::Ip4Options)?;
        if option.is_source_route() {
            return Err(Reason::Ip4SourceRoute);
        }
    }
    Ok(())
}

/// Which byte of a packet's options is wrong (RFC 1812 4.3.3.5).
#[cold]
fn option_problem(packet: &[u8]) -> Refusal {
    let at = ipv4::Options::new(packet).find_map(Result::err).map_or(0, |error| error.at);
    Refusal { error: icmp(kind4::PARAMETER_PROBLEM, 0, at.into()), reason: Reason::Ip4Options }
}

impl Validate for V6 {
    const LENGTH: Reason = Reason::Ip6PayloadLength;

    #[inline]
    fn validate(
        packet: &[u8],
        present: usize,
        martians: bool,
    ) -> Result<(usize, Destination<u128>), Reason> {
        use ipv6::Malformed;
        let header =
            ipv6::Header::parse_within(packet, present).map_err(|malformed| match malformed {
                Malformed::Truncated => Reason::Ip6Truncated,
                Malformed::Version => Reason::Ip6Version,
                Malformed::PayloadLength => Reason::Ip6PayloadLength,
            })?;
        let (source, destination) = (header.source(), header.destination());
        let length = header.total_length();
        let to_group = destination.is_multicast();
        // Duplicate address detection comes from `::` (RFC 4862 5.4.2).
        let may_be_unknown = to_group && source.is_unspecified();
        if martians && special::is_martian_source_v6(source) && !may_be_unknown {
            return Err(Reason::Ip6MartianSource);
        }
        if to_group {
            return Ok((length, Destination::OnLink));
        }
        if martians && special::is_martian_destination_v6(destination) {
            return Err(Reason::Ip6MartianDestination);
        }
        if destination.is_unicast_link_local() || source.is_unicast_link_local() {
            return Ok((length, Destination::OnLink));
        }
        Ok((length, Destination::Routed(destination.to_bits())))
    }
}
