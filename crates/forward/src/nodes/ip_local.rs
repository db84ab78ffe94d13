//! `ip-local`: packets to this router itself. Echo requests are answered, neighbour discovery goes
//! to the control thread, all else is refused as a host without that service refuses it.
//!
//! Needs `interface` and `network`.

use std::net::{IpAddr, Ipv6Addr};

use graph::{Context, Node, Reason, Slot, Vector};
use wire::{Protocol, icmpv4, icmpv6, ipv4, ipv6};

use super::disposal::refuse;
use super::family::{Refusal, icmp_word, kind4, kind6};
use super::local_reply::{self, Way};
use super::snapshot::Snapshot;
use crate::Cause;
use crate::state::Interfaces;

graph::edges! {
    /// Next nodes of `ip-local`.
    pub(crate) Next {
        Output4 => "ip4-output",
        Output6 => "ip6-output",
        Interface => "interface-output",
        Error => "icmp-error",
    }
}

/// Hop count of packets made here.
const HOPS: u8 = 64;

/// What becomes of a packet to this router.
enum Verdict {
    /// It is an echo reply now, to that address.
    Reply(IpAddr),
    Punt(Cause),
    Refuse(Refusal),
    Drop(Reason),
}

/// The node.
pub(crate) struct IpLocal {
    interfaces: Snapshot<Interfaces>,
}

impl IpLocal {
    /// The node, reading these interfaces.
    #[must_use]
    pub(crate) fn new(interfaces: Snapshot<Interfaces>) -> Self {
        Self { interfaces }
    }
}

impl Node for IpLocal {
    type Next = Next;

    fn name(&self) -> &'static str {
        "ip-local"
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let interfaces = self.interfaces.get();
        for &slot in slots {
            let network = usize::from(cx.vector.network[usize::from(slot)]);
            let source6 = interfaces.source(cx.vector.interface[usize::from(slot)], true);
            let peer = local_reply::peer(cx.vector, slot);
            let Some(buffer) = cx.vector.buffer_mut(slot) else { continue };
            if buffer.is_chained() && !buffer.linearize() {
                cx.drop(slot, Reason::NoBuffer);
                continue;
            }
            let packet = buffer.data_mut().get_mut(network..).unwrap_or(&mut []);
            let verdict = match packet.first().map(|byte| byte >> 4) {
                Some(4) => judge4(packet),
                _ => judge6(packet, source6),
            };
            match verdict {
                Verdict::Drop(reason) => cx.drop(slot, reason),
                Verdict::Punt(cause) => cx.punt(slot, cause as u16),
                Verdict::Refuse(refusal) => refuse(cx, slot, refusal, Next::Error),
                Verdict::Reply(to) => {
                    match local_reply::way(cx.vector, slot, interfaces, to, peer) {
                        Some(Way::Routed4) => cx.send(slot, Next::Output4),
                        Some(Way::Routed6) => cx.send(slot, Next::Output6),
                        Some(Way::Link) => cx.send(slot, Next::Interface),
                        None => cx.drop(slot, Reason::NoBuffer),
                    }
                }
            }
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        let packet = vector.network(slot);
        match ipv4::Header::peek(packet) {
            Some(header) => format!("for this router, protocol {}", header.protocol()),
            None => match ipv6::upper_layer(packet) {
                Ok(upper) => format!("for this router, protocol {}", upper.protocol),
                Err(malformed) => format!("for this router, but {malformed}"),
            },
        }
    }
}

fn judge4(packet: &mut [u8]) -> Verdict {
    let Some(header) = ipv4::Header::peek(packet) else {
        return Verdict::Drop(Reason::Ip4Truncated);
    };
    if header.is_fragment() {
        return Verdict::Drop(Reason::LocalFragment);
    }
    let (source, destination) = (header.source(), header.destination());
    let length = header.header_length();
    if destination.is_broadcast() || destination.is_multicast() {
        return Verdict::Drop(Reason::LocalProtocol);
    }
    match header.protocol() {
        Protocol::ICMPV4 => match echo4(packet, length) {
            Ok(()) => Verdict::Reply(IpAddr::V4(source)),
            Err(reason) => Verdict::Drop(reason),
        },
        Protocol::UDP => Verdict::Refuse(Refusal {
            word: icmp_word(kind4::UNREACHABLE, icmpv4::unreachable::PORT, 0),
            reason: Reason::LocalPort,
        }),
        _ => Verdict::Refuse(Refusal {
            word: icmp_word(kind4::UNREACHABLE, icmpv4::unreachable::PROTOCOL, 0),
            reason: Reason::LocalProtocol,
        }),
    }
}

/// Turns an echo request into its reply (RFC 792; RFC 1812 4.3.3.6).
fn echo4(packet: &mut [u8], length: usize) -> Result<(), Reason> {
    let icmp = packet.get_mut(length..).ok_or(Reason::IcmpMalformed)?;
    let (request, _) = icmpv4::Header::parse(icmp).map_err(|_| Reason::IcmpMalformed)?;
    if !matches!(request.message(), icmpv4::Message::EchoRequest { .. }) {
        return Err(Reason::IcmpUnhandled);
    }
    icmpv4::echo_reply_in_place(icmp).map_err(|_| Reason::IcmpMalformed)?;
    let header = ipv4::Header::peek_mut(packet).ok_or(Reason::Ip4Truncated)?;
    let (source, destination) = (header.source(), header.destination());
    header.set_addresses(destination, source);
    header.set_ttl(HOPS);
    ipv4::write_checksum(packet).map_err(|_| Reason::Ip4HeaderLength)
}

fn judge6(packet: &mut [u8], own: Option<IpAddr>) -> Verdict {
    let Some(header) = ipv6::Header::peek(packet) else {
        return Verdict::Drop(Reason::Ip6Truncated);
    };
    let (source, destination) = (header.source(), header.destination());
    let Ok(upper) = ipv6::upper_layer(packet) else {
        return Verdict::Drop(Reason::Ip6Extension);
    };
    if upper.fragment.is_some() {
        return Verdict::Drop(Reason::LocalFragment);
    }
    match upper.protocol {
        Protocol::ICMPV6 => judge_icmp6(packet, upper.offset, own),
        Protocol::NO_NEXT_HEADER => Verdict::Drop(Reason::LocalProtocol),
        _ if destination.is_multicast() || source.is_unspecified() => {
            Verdict::Drop(Reason::LocalProtocol)
        }
        Protocol::UDP => Verdict::Refuse(Refusal {
            word: icmp_word(kind6::UNREACHABLE, icmpv6::unreachable::PORT, 0),
            reason: Reason::LocalPort,
        }),
        _ => Verdict::Refuse(Refusal {
            word: icmp_word(
                kind6::PARAMETER_PROBLEM,
                icmpv6::parameter_problem::NEXT_HEADER,
                u16::try_from(upper.named_at).unwrap_or(0),
            ),
            reason: Reason::LocalProtocol,
        }),
    }
}

fn judge_icmp6(packet: &mut [u8], at: usize, own: Option<IpAddr>) -> Verdict {
    let Some((source, destination)) =
        ipv6::Header::peek(packet).map(|header| (header.source(), header.destination()))
    else {
        return Verdict::Drop(Reason::Ip6Truncated);
    };
    let icmp = packet.get(at..).unwrap_or(&[]);
    let message = match icmpv6::Header::parse(icmp, source, destination) {
        Ok((header, _)) => header.message(),
        Err(_) => return Verdict::Drop(Reason::IcmpMalformed),
    };
    if message.is_neighbor_discovery() {
        return Verdict::Punt(Cause::Nd);
    }
    if !matches!(message, icmpv6::Message::EchoRequest { .. }) {
        return Verdict::Drop(Reason::IcmpUnhandled);
    }
    // RFC 4443 4.2: a reply to a group request comes from an own unicast address.
    let from = match (destination.is_multicast(), own) {
        (false, _) => destination,
        (true, Some(IpAddr::V6(own))) => own,
        (true, _) => return Verdict::Drop(Reason::IcmpNotAllowed),
    };
    if source.is_multicast() || source.is_unspecified() {
        return Verdict::Drop(Reason::IcmpNotAllowed);
    }
    match echo6(packet, at, from, source) {
        Some(()) => Verdict::Reply(IpAddr::V6(source)),
        None => Verdict::Drop(Reason::IcmpMalformed),
    }
}

/// Turns an echo request into its reply (RFC 4443 4.2).
fn echo6(packet: &mut [u8], at: usize, from: Ipv6Addr, to: Ipv6Addr) -> Option<()> {
    let header = ipv6::Header::peek_mut(packet)?;
    header.set_addresses(from, to);
    header.set_hop_limit(HOPS);
    let icmp = packet.get_mut(at..)?;
    icmpv6::echo_reply_in_place(icmp).ok()?;
    icmpv6::write_checksum(icmp, from, to).ok()
}
