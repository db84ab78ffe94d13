//! ARP and neighbour discovery: the tester answers for its own addresses, and asks for those of the device.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::arp::{self, Operation};
use wire::build::{self, Link, Neighbor, Network, Payload};
use wire::ndp::{self, Message};
use wire::vlan::{TAG_LENGTH, Tag, VlanId};
use wire::{EtherType, MacAddr, Protocol, ethernet, icmpv6, ipv6};

use super::addresses::Subnet;

/// Bytes of an answer or a question at most: an Ethernet header with its tag, IPv6, and a message with one option.
pub(super) const LONGEST: usize = 96;
/// The shortest frame, without its check sequence.
const SHORTEST: usize = 60;

/// The tester on one of the networks between it and the device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Station {
    pub(super) mac: MacAddr,
    pub(super) vlan: Option<VlanId>,
    /// Of IPv4 and IPv6.
    pub(super) subnets: [Subnet; 2],
}

impl Station {
    /// Writes the answer to a frame that asks for an address of the tester. Gives its bytes; `None`: it asks for none.
    pub(super) fn answer(&self, frame: &[u8], into: &mut [u8; LONGEST]) -> Option<usize> {
        let (from, ether_type, packet) = self.read(frame)?;
        let written = match ether_type {
            EtherType::ARP => {
                let asked = arp::Packet::parse(packet).ok()?;
                let target =
                    self.own(asked.target().into(), asked.operation() == Operation::Request)?;
                let IpAddr::V4(target) = target else { return None };
                let sender = (asked.sender_mac, asked.sender());
                self.write_arp(Operation::Reply, target, sender, asked.sender_mac, into)
            }
            EtherType::IPV6 => {
                let (source, message) = discovery(packet)?;
                let Message::NeighborSolicitation { target, options } = message else {
                    return None;
                };
                self.own(target.into(), !source.is_unspecified())?;
                let to = options.source_link_layer().unwrap_or(from);
                let flags = ndp::Flags { router: true, solicited: true, override_known: true };
                let target_link_layer = Some(self.mac);
                let told = Neighbor::Advertisement { flags, target, target_link_layer };
                self.write_discovery(target, source, to, told, into)
            }
            _ => return None,
        };
        written.map(|length| length.max(SHORTEST))
    }

    /// Writes the question for an address. Gives its bytes.
    pub(super) fn question(&self, address: IpAddr, into: &mut [u8; LONGEST]) -> Option<usize> {
        let written = match address {
            IpAddr::V4(target) => {
                let to = (MacAddr::ZERO, target);
                let IpAddr::V4(own) = self.subnet(address).next_hop(0) else { return None };
                self.write_arp(Operation::Request, own, to, MacAddr::BROADCAST, into)
            }
            IpAddr::V6(target) => {
                let IpAddr::V6(own) = self.subnet(address).next_hop(0) else { return None };
                let group = ipv6::solicited_node(target);
                let source_link_layer = Some(self.mac);
                let asked = Neighbor::Solicitation { target, source_link_layer };
                self.write_discovery(own, group, MacAddr::from_ipv6_multicast(group), asked, into)
            }
        };
        written.map(|length| length.max(SHORTEST))
    }

    /// The MAC address that a frame tells of an address.
    pub(super) fn told(&self, frame: &[u8], address: IpAddr) -> Option<MacAddr> {
        let (from, ether_type, packet) = self.read(frame)?;
        match ether_type {
            EtherType::ARP => {
                let told = arp::Packet::parse(packet).ok()?;
                (IpAddr::V4(told.sender()) == address).then_some(told.sender_mac)
            }
            EtherType::IPV6 => match discovery(packet)? {
                (_, Message::NeighborAdvertisement { target, options, .. })
                    if IpAddr::V6(target) == address =>
                {
                    Some(options.target_link_layer().unwrap_or(from))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Who sent a frame, and what is in it; `None`: it is of another VLAN.
    fn read<'a>(&self, frame: &'a [u8]) -> Option<(MacAddr, EtherType, &'a [u8])> {
        let (header, rest) = ethernet::Header::parse(frame).ok()?;
        if header.ether_type() != EtherType::VLAN {
            return self.vlan.is_none().then_some((header.source, header.ether_type(), rest));
        }
        let (tag, rest) = Tag::parse(rest).ok()?;
        let ours = self.vlan.is_some_and(|vlan| vlan.get() == tag.id());
        ours.then_some((header.source, tag.ether_type(), rest))
    }

    /// An address, if it is the tester's and somebody asks for it.
    fn own(&self, address: IpAddr, asked: bool) -> Option<IpAddr> {
        (asked && self.subnet(address).has(address)).then_some(address)
    }

    fn subnet(&self, address: IpAddr) -> Subnet {
        self.subnets[usize::from(address.is_ipv6())]
    }

    fn link(&self, destination: MacAddr) -> Link {
        Link { destination, source: self.mac, vlan: self.vlan }
    }

    fn write_arp(
        &self,
        operation: Operation,
        own: Ipv4Addr,
        target: (MacAddr, Ipv4Addr),
        to: MacAddr,
        into: &mut [u8; LONGEST],
    ) -> Option<usize> {
        let packet = arp::Packet::new(operation, (self.mac, own), target);
        build::arp(into, &self.link(to), &packet).ok()
    }

    fn write_discovery(
        &self,
        own: Ipv6Addr,
        destination: Ipv6Addr,
        to: MacAddr,
        message: Neighbor,
        into: &mut [u8; LONGEST],
    ) -> Option<usize> {
        let network = Network::between(own.into(), destination.into(), ndp::HOP_LIMIT)?;
        build::frame(into, &self.link(to), &network, &Payload::Neighbor(message)).ok()
    }
}

/// A message of neighbour discovery, and who sent it.
fn discovery(packet: &[u8]) -> Option<(Ipv6Addr, Message<'_>)> {
    let header = ipv6::Header::parse(packet).ok()?;
    let whole = packet.get(ipv6::HEADER_LENGTH..header.total_length())?;
    let (source, destination) = (header.source(), header.destination());
    let is_icmp = header.next_header() == Protocol::ICMPV6;
    icmpv6::Header::parse(whole, source, destination).ok().filter(|_| is_icmp)?;
    Some((source, ndp::parse(whole, source, destination, header.hop_limit()).ok()?))
}

const _: () = assert!(
    ethernet::HEADER_LENGTH + TAG_LENGTH + ipv6::HEADER_LENGTH + 32 <= LONGEST
        && SHORTEST <= LONGEST
);

#[cfg(test)]
mod tests {
    use super::super::addresses::{DEVICE_MACS, FOUR, SIX, TESTER_MACS};
    use super::*;

    fn station(vlan: Option<u16>) -> Station {
        let vlan = vlan.map(|id| VlanId::new(id).unwrap());
        Station { mac: TESTER_MACS[1], vlan, subnets: [FOUR[1], SIX[1]] }
    }

    /// The device, which asks with the same words.
    fn device(vlan: Option<u16>) -> Station {
        Station { mac: DEVICE_MACS[1], ..station(vlan) }
    }

    fn asked(by: &Station, address: IpAddr) -> Vec<u8> {
        let mut frame = [0; LONGEST];
        let length = by.question(address, &mut frame).unwrap();
        frame[..length].to_vec()
    }

    #[test]
    fn the_tester_answers_for_each_of_its_addresses() {
        for vlan in [None, Some(7)] {
            for subnet in [FOUR[1], SIX[1]] {
                for number in [0, 63] {
                    let address = subnet.next_hop(number);
                    let mut answer = [0; LONGEST];
                    let question = asked(&device(vlan), address);
                    let length = station(vlan).answer(&question, &mut answer).unwrap();
                    assert!(length >= SHORTEST);
                    let told = device(vlan).told(&answer[..length], address);
                    assert_eq!(told, Some(TESTER_MACS[1]), "{address} {vlan:?}");
                    assert_eq!(answer[..6], DEVICE_MACS[1].octets());
                    // It tells of nobody else.
                    assert_eq!(device(vlan).told(&answer[..length], subnet.device()), None);
                }
            }
        }
    }

    #[test]
    fn others_are_left_alone() {
        let answer = |frame: &[u8]| station(None).answer(frame, &mut [0; LONGEST]);
        for address in
            [FOUR[1].device(), FOUR[1].next_hop(64), SIX[1].device(), FOUR[0].next_hop(0)]
        {
            assert_eq!(answer(&asked(&device(None), address)), None, "{address}");
        }
        let question = asked(&device(Some(7)), FOUR[1].next_hop(0));
        assert_eq!(answer(&question), None);
        assert!(station(Some(8)).answer(&question, &mut [0; LONGEST]).is_none());
        // An answer is no question, and what is cut short is nothing.
        let mut reply = [0; LONGEST];
        let question = asked(&device(None), FOUR[1].next_hop(0));
        let length = station(None).answer(&question, &mut reply).unwrap();
        assert_eq!(answer(&reply[..length]), None);
        for six in [FOUR[1].next_hop(0), SIX[1].next_hop(0)] {
            let question = asked(&device(None), six);
            (0..42).for_each(|length| assert_eq!(answer(&question[..length]), None));
        }
        let mut damaged = asked(&device(None), SIX[1].next_hop(0));
        damaged[60] ^= 1;
        assert_eq!(answer(&damaged), None);
    }
}
