//! What a router itself says to a packet that no stack has.

use std::net::{IpAddr, Ipv6Addr};

use graph::Reason;
use wire::{Protocol, icmpv4, icmpv6, ipv4, ipv6};

use super::super::family::{Refusal, icmp, kind4, kind6};
use crate::Cause;

/// Hop count of packets made here.
pub(super) const HOPS: u8 = 64;

/// What becomes of a packet to this router.
pub(super) enum Verdict {
    /// It is an echo reply now, to that address.
    Reply(IpAddr),
    /// A TCP segment, to be answered with a reset.
    Reset,
    Punt(Cause),
    Refuse(Refusal),
    Drop(Reason),
}

/// `own`: from which address to answer another, when the request went to a group.
pub(super) fn judge(packet: &mut [u8], own: impl Fn(IpAddr) -> Option<IpAddr>) -> Verdict {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => judge4(packet),
        _ => judge6(packet, own),
    }
}

fn judge4(packet: &mut [u8]) -> Verdict {
    let Some(header) = ipv4::Header::peek(packet) else {
        return Verdict::Drop(Reason::Ip4Truncated);
    };
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
        Protocol::TCP => Verdict::Reset,
        Protocol::UDP => Verdict::Refuse(Refusal {
            error: icmp(kind4::UNREACHABLE, icmpv4::unreachable::PORT, 0),
            reason: Reason::LocalPort,
        }),
        _ => Verdict::Refuse(Refusal {
            error: icmp(kind4::UNREACHABLE, icmpv4::unreachable::PROTOCOL, 0),
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

fn judge6(packet: &mut [u8], own: impl Fn(IpAddr) -> Option<IpAddr>) -> Verdict {
    let Some(header) = ipv6::Header::peek(packet) else {
        return Verdict::Drop(Reason::Ip6Truncated);
    };
    let (source, destination) = (header.source(), header.destination());
    let Ok(upper) = ipv6::upper_layer(packet) else {
        return Verdict::Drop(Reason::Ip6Extension);
    };
    match upper.protocol {
        Protocol::ICMPV6 => judge_icmp6(packet, upper.offset, own),
        Protocol::NO_NEXT_HEADER => Verdict::Drop(Reason::LocalProtocol),
        _ if destination.is_multicast() || source.is_unspecified() => {
            Verdict::Drop(Reason::LocalProtocol)
        }
        Protocol::TCP => Verdict::Reset,
        Protocol::UDP => Verdict::Refuse(Refusal {
            error: icmp(kind6::UNREACHABLE, icmpv6::unreachable::PORT, 0),
            reason: Reason::LocalPort,
        }),
        _ => Verdict::Refuse(Refusal {
            error: icmp(
                kind6::PARAMETER_PROBLEM,
                icmpv6::parameter_problem::NEXT_HEADER,
                u16::try_from(upper.named_at).unwrap_or(0),
            ),
            reason: Reason::LocalProtocol,
        }),
    }
}

fn judge_icmp6(packet: &mut [u8], at: usize, own: impl Fn(IpAddr) -> Option<IpAddr>) -> Verdict {
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
    let from = match destination.is_multicast().then(|| own(source.into())) {
        None => destination,
        Some(Some(IpAddr::V6(own))) => own,
        Some(_) => return Verdict::Drop(Reason::IcmpNotAllowed),
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
