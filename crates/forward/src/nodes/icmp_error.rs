//! `icmp-error`: tells the sender why its packet was dropped, where the standards allow it.
//!
//! The drop is counted where the packet is refused; only an error that could not be made counts here (`no-buffer`).
//!
//! Needs `interface`, `network` and `icmp_error`. The dropped packet becomes the quotation: the new headers are written in
//! front of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use dpdk::Buffer;
use graph::{Context, IcmpError, InterfaceId, Node, Reason, Slot, Vector};
use wire::icmpv6::parameter_problem;
use wire::{Protocol, checksum, icmpv4, icmpv6, ipv4, ipv6};
use zerocopy::IntoBytes;

use super::bucket::TokenBucket;
use super::family::kind6;
use super::local_reply::{self, Way};
use super::snapshot::Snapshot;
use crate::state::{Interfaces, Settings};

graph::edges! {
    /// Next nodes of `icmp-error`.
    pub(crate) Next {
        Output4 => "ip4-output",
        Output6 => "ip6-output",
        Vrf4 => "ip4-vrf-output",
        Vrf6 => "ip6-vrf-output",
        Interface => "interface-output",
    }
}

/// RFC 1812 4.3.2.3: as much of the packet as fits 576 bytes with the new headers.
const QUOTE4: usize = 576 - ICMP4;
/// RFC 4443 2.4 (c): as much as fits the minimum MTU with the new headers.
const QUOTE6: usize = 1280 - ICMP6;
/// New headers: IPv4 and ICMP.
const ICMP4: usize = 20 + 8;
/// New headers: IPv6 and ICMPv6.
const ICMP6: usize = 40 + 8;
/// ICMPv6 type of a redirect (RFC 4861 4.5).
const REDIRECT: u8 = 137;
/// Hop count of packets made here.
const HOPS: u8 = 64;
/// RFC 1812 4.3.2.5: ICMP errors have precedence 6, internetwork control.
const SERVICE: u8 = 0xc0;

/// The node.
pub(crate) struct IcmpErrors {
    interfaces: Snapshot<Interfaces>,
    settings: Snapshot<Settings>,
    bucket: TokenBucket,
}

impl IcmpErrors {
    /// The node; the settings give the rate (RFC 1812 4.3.2.8, RFC 4443 2.4 (f)).
    #[must_use]
    pub(crate) fn new(interfaces: Snapshot<Interfaces>, mut settings: Snapshot<Settings>) -> Self {
        let Settings { icmp_rate, tsc_hz, .. } = *settings.get();
        Self { interfaces, settings, bucket: TokenBucket::new(icmp_rate, tsc_hz) }
    }
}

impl Node for IcmpErrors {
    type Next = Next;

    fn name(&self) -> &'static str {
        "icmp-error"
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let interfaces = self.interfaces.get();
        let Settings { icmp_rate, tsc_hz, .. } = *self.settings.get();
        self.bucket.set_rate(icmp_rate, tsc_hz);
        for &slot in slots {
            let at = usize::from(slot);
            let error = cx.vector.icmp_error[at];
            let six = cx.vector.network(slot).first().is_some_and(|byte| byte >> 4 == 6);
            let allowed =
                if six { allowed6(cx.vector, slot, error) } else { allowed4(cx.vector, slot) };
            let id = cx.vector.interface[at];
            let source = allowed.then(|| source(interfaces, id, cx.vector.network(slot))).flatten();
            let Some(source) = source else {
                cx.free(slot);
                continue;
            };
            if !self.bucket.take(cx.now) {
                cx.exits.counters.icmp_limited.add(1);
                cx.free(slot);
                continue;
            }
            let network = usize::from(cx.vector.network[at]);
            let peer = local_reply::peer(cx.vector, slot);
            let Some(buffer) = cx.vector.buffer_mut(slot) else { continue };
            let Some(to) = write(buffer, network, error, source) else {
                cx.drop(slot, Reason::NoBuffer);
                continue;
            };
            match local_reply::way(cx.vector, slot, interfaces, to, peer) {
                Some(Way::Routed4) => cx.send(slot, Next::Output4),
                Some(Way::Routed6) => cx.send(slot, Next::Output6),
                Some(Way::Vrf4) => cx.send(slot, Next::Vrf4),
                Some(Way::Vrf6) => cx.send(slot, Next::Vrf6),
                Some(Way::Link) => cx.send(slot, Next::Interface),
                None => cx.drop(slot, Reason::NoBuffer),
            }
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        let IcmpError { kind, code, .. } = vector.icmp_error[usize::from(slot)];
        format!("ICMP error type {kind} code {code} to its sender")
    }
}

/// Whom the error comes from: the address that the packet was sent to if it is an own one (RFC 4443 2.2 (a), RFC 1122
/// 3.2.1.3), else one that its sender can reach.
fn source(interfaces: &Interfaces, id: InterfaceId, packet: &[u8]) -> Option<IpAddr> {
    let (to, about) = ends(packet)?;
    if interfaces.is_own(id, about) { Some(about) } else { interfaces.source(id, to) }
}

/// Source and destination address of a packet.
fn ends(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    if let Some(header) = ipv4::Header::peek(packet) {
        return Some((header.source().into(), header.destination().into()));
    }
    let header = ipv6::Header::peek(packet)?;
    Some((header.source().into(), header.destination().into()))
}

/// RFC 1812 4.3.2.7: about which packets nothing may be said.
fn allowed4(vector: &Vector, slot: Slot) -> bool {
    let packet = vector.network(slot);
    let Some(header) = ipv4::Header::peek(packet) else { return false };
    let (source, destination) = (header.source(), header.destination());
    let one_host = |address: Ipv4Addr| {
        let first = address.octets()[0];
        first != 0 && first != 127 && first < 224
    };
    let about_error = header.protocol() == Protocol::ICMPV4
        && packet
            .get(header.header_length()..)
            .and_then(icmpv4::Header::peek)
            .is_none_or(|(icmp, _)| icmp.message().is_error());
    header.fragment_offset() == 0
        && one_host(source)
        && !destination.is_multicast()
        && !destination.is_broadcast()
        && !about_error
}

/// RFC 4443 2.4 (e).
fn allowed6(vector: &Vector, slot: Slot, error: IcmpError) -> bool {
    let packet = vector.network(slot);
    let Some(header) = ipv6::Header::peek(packet) else { return false };
    let source = header.source();
    let to_group = header.destination().is_multicast();
    let said_to_groups = error.kind == kind6::PACKET_TOO_BIG
        || (error.kind == kind6::PARAMETER_PROBLEM && error.code == parameter_problem::OPTION);
    let about_error = match ipv6::upper_layer(packet) {
        Ok(upper) if upper.is_later_fragment() => true,
        Ok(upper) if upper.protocol == Protocol::ICMPV6 => {
            let icmp = packet.get(upper.offset..).and_then(icmpv6::Header::peek);
            icmp.is_none_or(|(icmp, _)| icmp.message().is_error() || icmp.kind() == REDIRECT)
        }
        _ => false,
    };
    !source.is_unspecified()
        && !source.is_multicast()
        && !source.is_loopback()
        && (!to_group || said_to_groups)
        && !about_error
}

/// Makes the error out of the packet, from the network header on, and returns whom it goes to.
fn write(buffer: &mut Buffer, network: usize, error: IcmpError, source: IpAddr) -> Option<IpAddr> {
    let (quote, headers) = match source {
        IpAddr::V4(_) => (QUOTE4, ICMP4),
        IpAddr::V6(_) => (QUOTE6, ICMP6),
    };
    // Of a long packet in several buffers the start is enough, unless it is in several, too.
    let cut =
        buffer.truncate(network + quote) || buffer.linearize() && buffer.truncate(network + quote);
    if !cut || buffer.prepend(headers).is_none() {
        return None;
    }
    let packet = buffer.data_mut().get_mut(network..)?;
    match source {
        IpAddr::V4(source) => write4(packet, error, source).map(IpAddr::V4),
        IpAddr::V6(source) => write6(packet, error, source).map(IpAddr::V6),
    }
}

fn write4(packet: &mut [u8], error: IcmpError, source: Ipv4Addr) -> Option<Ipv4Addr> {
    let to = ipv4::Header::peek(packet.get(ICMP4..)?)?.source();
    let length = u16::try_from(packet.len()).ok()?;
    let fields = ipv4::Fields {
        service: SERVICE,
        ttl: HOPS,
        protocol: Protocol::ICMPV4,
        source,
        destination: to,
        identification: 0,
        dont_fragment: true,
    };
    packet.get_mut(..20)?.copy_from_slice(fields.header(length).as_bytes());
    let icmp = packet.get_mut(20..)?;
    icmp.get_mut(..8)?.copy_from_slice(&icmp_header(
        error,
        [0, 0, (error.detail >> 8) as u8, error.detail as u8],
    ));
    let sum = checksum::of(icmp).to_be_bytes();
    icmp.get_mut(2..4)?.copy_from_slice(&sum);
    Some(to)
}

fn write6(packet: &mut [u8], error: IcmpError, source: Ipv6Addr) -> Option<Ipv6Addr> {
    let to = ipv6::Header::peek(packet.get(ICMP6..)?)?.source();
    let length = u16::try_from(packet.len() - 40).ok()?;
    let fields = ipv6::Fields {
        next_header: Protocol::ICMPV6,
        hop_limit: HOPS,
        source,
        destination: to,
        traffic_class: SERVICE,
        flow_label: 0,
    };
    packet.get_mut(..40)?.copy_from_slice(fields.header(length).as_bytes());
    let icmp = packet.get_mut(40..)?;
    icmp.get_mut(..8)?.copy_from_slice(&icmp_header(error, u32::from(error.detail).to_be_bytes()));
    let sum = checksum::Sum::new().pseudo_v6(source, to, Protocol::ICMPV6, u32::from(length));
    let sum = sum.bytes(icmp).finish().to_be_bytes();
    icmp.get_mut(2..4)?.copy_from_slice(&sum);
    Some(to)
}

fn icmp_header(error: IcmpError, detail: [u8; 4]) -> [u8; 8] {
    [error.kind, error.code, 0, 0, detail[0], detail[1], detail[2], detail[3]]
}
