//! Segments from a line's words, and words about segments.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::build::{Network, Payload, packet};
use wire::checksum::Sum;
use wire::tcp::{Fields, Flags, Option as TcpOption};
use wire::{Protocol, icmpv4, icmpv6, ipv4, ipv6, tcp};

use crate::line::Line;
use crate::port::Sent;

/// Host and peer.
pub(crate) fn addresses(v6: bool) -> [IpAddr; 2] {
    if v6 {
        [1, 2].map(|n| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n).into())
    } else {
        [1, 2].map(|n| Ipv4Addr::new(192, 0, 2, n).into())
    }
}

const FLAGS: [(&str, u8); 8] = [
    ("FIN", 1),
    ("SYN", 2),
    ("RST", 4),
    ("PSH", 8),
    ("ACK", 16),
    ("URG", 32),
    ("ECE", 64),
    ("CWR", 128),
];

/// A segment's fields; numbers are as they are on the wire.
#[derive(Debug, Clone, Default)]
pub(crate) struct Segment {
    pub(crate) ports: (u16, u16),
    pub(crate) flags: u8,
    /// The ninth flag (RFC 9768).
    pub(crate) ae: bool,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) window: u16,
    pub(crate) urgent: u16,
    pub(crate) options: Vec<u8>,
    pub(crate) data: Vec<u8>,
    pub(crate) ecn: u8,
    pub(crate) dont_fragment: bool,
}

pub(crate) fn flags(line: &Line) -> u8 {
    FLAGS.iter().filter(|(name, _)| line.has(name)).map(|(_, bit)| bit).sum()
}

pub(crate) fn flag_names(flags: u8, ae: bool) -> String {
    let names = FLAGS.iter().filter(|(_, bit)| flags & bit != 0).map(|(name, _)| *name);
    names.chain(ae.then_some("AE")).collect::<Vec<_>>().join(" ")
}

fn network(v6: bool, [from, to]: [IpAddr; 2], protocol: Protocol, ecn: u8) -> Network {
    match (from, to) {
        (IpAddr::V4(source), IpAddr::V4(destination)) if !v6 => Network::V4(ipv4::Fields {
            source,
            destination,
            protocol,
            ttl: 64,
            service: ecn,
            identification: 0,
            dont_fragment: true,
        }),
        (IpAddr::V6(source), IpAddr::V6(destination)) => Network::V6(ipv6::Fields {
            source,
            destination,
            next_header: protocol,
            hop_limit: 64,
            traffic_class: ecn,
            flow_label: 0,
        }),
        _ => panic!("versions"),
    }
}

impl Segment {
    /// As a packet from the peer.
    pub(crate) fn to_packet(&self, v6: bool) -> Vec<u8> {
        let [host, peer] = addresses(v6);
        let fields = Fields {
            source_port: self.ports.0,
            destination_port: self.ports.1,
            sequence: self.seq,
            acknowledgment: self.ack,
            flags: Flags(self.flags),
            window: self.window,
        };
        let mut bytes = vec![0; 66_000];
        let payload = Payload::Tcp { fields, options: &self.options, data: &self.data };
        let network = network(v6, [peer, host], Protocol::TCP, self.ecn);
        let length = packet(&mut bytes, &network, &payload).unwrap();
        bytes.truncate(length);
        if self.ae || self.urgent != 0 {
            let start = if v6 { 40 } else { 20 };
            let place = |at: usize| start + at;
            let old = u16::from_be_bytes([bytes[place(16)], bytes[place(17)]]);
            bytes[place(12)] |= u8::from(self.ae);
            bytes[place(18)..place(20)].copy_from_slice(&self.urgent.to_be_bytes());
            // RFC 1624 3, equation 3.
            let sum = wire::checksum::update_u16(old, 0, u16::from(self.ae) << 8);
            let sum = wire::checksum::update_u16(sum, 0, self.urgent);
            bytes[place(16)..place(18)].copy_from_slice(&sum.to_be_bytes());
        }
        bytes
    }

    /// Of a packet that the host has sent: lengths and checksums must be right.
    pub(crate) fn of_packet(sent: &Sent) -> Result<Self, String> {
        let packet = &sent.bytes;
        let (start, total, ecn, dont_fragment, pseudo) = if packet[0] >> 4 == 4 {
            let header = ipv4::Header::parse(packet).map_err(|why| format!("IPv4: {why:?}"))?;
            let total = usize::from(header.total_length());
            let (from, to) = (header.source(), header.destination());
            let sum = Sum::new().pseudo_v4(from, to, Protocol::TCP, total as u16 - 20);
            (20, total, header.ecn(), header.dont_fragment(), sum)
        } else {
            let header = ipv6::Header::parse(packet).map_err(|why| format!("IPv6: {why:?}"))?;
            let total = header.total_length();
            let (from, to) = (header.source(), header.destination());
            let sum = Sum::new().pseudo_v6(from, to, Protocol::TCP, total as u32 - 40);
            (40, total, header.ecn(), true, sum)
        };
        if total != packet.len() {
            return Err(format!("{} bytes, {total} by its header", packet.len()));
        }
        let segment =
            tcp::Segment::parse(&packet[start..]).map_err(|why| format!("TCP: {why:?}"))?;
        let header = segment.header;
        let intact = if sent.segment_size == 0 {
            segment.is_intact(pseudo)
        } else {
            // The port fills in the rest.
            header.checksum() == !pseudo.finish()
        };
        if !intact {
            return Err("the TCP checksum is wrong".into());
        }
        Ok(Self {
            ports: (header.source_port(), header.destination_port()),
            flags: header.flags().0,
            ae: packet[start + 12] & 1 != 0,
            seq: header.sequence(),
            ack: header.acknowledgment(),
            window: header.window(),
            urgent: header.urgent(),
            options: segment.options.to_vec(),
            data: segment.data.to_vec(),
            ecn,
            dont_fragment,
        })
    }

    /// Whether the flag is set.
    pub(crate) fn has(&self, name: &str) -> bool {
        FLAGS.iter().any(|(flag, bit)| *flag == name && self.flags & bit != 0)
    }

    /// Sequence number of its first byte of data.
    pub(crate) fn data_start(&self) -> u32 {
        self.seq.wrapping_add(u32::from(self.has("SYN")))
    }

    /// The Fast Open cookie that it carries.
    pub(crate) fn cookie(&self) -> Option<&[u8]> {
        tcp::Options::new(&self.options).map_while(Result::ok).find_map(|option| match option {
            TcpOption::Other { kind: 34, data } if !data.is_empty() => Some(data),
            _ => None,
        })
    }

    pub(crate) fn timestamps(&self) -> Option<(u32, u32)> {
        tcp::Options::new(&self.options).map_while(Result::ok).find_map(|option| match option {
            TcpOption::Timestamps { value, echo } => Some((value, echo)),
            _ => None,
        })
    }
}

/// An ICMP error from a router about a packet: `kind` as in the scripts.
pub(crate) fn icmp(quoted: &[u8], kind: &str, mtu: u16) -> Option<Vec<u8>> {
    let v6 = quoted[0] >> 4 == 6;
    let router: IpAddr = if v6 { "fd00::9".parse().ok()? } else { "192.0.2.9".parse().ok()? };
    let host = addresses(v6)[0];
    let mut bytes = vec![0; 1280];
    let data = &quoted[..quoted.len().min(100)];
    let length = if v6 {
        use icmpv6::{Message, unreachable};
        let message = match kind {
            "too-big" => Message::PacketTooBig { mtu: mtu.into() },
            "no-port" => Message::Unreachable { code: unreachable::PORT },
            "no-host" => Message::Unreachable { code: unreachable::ADDRESS },
            "prohibited" => Message::Unreachable { code: unreachable::ADMINISTRATIVELY_PROHIBITED },
            "parameter" => Message::ParameterProblem { code: 0, pointer: 40 },
            _ => return None,
        };
        let network = network(v6, [router, host], Protocol::ICMPV6, 0);
        packet(&mut bytes, &network, &Payload::Icmpv6 { message, data })
    } else {
        use icmpv4::{Message, unreachable};
        let message = match kind {
            "too-big" => Message::Unreachable { code: unreachable::FRAGMENTATION_NEEDED, mtu },
            "no-port" => Message::Unreachable { code: unreachable::PORT, mtu: 0 },
            "no-host" => Message::Unreachable { code: unreachable::HOST, mtu: 0 },
            "prohibited" => {
                Message::Unreachable { code: unreachable::ADMINISTRATIVELY_PROHIBITED, mtu: 0 }
            }
            "parameter" => Message::ParameterProblem { code: 0, pointer: 20 },
            _ => return None,
        };
        let network = network(v6, [router, host], Protocol::ICMPV4, 0);
        packet(&mut bytes, &network, &Payload::Icmpv4 { message, data })
    };
    bytes.truncate(length.unwrap());
    Some(bytes)
}
