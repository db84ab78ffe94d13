//! Fragments to this router itself: read, put together, and answers too long for one packet cut.

use dpdk::{Buffer, BufferPool};
use graph::{InterfaceId, Slot, Vector};
use wire::ethernet::{HEADER_LENGTH, Header};
use wire::{ipv4, ipv6};
use zerocopy::IntoBytes;

use super::super::family::{V4, V6};
use super::super::fragment::{self, Fragments, filled};
use crate::reassembly::{Key, Piece};
use crate::state::VrfId;

/// Bytes of a datagram that are kept in one buffer when an error is to quote it (RFC 4443 3.1 wants
/// most: what fits the smallest MTU).
const QUOTED: usize = 1280;

/// The packet in `slot`, which came in by that VRF, as a fragment. `None`: it is none.
pub(super) fn piece(vector: &Vector, slot: Slot, vrf: VrfId) -> Option<Piece<'_>> {
    let interface = vector.interface[usize::from(slot)];
    let frame = vector.buffer(slot)?.data();
    let (link, packet) = frame.split_at_checked(usize::from(vector.network[usize::from(slot)]))?;
    match packet.first()? >> 4 {
        4 => piece4((interface, vrf), link, packet),
        _ => piece6((interface, vrf), link, packet),
    }
}

fn piece4<'a>(
    (interface, vrf): (InterfaceId, VrfId),
    link: &'a [u8],
    packet: &'a [u8],
) -> Option<Piece<'a>> {
    let header = ipv4::Header::peek(packet).filter(|header| header.is_fragment())?;
    let length = header.header_length();
    Some(Piece {
        key: Key {
            vrf,
            source: header.source().into(),
            destination: header.destination().into(),
            identification: header.identification().into(),
            protocol: header.protocol().0,
        },
        offset: usize::from(header.fragment_offset()) * 8,
        more: header.more_fragments(),
        interface,
        link,
        packet: packet.get(..header.total_length().into())?,
        header: length,
        payload: length,
        patch: None,
    })
}

fn piece6<'a>(
    (interface, vrf): (InterfaceId, VrfId),
    link: &'a [u8],
    packet: &'a [u8],
) -> Option<Piece<'a>> {
    let header = ipv6::Header::peek(packet)?;
    let fragment = ipv6::upper_layer(packet).ok()?.fragment?;
    Some(Piece {
        key: Key {
            vrf,
            source: header.source().into(),
            destination: header.destination().into(),
            identification: fragment.identification,
            protocol: 0,
        },
        offset: usize::from(fragment.offset) * 8,
        more: fragment.more,
        interface,
        link,
        packet: packet.get(..header.total_length())?,
        header: fragment.header_at,
        payload: fragment.header_at + ipv6::Fragment::HEADER_LENGTH,
        patch: Some((fragment.named_at, fragment.next_header.0)),
    })
}

/// Makes the header of a datagram that was put together say so. `None`: it has none.
pub(super) fn settle(packet: &mut [u8]) -> Option<()> {
    let length = packet.len();
    if packet.first()? >> 4 == 4 {
        let header = ipv4::Header::peek_mut(packet)?;
        header.set_total_length(u16::try_from(length).ok()?);
        header.set_fragment(false, false, 0);
        ipv4::write_checksum(packet).ok()
    } else {
        let payload = length.checked_sub(ipv6::HEADER_LENGTH)?;
        ipv6::Header::peek_mut(packet)?.set_payload_length(u16::try_from(payload).ok()?);
        Some(())
    }
}

/// A packet made here as packets of at most `mtu` bytes, each behind `link`, if there is one. The
/// fragments of an IPv6 packet share `identification`. `None`: no buffers.
pub(super) fn cut(
    packet: &[u8],
    identification: u32,
    mtu: u16,
    link: Option<Header>,
    pool: &BufferPool,
) -> Option<Vec<Buffer>> {
    let mtu = usize::from(mtu);
    let mut parts = if packet.len() <= mtu {
        vec![filled(pool, &[packet])?]
    } else if packet.first()? >> 4 == 4 {
        cut_as::<V4>(packet, identification, mtu, pool)?
    } else {
        cut_as::<V6>(packet, identification, mtu, pool)?
    };
    if let Some(link) = link {
        for part in &mut parts {
            part.prepend(HEADER_LENGTH)?.copy_from_slice(link.as_bytes());
        }
    }
    Some(parts)
}

fn cut_as<F: Fragments>(
    packet: &[u8],
    identification: u32,
    mtu: usize,
    pool: &BufferPool,
) -> Option<Vec<Buffer>> {
    let read = |from: usize, out: &mut [u8]| {
        out.copy_from_slice(packet.get(from..from + out.len())?);
        Some(())
    };
    fragment::cut::<F>(&F::plan(packet, identification)?, read, mtu, pool)
}

/// A buffer with the start of a datagram behind the link header of the frame in `slot`.
pub(super) fn head(
    vector: &Vector,
    slot: Slot,
    packet: &[u8],
    pool: &BufferPool,
) -> Option<Buffer> {
    let network = usize::from(vector.network[usize::from(slot)]);
    let link = vector.buffer(slot)?.data().get(..network)?;
    filled(pool, &[link, packet.get(..QUOTED).unwrap_or(packet)])
}
