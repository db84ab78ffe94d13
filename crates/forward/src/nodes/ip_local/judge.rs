//! What a router itself says to a packet that no stack has.

use std::net::{IpAddr, Ipv4Addr};

use graph::{IcmpError, Reason};
use wire::{Protocol, icmpv4, icmpv6, ipv4, ipv6};

use super::super::family::{Family, Refusal, V4, V6, icmp, kind4, kind6};
use crate::Cause;

/// Hop count of packets made here.
pub(super) const HOPS: u8 = 64;

/// Where an IPv4 header names its protocol (RFC 791 3.1).
const PROTOCOL_AT: usize = 9;

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

/// `from`: from which address to answer what was asked of one by another.
pub(super) fn judge(packet: &mut [u8], from: impl Fn(IpAddr, IpAddr) -> Option<IpAddr>) -> Verdict {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => judge_as::<V4>(packet, from),
        _ => judge_as::<V6>(packet, from),
    }
}

fn judge_as<F: Host>(
    packet: &mut [u8],
    from: impl Fn(IpAddr, IpAddr) -> Option<IpAddr>,
) -> Verdict {
    if let Some(verdict) = F::objection(packet) {
        return verdict;
    }
    let upper = match F::upper(packet) {
        Ok(upper) => upper,
        Err(reason) => return Verdict::Drop(reason),
    };
    let to_group = is_group(upper.destination);
    match upper.protocol {
        _ if to_group && !F::ECHOES_TO_GROUPS => Verdict::Drop(Reason::LocalProtocol),
        protocol if protocol == F::ICMP => judge_icmp::<F>(packet, &upper, from),
        _ if to_group => Verdict::Drop(Reason::LocalProtocol),
        Protocol::TCP => Verdict::Reset,
        Protocol::UDP => {
            Verdict::Refuse(Refusal { error: F::PORT_UNREACHABLE, reason: Reason::LocalPort })
        }
        _ => match F::protocol_unreachable(&upper) {
            Some(error) => Verdict::Refuse(Refusal { error, reason: Reason::LocalProtocol }),
            None => Verdict::Drop(Reason::LocalProtocol),
        },
    }
}

fn judge_icmp<F: Host>(
    packet: &mut [u8],
    upper: &Upper,
    from: impl Fn(IpAddr, IpAddr) -> Option<IpAddr>,
) -> Verdict {
    let &Upper { source, destination, .. } = upper;
    match F::message(packet, upper) {
        None => return Verdict::Drop(Reason::IcmpMalformed),
        Some(Message::NeighborDiscovery) => return Verdict::Punt(Cause::Nd),
        Some(Message::Other) => return Verdict::Drop(Reason::IcmpUnhandled),
        Some(Message::EchoRequest) => {}
    }
    let Some(from) =
        from(destination, source).filter(|_| !is_group(source) && !source.is_unspecified())
    else {
        return Verdict::Drop(Reason::IcmpNotAllowed);
    };
    match F::echo(packet, upper.at, from, source) {
        Some(()) => Verdict::Reply(source),
        None => Verdict::Drop(Reason::IcmpMalformed),
    }
}

fn is_group(address: IpAddr) -> bool {
    address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// What a packet carries, and between whom.
struct Upper {
    source: IpAddr,
    destination: IpAddr,
    protocol: Protocol,
    /// Where it begins in the packet.
    at: usize,
    /// Where the packet says what it is.
    named_at: usize,
}

/// What an ICMP message is to a host.
enum Message {
    EchoRequest,
    NeighborDiscovery,
    Other,
}

/// What differs between the families in a host's answers.
trait Host: Family {
    /// The family's ICMP.
    const ICMP: Protocol;
    /// Whether echo requests to groups are answered: RFC 1122 3.2.2.6 leaves it to the host, RFC 4443 4.2 does not.
    const ECHOES_TO_GROUPS: bool;
    /// Nobody has the port.
    const PORT_UNREACHABLE: IcmpError;

    /// What becomes of a packet whose headers ask for something that nobody does here.
    fn objection(packet: &[u8]) -> Option<Verdict>;
    /// What a packet carries, or why it is dropped.
    fn upper(packet: &[u8]) -> Result<Upper, Reason>;
    /// Nobody knows the protocol. `None`: it says that nobody has to.
    fn protocol_unreachable(upper: &Upper) -> Option<IcmpError>;
    /// What the ICMP message of a packet is. `None`: malformed.
    fn message(packet: &[u8], upper: &Upper) -> Option<Message>;
    /// Turns an echo request, whose ICMP header is at `at`, into its reply. `None`: malformed.
    fn echo(packet: &mut [u8], at: usize, from: IpAddr, to: IpAddr) -> Option<()>;
}

impl Host for V4 {
    const ICMP: Protocol = Protocol::ICMPV4;
    const ECHOES_TO_GROUPS: bool = false;
    const PORT_UNREACHABLE: IcmpError = icmp(kind4::UNREACHABLE, icmpv4::unreachable::PORT, 0);

    /// Source routes were dropped on the way here, and other options ask for nothing.
    fn objection(_: &[u8]) -> Option<Verdict> {
        None
    }

    fn upper(packet: &[u8]) -> Result<Upper, Reason> {
        let header = ipv4::Header::peek(packet).ok_or(Reason::Ip4Truncated)?;
        Ok(Upper {
            source: header.source().into(),
            destination: header.destination().into(),
            protocol: header.protocol(),
            at: header.header_length(),
            named_at: PROTOCOL_AT,
        })
    }

    fn protocol_unreachable(_: &Upper) -> Option<IcmpError> {
        Some(icmp(kind4::UNREACHABLE, icmpv4::unreachable::PROTOCOL, 0))
    }

    fn message(packet: &[u8], upper: &Upper) -> Option<Message> {
        let (header, _) = icmpv4::Header::parse(packet.get(upper.at..)?).ok()?;
        Some(match header.message() {
            icmpv4::Message::EchoRequest { .. } => Message::EchoRequest,
            _ => Message::Other,
        })
    }

    /// RFC 792; RFC 1812 4.3.3.6
    fn echo(packet: &mut [u8], at: usize, from: IpAddr, to: IpAddr) -> Option<()> {
        let (IpAddr::V4(from), IpAddr::V4(to)) = (from, to) else { return None };
        icmpv4::echo_reply_in_place(packet.get_mut(at..)?).ok()?;
        let header = ipv4::Header::peek_mut(packet)?;
        header.set_addresses(from, to);
        header.set_ttl(HOPS);
        ipv4::write_checksum(packet).ok()
    }
}

impl Host for V6 {
    const ICMP: Protocol = Protocol::ICMPV6;
    const ECHOES_TO_GROUPS: bool = true;
    const PORT_UNREACHABLE: IcmpError = icmp(kind6::UNREACHABLE, icmpv6::unreachable::PORT, 0);

    fn objection(packet: &[u8]) -> Option<Verdict> {
        let ipv6::Objection { code, pointer } = ipv6::objection(packet)?;
        let reason = Reason::Ip6Extension;
        let told = code.map(|code| {
            let pointer = u16::try_from(pointer).unwrap_or(0);
            let error = icmp(kind6::PARAMETER_PROBLEM, code, pointer);
            Verdict::Refuse(Refusal { error, reason })
        });
        Some(told.unwrap_or(Verdict::Drop(reason)))
    }

    fn upper(packet: &[u8]) -> Result<Upper, Reason> {
        let header = ipv6::Header::peek(packet).ok_or(Reason::Ip6Truncated)?;
        let upper = ipv6::upper_layer(packet).map_err(|_| Reason::Ip6Extension)?;
        Ok(Upper {
            source: header.source().into(),
            destination: header.destination().into(),
            protocol: upper.protocol,
            at: upper.offset,
            named_at: upper.named_at,
        })
    }

    fn protocol_unreachable(upper: &Upper) -> Option<IcmpError> {
        let named_at = u16::try_from(upper.named_at).unwrap_or(0);
        let error =
            icmp(kind6::PARAMETER_PROBLEM, icmpv6::parameter_problem::NEXT_HEADER, named_at);
        (upper.protocol != Protocol::NO_NEXT_HEADER).then_some(error)
    }

    fn message(packet: &[u8], upper: &Upper) -> Option<Message> {
        let (IpAddr::V6(source), IpAddr::V6(destination)) = (upper.source, upper.destination)
        else {
            return None;
        };
        let bytes = packet.get(upper.at..)?;
        let (header, _) = icmpv6::Header::parse(bytes, source, destination).ok()?;
        let message = header.message();
        Some(match message {
            icmpv6::Message::EchoRequest { .. } => Message::EchoRequest,
            _ if message.is_neighbor_discovery() => Message::NeighborDiscovery,
            _ => Message::Other,
        })
    }

    /// RFC 4443 4.2
    fn echo(packet: &mut [u8], at: usize, from: IpAddr, to: IpAddr) -> Option<()> {
        let (IpAddr::V6(from), IpAddr::V6(to)) = (from, to) else { return None };
        let header = ipv6::Header::peek_mut(packet)?;
        header.set_addresses(from, to);
        header.set_hop_limit(HOPS);
        let icmp = packet.get_mut(at..)?;
        icmpv6::echo_reply_in_place(icmp).ok()?;
        icmpv6::write_checksum(icmp, from, to).ok()
    }
}
