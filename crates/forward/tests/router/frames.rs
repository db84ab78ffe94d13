//! Frames for the tests.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, missing_docs, reason = "test bed")]

use std::net::IpAddr;

use wire::build::{self, Link, Network, Payload};
use wire::{MacAddr, Protocol, icmpv4, icmpv6, ipv4, ipv6, vlan::VlanId};

use super::router::{host, ip, mac};

/// A frame from the host behind port `port` to the router.
pub(crate) struct FrameBuilder {
    pub(crate) link: Link,
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) hops: u8,
    pub(crate) dont_fragment: bool,
}

pub(crate) fn from(port: u16, destination: &str) -> FrameBuilder {
    let six = destination.contains(':');
    let source = if six { format!("2001:db8:{port}::99") } else { format!("10.0.{port}.99") };
    FrameBuilder {
        link: Link { destination: mac(port as u8), source: host(port), vlan: None },
        source: ip(&source),
        destination: ip(destination),
        hops: 64,
        dont_fragment: false,
    }
}

impl FrameBuilder {
    pub(crate) fn hops(mut self, hops: u8) -> Self {
        self.hops = hops;
        self
    }

    pub(crate) fn source(mut self, source: &str) -> Self {
        self.source = ip(source);
        self
    }

    pub(crate) fn toward(mut self, destination: MacAddr) -> Self {
        self.link.destination = destination;
        self
    }

    pub(crate) fn sent_by(mut self, source: MacAddr) -> Self {
        self.link.source = source;
        self
    }

    pub(crate) fn vlan(mut self, id: u16) -> Self {
        self.link.vlan = Some(VlanId::new(id).unwrap());
        self
    }

    pub(crate) fn dont_fragment(mut self) -> Self {
        self.dont_fragment = true;
        self
    }

    pub(crate) fn udp(self, length: usize) -> Vec<u8> {
        let data: Vec<u8> = (0..length).map(|at| at as u8).collect();
        self.payload(&Payload::Udp { source_port: 1111, destination_port: 2222, data: &data })
    }

    pub(crate) fn echo(self, length: usize) -> Vec<u8> {
        let data: Vec<u8> = (0..length).map(|at| at as u8).collect();
        let (identifier, sequence) = (7, 9);
        if self.destination.is_ipv4() {
            let message = icmpv4::Message::EchoRequest { identifier, sequence };
            self.payload(&Payload::Icmpv4 { message, data: &data })
        } else {
            let message = icmpv6::Message::EchoRequest { identifier, sequence };
            self.payload(&Payload::Icmpv6 { message, data: &data })
        }
    }

    pub(crate) fn raw(self, protocol: u8, data: &[u8]) -> Vec<u8> {
        self.payload(&Payload::Raw { protocol: Protocol(protocol), data })
    }

    pub(crate) fn payload(self, payload: &Payload<'_>) -> Vec<u8> {
        let network = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Network::V4(ipv4::Fields {
                source,
                destination,
                protocol: Protocol::UDP,
                ttl: self.hops,
                service: 0,
                identification: 0x1234,
                dont_fragment: self.dont_fragment,
            }),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Network::V6(ipv6::Fields {
                source,
                destination,
                next_header: Protocol::UDP,
                hop_limit: self.hops,
                traffic_class: 0,
                flow_label: 0,
            }),
            _ => panic!("two families in one packet"),
        };
        let mut bytes = vec![0; 9000];
        let length = build::frame(&mut bytes, &self.link, &network, payload).unwrap();
        bytes.truncate(length);
        bytes
    }
}
