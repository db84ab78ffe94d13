//! The router in the middle of the path: it says what does not fit (RFC 792, RFC 4443 3.2).

use std::net::{Ipv4Addr, Ipv6Addr};

use wire::build::{Network, Payload, packet};
use wire::{Protocol, icmpv4, icmpv6, ipv4, ipv6};

const ADDRESS_V4: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);
const ADDRESS_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0xff);

/// The error for the sender of a packet that did not fit. `None`: it was no IP packet.
pub(crate) fn too_big(original: &[u8], mtu: u16) -> Option<Vec<u8>> {
    let (network, payload) = match original.first()? >> 4 {
        4 => {
            let header = ipv4::Header::peek(original)?;
            // RFC 1812 4.3.2.3: as much as fits in 576 bytes.
            let data = original.get(..original.len().min(548))?;
            let message = icmpv4::Message::Unreachable {
                code: icmpv4::unreachable::FRAGMENTATION_NEEDED,
                mtu,
            };
            let fields = ipv4::Fields {
                source: ADDRESS_V4,
                destination: header.source(),
                protocol: Protocol::ICMPV4,
                ttl: 64,
                service: 0,
                identification: 0,
                dont_fragment: false,
            };
            (Network::V4(fields), Payload::Icmpv4 { message, data })
        }
        6 => {
            let header = ipv6::Header::peek(original)?;
            let data = original.get(..original.len().min(1232))?;
            let message = icmpv6::Message::PacketTooBig { mtu: mtu.into() };
            let fields = ipv6::Fields {
                source: ADDRESS_V6,
                destination: header.source(),
                next_header: Protocol::ICMPV6,
                hop_limit: 64,
                traffic_class: 0,
                flow_label: 0,
            };
            (Network::V6(fields), Payload::Icmpv6 { message, data })
        }
        _ => return None,
    };
    let mut bytes = vec![0; 1280];
    let length = packet(&mut bytes, &network, &payload).ok()?;
    bytes.truncate(length);
    Some(bytes)
}
