//! The packets of the in-memory source.

use std::net::IpAddr;

use dpdk::yardstick::Template;
use measure::load::Mix;
use tables::Prefix;
use wire::build::{self, Link, Network, Payload};
use wire::{MacAddr, Protocol, ipv4, ipv6};

use super::addresses::Destination;
use super::frames::Frames;
use super::prefixes::host;
use super::random::Random;
use crate::failure::Failure;

/// The first bytes of each packet, and its length.
pub(crate) struct Packets {
    pub(crate) templates: Vec<Template>,
    pub(crate) lengths: Vec<u16>,
}

impl Packets {
    /// One packet of each of `flows` flows, each to a random address in a random one of `routes`,
    /// to the router's `mac`. With a mix of sizes there are at least as many packets as it takes.
    pub(crate) fn new<A: Destination>(
        routes: &[Prefix<A>],
        flows: usize,
        frames: Frames,
        mac: MacAddr,
    ) -> Result<Self, Failure> {
        let mut random = Random::new(4);
        let mut sizes: Vec<u16> = match frames {
            Frames::Fixed(size) => vec![size],
            Frames::Mix => {
                let parts = Mix::Operator.parts().iter();
                parts.flat_map(|(size, count)| vec![*size; *count]).collect()
            }
        };
        random.shuffle(&mut sizes);
        let count = flows.next_multiple_of(sizes.len());
        let mut packets =
            Self { templates: Vec::with_capacity(count), lengths: Vec::with_capacity(count) };
        let mut known: Vec<Flow> = Vec::with_capacity(flows);
        for (n, size) in (0..count).zip(sizes.iter().cycle()) {
            let flow = match known.get(n % flows) {
                Some(flow) => *flow,
                None => {
                    let flow = Flow::new(routes, n, &mut random)?;
                    known.push(flow);
                    flow
                }
            };
            packets.templates.push(flow.template(*size, mac)?);
            packets.lengths.push(*size);
        }
        Ok(packets)
    }
}

#[derive(Clone, Copy)]
struct Flow {
    source: IpAddr,
    destination: IpAddr,
    ports: [u16; 2],
}

impl Flow {
    fn new<A: Destination>(
        routes: &[Prefix<A>],
        n: usize,
        random: &mut Random,
    ) -> Result<Self, Failure> {
        // Special addresses are few in any real table: a bound for one that has nothing else.
        let found = (0..1000).find_map(|_| {
            let address = host(*routes.get(random.below(routes.len()))?, random);
            address.is_routed().then_some(address)
        });
        let found = found.ok_or(Failure::NoPrefixes("usable"))?;
        let ports = [1024 + (random.next() % 60_000) as u16, 53];
        Ok(Self { source: A::source(n), destination: found.address(), ports })
    }

    /// The start of this flow's packet of `size` bytes, whose data is zero.
    fn template(&self, size: u16, mac: MacAddr) -> Result<Template, Failure> {
        let network = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Network::V4(ipv4::Fields {
                source,
                destination,
                protocol: Protocol::UDP,
                ttl: 64,
                service: 0,
                identification: 0,
                dont_fragment: false,
            }),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Network::V6(ipv6::Fields {
                source,
                destination,
                next_header: Protocol::UDP,
                hop_limit: 64,
                traffic_class: 0,
                flow_label: 0,
            }),
            _ => return Err(Failure::NoPrefixes("usable")),
        };
        let headers = 14 + 8 + if self.source.is_ipv4() { 20 } else { 40 };
        let data = vec![0; usize::from(size).saturating_sub(headers)];
        let [source_port, destination_port] = self.ports;
        let payload = Payload::Udp { source_port, destination_port, data: &data };
        let sender = MacAddr::new([2, 0, 0, 0, 1, 0]);
        let link = Link { destination: mac, source: sender, vlan: None };
        let mut frame = vec![0; usize::from(size).max(64)];
        build::frame(&mut frame, &link, &network, &payload)?;
        let mut header = [0; 64];
        header.iter_mut().zip(frame).for_each(|(to, from)| *to = from);
        Ok(Template { header })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Prefixes, sample};

    const MAC: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 1]);

    #[test]
    fn ipv4_packets_are_valid_and_hit_their_routes() {
        let routes = sample(&Prefixes::generate(1).v4, 50, 1);
        let packets = Packets::new(&routes, 500, Frames::Fixed(64), MAC).unwrap();
        assert_eq!((packets.templates.len(), packets.lengths.len()), (500, 500));
        let mut destinations = std::collections::HashSet::new();
        for template in &packets.templates {
            let (link, packet) = wire::ethernet::Header::parse(&template.header).unwrap();
            assert_eq!(link.destination, MAC);
            // The checksum is verified with the rest.
            let header = ipv4::Header::parse(packet).unwrap();
            assert_eq!((header.ttl(), header.total_length()), (64, 50));
            let destination = header.destination().to_bits();
            assert!(routes.iter().any(|route| route.contains(destination)));
            destinations.insert(destination);
        }
        assert!(destinations.len() > 400);
    }

    #[test]
    fn ipv6_packets_are_valid_and_hit_their_routes() {
        let routes = sample(&Prefixes::generate(1).v6, 50, 1);
        let packets = Packets::new(&routes, 100, Frames::Fixed(64), MAC).unwrap();
        for template in &packets.templates {
            let header = ipv6::Header::parse(&template.header[14..]).unwrap();
            assert_eq!(header.hop_limit(), 64);
            let destination = u128::from(header.destination());
            assert!(routes.iter().any(|route| route.contains(destination)));
        }
    }

    #[test]
    fn the_mix_has_its_shares_and_length_fields_agree() {
        let routes = sample(&Prefixes::generate(1).v4, 5, 1);
        let packets = Packets::new(&routes, 1, Frames::Mix, MAC).unwrap();
        for (size, count) in Mix::Operator.parts() {
            assert_eq!(packets.lengths.iter().filter(|length| *length == size).count(), *count);
        }
        let flow = |template: &Template| <[u8; 12]>::try_from(&template.header[26..38]).unwrap();
        assert!(packets.templates.iter().all(|t| flow(t) == flow(&packets.templates[0])));
        for (template, length) in packets.templates.iter().zip(&packets.lengths) {
            let header = ipv4::Header::peek(&template.header[14..]).unwrap();
            assert_eq!(header.total_length() + 14, *length);
        }
    }
}
