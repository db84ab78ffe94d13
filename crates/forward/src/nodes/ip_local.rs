//! `ip-local`: packets to this router itself. Echo requests are answered, neighbour discovery goes
//! to the control thread, all else is refused as a host without that service refuses it.
//!
//! Needs `interface` and `network`.

use std::net::IpAddr;

use graph::{Context, Node, Reason, Slot, Vector};
use wire::{Protocol, checksum, icmpv4, icmpv6, ipv4, ipv6};

use super::family::{Refusal, icmp_word};
use super::local_reply::{self, Way};
use super::lookup::refuse;
use super::snapshot::Snapshot;
use crate::Cause;
use crate::state::Interfaces;

graph::edges! {
    /// Next nodes of `ip-local`.
    pub Next {
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
pub struct IpLocal {
    interfaces: Snapshot<Interfaces>,
}

impl IpLocal {
    /// The node, reading these interfaces.
    #[must_use]
    pub fn new(interfaces: Snapshot<Interfaces>) -> Self {
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
            word: icmp_word(icmpv4::UNREACHABLE, icmpv4::PORT_UNREACHABLE, 0),
            reason: Reason::LocalPort,
        }),
        _ => Verdict::Refuse(Refusal {
            word: icmp_word(icmpv4::UNREACHABLE, icmpv4::PROTOCOL_UNREACHABLE, 0),
            reason: Reason::LocalProtocol,
        }),
    }
}

/// Turns an echo request into its reply (RFC 792; RFC 1812 4.3.3.6).
fn echo4(packet: &mut [u8], length: usize) -> Result<(), Reason> {
    let icmp = packet.get(length..).filter(|icmp| icmp.len() >= 8).ok_or(Reason::IcmpMalformed)?;
    if !checksum::Sum::new().bytes(icmp).is_valid() {
        return Err(Reason::IcmpMalformed);
    }
    if icmp.first() != Some(&icmpv4::ECHO_REQUEST) {
        return Err(Reason::IcmpUnhandled);
    }
    set_type(packet.get_mut(length..).unwrap_or_default(), icmpv4::ECHO_REPLY);
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
    if upper.is_fragment {
        return Verdict::Drop(Reason::LocalFragment);
    }
    match upper.protocol {
        Protocol::ICMPV6 => judge_icmp6(packet, upper.offset, own),
        Protocol::NO_NEXT_HEADER => Verdict::Drop(Reason::LocalProtocol),
        _ if destination.is_multicast() || source.is_unspecified() => {
            Verdict::Drop(Reason::LocalProtocol)
        }
        Protocol::UDP => Verdict::Refuse(Refusal {
            word: icmp_word(icmpv6::UNREACHABLE, icmpv6::PORT_UNREACHABLE, 0),
            reason: Reason::LocalPort,
        }),
        _ => Verdict::Refuse(Refusal {
            word: icmp_word(
                icmpv6::PARAMETER_PROBLEM,
                icmpv6::UNKNOWN_NEXT_HEADER,
                upper.next_header_field as u16,
            ),
            reason: Reason::LocalProtocol,
        }),
    }
}

fn judge_icmp6(packet: &mut [u8], at: usize, own: Option<IpAddr>) -> Verdict {
    let Some(header) = ipv6::Header::peek(packet) else {
        return Verdict::Drop(Reason::Ip6Truncated);
    };
    let (source, destination) = (header.source(), header.destination());
    let Some(icmp) = packet.get(at..).filter(|icmp| icmp.len() >= 8) else {
        return Verdict::Drop(Reason::IcmpMalformed);
    };
    let length = u32::try_from(icmp.len()).unwrap_or(u32::MAX);
    let sum = checksum::Sum::new().pseudo_v6(source, destination, Protocol::ICMPV6, length);
    if !sum.bytes(icmp).is_valid() {
        return Verdict::Drop(Reason::IcmpMalformed);
    }
    match icmp.first() {
        Some(&icmpv6::ECHO_REQUEST) => {}
        Some(133..=137) => return Verdict::Punt(Cause::Nd),
        _ => return Verdict::Drop(Reason::IcmpUnhandled),
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
    let Some(header) = ipv6::Header::peek_mut(packet) else {
        return Verdict::Drop(Reason::Ip6Truncated);
    };
    header.set_addresses(from, source);
    header.set_hop_limit(HOPS);
    let icmp = packet.get_mut(at..).unwrap_or_default();
    if let Some(kind) = icmp.first_mut() {
        *kind = icmpv6::ECHO_REPLY;
    }
    write_sum6(icmp, from, source, length);
    Verdict::Reply(IpAddr::V6(source))
}

fn write_sum6(icmp: &mut [u8], from: std::net::Ipv6Addr, to: std::net::Ipv6Addr, length: u32) {
    if let Some(field) = icmp.get_mut(2..4) {
        field.fill(0);
    }
    let sum = checksum::Sum::new().pseudo_v6(from, to, Protocol::ICMPV6, length);
    let sum = sum.bytes(icmp).finish().to_be_bytes();
    if let Some(field) = icmp.get_mut(2..4) {
        field.copy_from_slice(&sum);
    }
}

/// Changes an ICMP message's type, and its checksum by the difference (RFC 1624).
fn set_type(icmp: &mut [u8], kind: u8) {
    if let [old, code, s0, s1, ..] = icmp {
        let (before, after) = (u16::from_be_bytes([*old, *code]), u16::from_be_bytes([kind, *code]));
        let sum = checksum::update_u16(u16::from_be_bytes([*s0, *s1]), before, after);
        *old = kind;
        [*s0, *s1] = sum.to_be_bytes();
    }
}
