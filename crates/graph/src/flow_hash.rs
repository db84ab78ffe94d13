//! The hash that keeps the packets of a flow together.

use dpdk::Buffer;
use wire::{EtherType, Protocol, ethernet, ipv4, ipv6, vlan};

/// VLAN tags that are looked behind at most.
const TAGS: usize = 2;

/// The device's RSS hash where it has one, else a hash of the addresses, the protocol and the
/// ports; of the addresses alone for fragments, whose ports only the first one has; of the frame's
/// MAC addresses when it is not IP.
pub(crate) fn flow_hash(buffer: &Buffer) -> u32 {
    buffer.rss_hash().unwrap_or_else(|| frame_hash(buffer.data()))
}

fn frame_hash(frame: &[u8]) -> u32 {
    let Ok((header, mut rest)) = ethernet::Header::parse(frame) else { return 0 };
    let mut ether_type = header.ether_type();
    for _ in 0..TAGS {
        if ether_type.is_vlan() {
            let Ok((tag, after)) = vlan::Tag::parse(rest) else { break };
            (ether_type, rest) = (tag.ether_type(), after);
        }
    }
    let hashed = match ether_type {
        EtherType::IPV4 => ip4(rest),
        EtherType::IPV6 => ip6(rest),
        _ => None,
    };
    hashed.unwrap_or_else(|| {
        // Both addresses, and nothing else: a bridged conversation stays in order.
        let mut mix = Mix::new();
        frame[..12].chunks(4).for_each(|part| mix.word(word(part)));
        mix.end()
    })
}

fn ip4(packet: &[u8]) -> Option<u32> {
    let header = ipv4::Header::peek(packet)?;
    let mut mix = Mix::new();
    mix.word(header.source().to_bits());
    mix.word(header.destination().to_bits());
    if !header.is_fragment() {
        mix.ports(header.protocol(), packet.get(header.header_length()..));
    }
    Some(mix.end())
}

fn ip6(packet: &[u8]) -> Option<u32> {
    let header = ipv6::Header::peek(packet)?;
    let mut mix = Mix::new();
    for address in [header.source(), header.destination()] {
        address.octets().chunks(4).for_each(|part| mix.word(word(part)));
    }
    if let Ok(upper) = ipv6::upper_layer(packet) {
        if upper.fragment.is_none() {
            mix.ports(upper.protocol, packet.get(upper.offset..));
        }
    }
    Some(mix.end())
}

fn word(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

/// A multiply-and-fold hash: its upper bits, which choose the worker, depend on every word.
struct Mix(u64);

impl Mix {
    /// Odd, with its bits evenly mixed: 2^64 divided by the golden ratio.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

    fn new() -> Self {
        Self(Self::FACTOR)
    }

    fn word(&mut self, word: u32) {
        let mixed = (self.0 ^ u64::from(word)).wrapping_mul(Self::FACTOR);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn ports(&mut self, protocol: Protocol, header: Option<&[u8]>) {
        self.word(protocol.0.into());
        if let Some(ports) = header.and_then(|header| header.get(..4)) {
            if protocol.has_ports() {
                self.word(word(ports));
            }
        }
    }

    fn end(self) -> u32 {
        (self.0.wrapping_mul(Self::FACTOR) >> 32) as u32
    }
}
