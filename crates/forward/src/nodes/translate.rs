//! New addresses and ports in a packet, with its checksums put right by the difference (RFC 1624).

use std::net::IpAddr;

use wire::{Protocol, checksum, ipv4, ipv6};

use crate::flow::Rewrite;

/// Where the parts of a packet are: offsets from its network header.
struct Layout {
    source: usize,
    destination: usize,
    /// IPv4's header checksum.
    header_sum: Option<usize>,
    /// Ports, unless this is a later fragment or the protocol has none.
    ports: Option<usize>,
    /// Checksum that covers addresses and ports.
    sum: Option<usize>,
    /// Checksum 0 means that there is none, and a sum of 0 is written as 0xffff: UDP, and UDP-Lite, whose packets all have one.
    udp: bool,
}

/// Rewrites a packet, from its network header on. What does not fit the packet is left as it is.
pub(super) fn apply(packet: &mut [u8], rewrite: &Rewrite) {
    let Some(layout) = layout(packet) else { return };
    if let Some(address) = rewrite.source {
        set_address(packet, &layout, layout.source, address);
    }
    if let Some(address) = rewrite.destination {
        set_address(packet, &layout, layout.destination, address);
    }
    if let Some(at) = layout.ports {
        if let Some(port) = rewrite.source_port {
            set_word(packet, &layout, at, port);
        }
        if let Some(port) = rewrite.destination_port {
            set_word(packet, &layout, at + 2, port);
        }
    }
}

fn layout(packet: &[u8]) -> Option<Layout> {
    let (protocol, upper, later, four) = match packet.first()? >> 4 {
        4 => {
            let header = ipv4::Header::peek(packet)?;
            let later = header.fragment_offset() != 0;
            (header.protocol(), header.header_length(), later, true)
        }
        _ => {
            let upper = ipv6::upper_layer(packet).ok()?;
            (upper.protocol, upper.offset, upper.is_later_fragment(), false)
        }
    };
    let sum = match protocol {
        _ if later => None,
        Protocol::TCP => Some(upper + 16),
        Protocol::UDP | Protocol::UDP_LITE => Some(upper + 6),
        Protocol::ICMPV6 => Some(upper + 2),
        _ => None,
    };
    let udp = matches!(protocol, Protocol::UDP | Protocol::UDP_LITE);
    let ports = (udp || protocol == Protocol::TCP) && !later;
    Some(Layout {
        source: if four { 12 } else { 8 },
        destination: if four { 16 } else { 24 },
        header_sum: four.then_some(10),
        ports: ports.then_some(upper),
        sum,
        udp,
    })
}

fn set_address(packet: &mut [u8], layout: &Layout, at: usize, address: IpAddr) {
    let (four, six);
    let bytes: &[u8] = match address {
        IpAddr::V4(address) => {
            four = address.octets();
            &four
        }
        IpAddr::V6(address) => {
            six = address.octets();
            &six
        }
    };
    for (offset, word) in bytes.chunks_exact(2).enumerate() {
        let word = u16::from_be_bytes([word[0], word[1]]);
        set_word(packet, layout, at + 2 * offset, word);
    }
}

/// Writes one 16-bit word, and the checksums that cover it.
fn set_word(packet: &mut [u8], layout: &Layout, at: usize, new: u16) {
    let Some(old) = word(packet, at) else { return };
    put(packet, at, new);
    let in_header = layout.ports.is_none_or(|ports| at < ports);
    if let Some((sum, before)) = found(packet, layout.header_sum.filter(|_| in_header)) {
        put(packet, sum, checksum::update_u16(before, old, new));
    }
    if let Some((sum, before)) = found(packet, layout.sum) {
        if layout.udp && before == 0 {
            return;
        }
        let after = checksum::update_u16(before, old, new);
        put(packet, sum, if layout.udp && after == 0 { u16::MAX } else { after });
    }
}

fn found(packet: &[u8], at: Option<usize>) -> Option<(usize, u16)> {
    at.and_then(|at| Some((at, word(packet, at)?)))
}

fn word(packet: &[u8], at: usize) -> Option<u16> {
    packet.get(at..at + 2).map(|word| u16::from_be_bytes([word[0], word[1]]))
}

fn put(packet: &mut [u8], at: usize, word: u16) {
    if let Some(room) = packet.get_mut(at..at + 2) {
        room.copy_from_slice(&word.to_be_bytes());
    }
}
