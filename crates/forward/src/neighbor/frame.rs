//! The frames that neighbour resolution sends: whole and untagged.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::MacAddr;
use wire::arp::{Operation, Packet};
use wire::build::{self, Link, Neighbor, Network, Payload};
use wire::ndp::{Flags, HOP_LIMIT};
use wire::protocol::Protocol;
use wire::{ipv6, prefix::Ipv4Prefix, prefix::Ipv6Prefix};

use crate::state::Interface;

/// Bytes that each of these frames fits: Ethernet, IPv6, a neighbour message with one option.
const ROOM: usize = 14 + 40 + 24 + 8;

/// ff02::1, all nodes of the link.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// A question for `target`: to its known address, or to all. `None`: the interface has no address
/// to ask from.
pub(super) fn question(
    from: &Interface,
    target: IpAddr,
    known: Option<MacAddr>,
) -> Option<Vec<u8>> {
    match target {
        IpAddr::V4(target) => {
            let source = source4(from, target);
            let destination = known.unwrap_or(MacAddr::BROADCAST);
            let packet =
                Packet::new(Operation::Request, (from.mac, source), (MacAddr::ZERO, target));
            arp(from.mac, destination, &packet)
        }
        IpAddr::V6(target) => {
            let group = ipv6::solicited_node(target);
            let (destination, address) = match known {
                Some(mac) => (mac, target),
                None => (MacAddr::from_ipv6_multicast(group), group),
            };
            let source = source6(from, target)?;
            let message = Neighbor::Solicitation { target, source_link_layer: Some(from.mac) };
            neighbor(from.mac, destination, (source, address), message)
        }
    }
}

/// The answer to an ARP request for `own`.
pub(super) fn arp_reply(mac: MacAddr, own: Ipv4Addr, to: (MacAddr, Ipv4Addr)) -> Option<Vec<u8>> {
    arp(mac, to.0, &Packet::new(Operation::Reply, (mac, own), to))
}

/// The answer to a solicitation for `own`: to the asker, or to all when it has no address yet
/// (RFC 4861 7.2.4). An anycast address does not override.
pub(super) fn advertisement(
    mac: MacAddr,
    own: Ipv6Addr,
    to: Option<(MacAddr, Ipv6Addr)>,
    source: Ipv6Addr,
    override_known: bool,
) -> Option<Vec<u8>> {
    let solicited = to.is_some();
    let to = to.unwrap_or((MacAddr::from_ipv6_multicast(ALL_NODES), ALL_NODES));
    let flags = Flags { router: true, solicited, override_known };
    let message = Neighbor::Advertisement { flags, target: own, target_link_layer: Some(mac) };
    neighbor(mac, to.0, (source, to.1), message)
}

/// Tells all on the link that `own` is here: gratuitous ARP (RFC 5227 2.3), unsolicited
/// advertisement (RFC 4861 7.2.6).
pub(super) fn announcement(mac: MacAddr, own: IpAddr) -> Option<Vec<u8>> {
    match own {
        IpAddr::V4(own) => {
            let packet = Packet::new(Operation::Request, (mac, own), (MacAddr::ZERO, own));
            arp(mac, MacAddr::BROADCAST, &packet)
        }
        IpAddr::V6(own) => advertisement(mac, own, None, own, true),
    }
}

fn arp(source: MacAddr, destination: MacAddr, packet: &Packet) -> Option<Vec<u8>> {
    let mut frame = vec![0; ROOM];
    let length = build::arp(&mut frame, &Link { destination, source, vlan: None }, packet).ok()?;
    frame.truncate(length);
    Some(frame)
}

fn neighbor(
    source: MacAddr,
    destination: MacAddr,
    addresses: (Ipv6Addr, Ipv6Addr),
    message: Neighbor,
) -> Option<Vec<u8>> {
    let fields = ipv6::Fields {
        source: addresses.0,
        destination: addresses.1,
        next_header: Protocol::ICMPV6,
        hop_limit: HOP_LIMIT,
        traffic_class: 0,
        flow_label: 0,
    };
    let link = Link { destination, source, vlan: None };
    let mut frame = vec![0; ROOM];
    let payload = Payload::Neighbor(message);
    let length = build::frame(&mut frame, &link, &Network::V6(fields), &payload).ok()?;
    frame.truncate(length);
    Some(frame)
}

/// The own address on the target's network, else any of the interface's; 0.0.0.0 where it has none
/// (RFC 5227 calls that a probe; hosts answer it).
fn source4(from: &Interface, target: Ipv4Addr) -> Ipv4Addr {
    let shares = |(own, length): &&(Ipv4Addr, u8)| {
        Ipv4Prefix::containing(*own, *length).is_ok_and(|network| network.contains(target))
    };
    let own = &from.addresses4;
    own.iter().find(shares).or(own.first()).map_or(Ipv4Addr::UNSPECIFIED, |(address, _)| *address)
}

/// The own address on the target's network, else the link-local one, else any.
pub(super) fn source6(from: &Interface, target: Ipv6Addr) -> Option<Ipv6Addr> {
    let shares = |(own, length): &&(Ipv6Addr, u8)| {
        Ipv6Prefix::containing(*own, *length).is_ok_and(|network| network.contains(target))
    };
    let own = &from.addresses6;
    let local = || own.iter().find(|(address, _)| address.is_unicast_link_local());
    own.iter().find(shares).or_else(local).or(own.first()).map(|(address, _)| *address)
}
