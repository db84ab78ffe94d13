//! Packets put right, changed, made up and looked at.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use wire::build::{Network, Payload, packet};
use wire::checksum::Sum;
use wire::{Protocol, icmpv4, icmpv6, ipv4, ipv6, tcp, udp};

use crate::bytes::Bytes;

pub const ADDRESSES_V4: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
pub const ADDRESSES_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2)];

/// Where the upper layer begins, and its protocol, when there are no IP options or extensions.
fn plain(packet: &[u8]) -> Option<(usize, Protocol)> {
    match packet.first()? >> 4 {
        4 => Some((20, ipv4::Header::peek(packet)?.protocol())),
        6 => Some((40, ipv6::Header::peek(packet)?.next_header())),
        _ => None,
    }
}

fn pseudo(packet: &[u8], protocol: Protocol, length: usize) -> Option<Sum> {
    Some(if packet.first()? >> 4 == 4 {
        let header = ipv4::Header::peek(packet)?;
        Sum::new().pseudo_v4(header.source(), header.destination(), protocol, length as u16)
    } else {
        let header = ipv6::Header::peek(packet)?;
        Sum::new().pseudo_v6(header.source(), header.destination(), protocol, length as u32)
    })
}

/// Puts lengths and checksums right, as far as there is something to put right.
pub fn repair(packet: &mut [u8]) -> Option<()> {
    let (start, protocol) = plain(packet)?;
    let length = packet.len();
    if start == 20 {
        let header = ipv4::Header::peek_mut(packet)?;
        header.set_header_length(20);
        header.set_total_length(length as u16);
        header.set_fragment(true, false, 0);
        ipv4::write_checksum(packet).ok()?;
    } else {
        ipv6::Header::peek_mut(packet)?.set_payload_length(length.checked_sub(40)? as u16);
    }
    let place = start
        + match protocol {
            Protocol::TCP => 16,
            Protocol::UDP => 6,
            Protocol::ICMPV4 | Protocol::ICMPV6 => 2,
            _ => return None,
        };
    if protocol == Protocol::UDP {
        packet
            .get_mut(start + 4..start + 6)?
            .copy_from_slice(&((length - start) as u16).to_be_bytes());
    }
    packet.get_mut(place..place + 2)?.fill(0);
    let sum = match protocol {
        Protocol::ICMPV4 => Sum::new(),
        _ => pseudo(packet, protocol, length - start)?,
    };
    let checksum = sum.bytes(packet.get(start..)?).finish_udp();
    packet.get_mut(place..place + 2)?.copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

/// Changes fields of a segment near what they were, so that it stays of interest.
pub fn change(packet: &mut Vec<u8>, bytes: &mut Bytes<'_>) {
    let Some((start, protocol)) = plain(packet) else { return };
    let what = bytes.byte();
    if protocol == Protocol::TCP && packet.len() >= start + 20 {
        let add = |packet: &mut [u8], at: usize, by: i16| {
            let field: [u8; 4] = packet[at..at + 4].try_into().unwrap();
            let value = u32::from_be_bytes(field).wrapping_add(by as u32);
            packet[at..at + 4].copy_from_slice(&value.to_be_bytes());
        };
        if what & 1 != 0 {
            add(packet, start + 4, bytes.word() as i16);
        }
        if what & 2 != 0 {
            add(packet, start + 8, bytes.word() as i16);
        }
        if what & 4 != 0 {
            packet[start + 13] = bytes.byte();
        }
        if what & 8 != 0 {
            packet[start + 14..start + 16].copy_from_slice(&bytes.word().to_be_bytes());
        }
        if what & 16 != 0 {
            // Other options.
            let words = usize::from(bytes.byte() % 11);
            let options = bytes.take(words * 4).to_vec();
            let whole = options.len() / 4 * 4;
            let old = usize::from(packet[start + 12] >> 4) * 4;
            let end = (start + old.max(20)).min(packet.len());
            packet.splice(start + 20..end, options[..whole].iter().copied());
            packet[start + 12] = ((20 + whole) as u8 / 4) << 4 | packet[start + 12] & 1;
        }
        if what & 32 != 0 {
            packet[start + 12] ^= 1;
        }
    }
    if what & 64 != 0 {
        let length = usize::from(bytes.word() % 2000);
        packet.resize((start + 20).max(packet.len().min(length)), 0);
    }
    if what & 128 != 0 {
        let at = usize::from(bytes.word()) % packet.len();
        packet[at] ^= bytes.byte();
    }
    let _ = repair(packet);
}

/// An ICMP error from a router about a packet.
pub fn icmp_error(quoted: &[u8], bytes: &mut Bytes<'_>) -> Option<Vec<u8>> {
    let (kind, code, rest) = (bytes.byte(), bytes.byte(), bytes.long());
    let data = quoted.get(..quoted.len().min(usize::from(bytes.byte()) + 28))?;
    let mut target = vec![0; 1500];
    let (network, payload) = if quoted.first()? >> 4 == 4 {
        let fields = ipv4::Fields {
            source: Ipv4Addr::new(10, 9, 9, 9),
            destination: ipv4::Header::peek(quoted)?.source(),
            protocol: Protocol::ICMPV4,
            ttl: 64,
            service: 0,
            identification: 0,
            dont_fragment: false,
        };
        let message = match kind % 4 {
            0 => icmpv4::Message::Unreachable { code: code % 16, mtu: rest as u16 },
            1 => icmpv4::Message::Unreachable { code: 4, mtu: rest as u16 },
            2 => icmpv4::Message::TimeExceeded { code: code % 2 },
            _ => icmpv4::Message::Other { kind: code, code, rest: rest.to_be_bytes() },
        };
        (Network::V4(fields), Payload::Icmpv4 { message, data })
    } else {
        let fields = ipv6::Fields {
            source: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 9),
            destination: ipv6::Header::peek(quoted)?.source(),
            next_header: Protocol::ICMPV6,
            hop_limit: 64,
            traffic_class: 0,
            flow_label: 0,
        };
        let message = match kind % 3 {
            0 => icmpv6::Message::Unreachable { code: code % 8 },
            1 => icmpv6::Message::PacketTooBig { mtu: rest >> (code % 32) },
            _ => icmpv6::Message::TimeExceeded { code: code % 2 },
        };
        (Network::V6(fields), Payload::Icmpv6 { message, data })
    };
    let length = packet(&mut target, &network, &payload).ok()?;
    target.truncate(length);
    Some(target)
}

/// What a sent segment says of its sender's window, for who looks at the right edge.
pub struct Told {
    /// Source and destination.
    pub flow: (SocketAddr, SocketAddr),
    pub flags: u8,
    pub ack: u32,
    pub window: u16,
}

/// Checks a packet that a stack has sent.
pub fn check(packet: &[u8]) -> Option<Told> {
    let (source, destination, protocol, start): (IpAddr, IpAddr, _, _) = if packet[0] >> 4 == 4 {
        let header = ipv4::Header::parse(packet).expect("a sound IPv4 header");
        assert_eq!(usize::from(header.total_length()), packet.len());
        (header.source().into(), header.destination().into(), header.protocol(), 20)
    } else {
        let header = ipv6::Header::parse(packet).expect("a sound IPv6 header");
        assert_eq!(header.total_length(), packet.len());
        (header.source().into(), header.destination().into(), header.next_header(), 40)
    };
    assert!(!source.is_multicast() && !source.is_unspecified(), "{source} to {destination}");
    let body = &packet[start..];
    let sum = pseudo(packet, protocol, body.len()).expect("addresses");
    match protocol {
        Protocol::TCP => {
            let segment = tcp::Segment::parse(body).expect("a sound segment");
            assert!(segment.is_intact(sum));
            assert!(segment.options().all(|option| option.is_ok()), "{:?}", segment.options);
            let header = segment.header;
            Some(Told {
                flow: (
                    (source, header.source_port()).into(),
                    (destination, header.destination_port()).into(),
                ),
                flags: header.flags().0,
                ack: header.acknowledgment(),
                window: header.window(),
            })
        }
        Protocol::UDP => {
            let (header, data) = udp::Header::parse(body).expect("a sound datagram");
            header.verify(data, sum, false).expect("its checksum");
            None
        }
        Protocol::ICMPV4 => {
            icmpv4::Header::parse(body).expect("a sound error");
            None
        }
        _ => {
            let sound = ipv6::Header::peek(packet).is_some_and(|header| {
                icmpv6::Header::parse(body, header.source(), header.destination()).is_ok()
            });
            assert!(sound, "a sound error");
            None
        }
    }
}
