//! The hash that keeps the packets of a flow together.

use dpdk::Buffer;
use wire::{ethernet, flow::FiveTuple, vlan};

/// VLAN tags that are looked behind at most.
pub(crate) const TAGS: usize = 2;

/// Tells this use of the hash from ECMP's, which must not see only some of its values.
const SEED: u64 = 1;

/// The device's RSS hash where it has one, else one of the packet's five-tuple; of the frame's MAC
/// addresses when it is not IP, so that a bridged conversation stays in order.
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
    let ip = matches!(ether_type, wire::EtherType::IPV4 | wire::EtherType::IPV6);
    match FiveTuple::of(rest).filter(|_| ip) {
        Some(flow) => flow.hash(SEED),
        None => {
            let octets = header.source.octets().into_iter().chain(header.destination.octets());
            // FNV-1a: these few bytes need no better one.
            octets.fold(0x811c_9dc5, |hash: u32, octet| {
                (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193)
            })
        }
    }
}
