//! `icmp-error`: tells the sender why its packet was dropped, where the standards allow it.
//!
//! The drop is counted where the packet is refused; only an error that could not be made counts here (`no-buffer`).
//!
//! Needs `interface`, `network` and `icmp_error`. The dropped packet becomes the quotation: the new headers are written in
//! front of it.

use std::net::{IpAddr, Ipv4Addr};

use dpdk::Buffer;
use graph::{Context, IcmpError, InterfaceId, Node, Reason, Slot, Vector};
use wire::checksum::Sum;
use wire::ethernet::Header;
use wire::icmpv6::parameter_problem;
use wire::{Protocol, icmpv4, icmpv6, ipv4, ipv6};
use zerocopy::IntoBytes;

use super::bucket::TokenBucket;
use super::family::{Family, V4, V6, kind4, kind6};
use super::local_reply::{self, ReplyPath};
use super::snapshot::Snapshot;
use crate::state::{Interfaces, Settings};

/// Bytes of an ICMP header in front of what is quoted.
const ICMP: usize = 8;
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

    /// Makes the error out of a packet, if its sender may be told.
    fn tell<F: Errors>(&mut self, slot: Slot, cx: &mut Context<'_, ReplyPath>) {
        let at = usize::from(slot);
        let (error, id) = (cx.vector.icmp_error[at], cx.vector.interface[at]);
        let packet = cx.vector.network(slot);
        if !F::may_be_told(packet, came_to_many(cx.vector, slot), error) {
            return cx.free(slot);
        }
        // Before all interfaces are looked through: a flood of packets that are refused is not to cost that.
        if self.bucket.is_dry(cx.now) {
            cx.exits.counters.icmp_limited.add(1);
            return cx.free(slot);
        }
        let interfaces = self.interfaces.get();
        // RFC 1812 4.3.2.7: neither about what was to all hosts of a network, whatever its frame, nor to all of them.
        let one_host = |address| !interfaces.is_directed_broadcast(id, address);
        let allowed = ends(packet).is_some_and(|(from, to)| one_host(from) && one_host(to));
        let source = allowed.then(|| source(interfaces, id, packet)).flatten();
        let Some(source) = source.filter(|_| self.bucket.take(cx.now)) else {
            return cx.free(slot);
        };
        let network = usize::from(cx.vector.network[at]);
        let peer = local_reply::peer(cx.vector, slot);
        let Some(buffer) = cx.vector.buffer_mut(slot) else { return };
        let Some(to) = write::<F>(buffer, network, error, source) else {
            return cx.drop(slot, Reason::NoBuffer);
        };
        match local_reply::prepare(cx.vector, slot, interfaces, to, peer) {
            Some(path) => cx.send(slot, path),
            None => cx.drop(slot, Reason::NoBuffer),
        }
    }
}

impl Node for IcmpErrors {
    type Next = ReplyPath;

    fn name(&self) -> &'static str {
        "icmp-error"
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, ReplyPath>) {
        let Settings { icmp_rate, tsc_hz, .. } = *self.settings.get();
        self.bucket.set_rate(icmp_rate, tsc_hz);
        for &slot in slots {
            match cx.vector.network(slot).first().map(|byte| byte >> 4) {
                Some(6) => self.tell::<V6>(slot, cx),
                _ => self.tell::<V4>(slot, cx),
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

/// Whether a packet came in a frame for a group of stations. What a stack has sent has no addresses in its header.
pub(super) fn came_to_many(vector: &Vector, slot: Slot) -> bool {
    let frame = vector.buffer(slot).map_or(&[][..], |buffer| buffer.data());
    Header::parse(frame).is_ok_and(|(header, _)| header.destination.is_group())
}

/// Source and destination address of a packet.
fn ends(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    if let Some(header) = ipv4::Header::peek(packet) {
        return Some((header.source().into(), header.destination().into()));
    }
    let header = ipv6::Header::peek(packet)?;
    Some((header.source().into(), header.destination().into()))
}

/// What differs between ICMP and ICMPv6 in errors.
trait Errors: Family {
    /// Bytes of an IP header.
    const IP: usize;
    /// Bytes of an error at most, with its quotation.
    const LONGEST: usize;

    /// Whether the sender of a packet may be told of an error. `to_many`: its frame was for a group of stations.
    fn may_be_told(packet: &[u8], to_many: bool, error: IcmpError) -> bool;

    /// What an error says behind type, code and checksum.
    fn rest_of_header(error: IcmpError) -> [u8; 4];

    /// Writes the IP header ahead of so many bytes of ICMP; gives the sum that the ICMP checksum begins with. `None`:
    /// addresses of the other family.
    fn put_header(ip: &mut [u8], source: IpAddr, to: IpAddr, length: usize) -> Option<Sum>;
}

impl Errors for V4 {
    const IP: usize = ipv4::HEADER_LENGTH;
    /// RFC 1812 4.3.2.3
    const LONGEST: usize = 576;

    /// RFC 1812 4.3.2.7
    fn may_be_told(packet: &[u8], to_many: bool, _: IcmpError) -> bool {
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
            && !to_many
            && one_host(source)
            && !destination.is_multicast()
            && !destination.is_broadcast()
            && !about_error
    }

    fn rest_of_header(IcmpError { kind, detail, .. }: IcmpError) -> [u8; 4] {
        match (kind, detail.to_be_bytes()) {
            (kind4::PARAMETER_PROBLEM, [_, pointer]) => [pointer, 0, 0, 0],
            (_, [high, low]) => [0, 0, high, low],
        }
    }

    fn put_header(ip: &mut [u8], source: IpAddr, to: IpAddr, length: usize) -> Option<Sum> {
        let (IpAddr::V4(source), IpAddr::V4(destination)) = (source, to) else { return None };
        let fields = ipv4::Fields {
            service: SERVICE,
            ttl: HOPS,
            protocol: Protocol::ICMPV4,
            source,
            destination,
            identification: 0,
            dont_fragment: true,
        };
        let length = u16::try_from(Self::IP + length).ok()?;
        ip.copy_from_slice(fields.header(length).as_bytes());
        Some(Sum::new())
    }
}

impl Errors for V6 {
    const IP: usize = ipv6::HEADER_LENGTH;
    /// RFC 4443 2.4 (c): the minimum MTU.
    const LONGEST: usize = 1280;

    /// RFC 4443 2.4 (e). Later fragments are told of, too, other than in IPv4: each has to be that is too big (3.2). None is
    /// of an error, which fits the smallest MTU (2.4 (c)).
    fn may_be_told(packet: &[u8], to_many: bool, error: IcmpError) -> bool {
        let Some(header) = ipv6::Header::peek(packet) else { return false };
        let source = header.source();
        let to_group = to_many || header.destination().is_multicast();
        let told_to_groups = error.kind == kind6::PACKET_TOO_BIG
            || (error.kind == kind6::PARAMETER_PROBLEM && error.code == parameter_problem::OPTION);
        let about_error = match ipv6::upper_layer(packet) {
            Ok(upper) if upper.protocol == Protocol::ICMPV6 && !upper.is_later_fragment() => {
                let icmp = packet.get(upper.offset..).and_then(icmpv6::Header::peek);
                icmp.is_none_or(|(icmp, _)| icmp.message().is_error() || icmp.kind() == REDIRECT)
            }
            _ => false,
        };
        !source.is_unspecified()
            && !source.is_multicast()
            && !source.is_loopback()
            && (!to_group || told_to_groups)
            && !about_error
    }

    fn rest_of_header(IcmpError { detail, .. }: IcmpError) -> [u8; 4] {
        u32::from(detail).to_be_bytes()
    }

    fn put_header(ip: &mut [u8], source: IpAddr, to: IpAddr, length: usize) -> Option<Sum> {
        let (IpAddr::V6(source), IpAddr::V6(destination)) = (source, to) else { return None };
        let fields = ipv6::Fields {
            next_header: Protocol::ICMPV6,
            hop_limit: HOPS,
            source,
            destination,
            traffic_class: SERVICE,
            flow_label: 0,
        };
        let length = u16::try_from(length).ok()?;
        ip.copy_from_slice(fields.header(length).as_bytes());
        Some(Sum::new().pseudo_v6(source, destination, Protocol::ICMPV6, u32::from(length)))
    }
}

/// Makes the error out of the packet, from the network header on, and returns whom it goes to.
fn write<F: Errors>(
    buffer: &mut Buffer,
    network: usize,
    error: IcmpError,
    source: IpAddr,
) -> Option<IpAddr> {
    let headers = F::IP + ICMP;
    let end = network + F::LONGEST - headers;
    // Of a long packet in several buffers the start is enough, unless it is in several, too.
    let cut = buffer.truncate(end) || buffer.linearize() && buffer.truncate(end);
    if !cut || buffer.prepend(headers).is_none() {
        return None;
    }
    // The frame's header stays ahead of the packet, for a packet that goes back by it: see `reflect`.
    if let Some(start) = buffer.data_mut().get_mut(..headers + network) {
        start.copy_within(headers.., 0);
    }
    let packet = buffer.data_mut().get_mut(network..)?;
    let (to, _) = ends(packet.get(headers..)?)?;
    let (ip, icmp) = packet.split_at_mut_checked(F::IP)?;
    let sum = F::put_header(ip, source, to, icmp.len())?;
    let [a, b, c, d] = F::rest_of_header(error);
    icmp.get_mut(..ICMP)?.copy_from_slice(&[error.kind, error.code, 0, 0, a, b, c, d]);
    let sum = sum.bytes(icmp).finish().to_be_bytes();
    icmp.get_mut(2..4)?.copy_from_slice(&sum);
    Some(to)
}
