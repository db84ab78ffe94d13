//! A port as a sink: it keeps packets in order, and cuts large ones when it says that it can.

use std::net::IpAddr;

use transport::{Departure, Offloads, Sink};
use wire::checksum::Sum;
use wire::{Protocol, ipv4, ipv6, tcp};

/// What a host has sent since it was asked last.
#[derive(Debug, Default)]
pub(crate) struct Port {
    /// Bytes of data that it takes at once; 0: it does not cut.
    segmentation: u32,
    pub(crate) packets: Vec<Vec<u8>>,
    pending: Vec<u8>,
}

impl Port {
    pub(crate) fn new(segmentation: u32) -> Self {
        Self { segmentation, ..Self::default() }
    }

    /// One of the same kind.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.segmentation)
    }
}

impl Sink for Port {
    fn offloads(&self) -> Offloads {
        Offloads { segmentation: self.segmentation, ..Offloads::default() }
    }

    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        self.pending = vec![0; length];
        Some(&mut self.pending)
    }

    fn send(&mut self, departure: Departure) {
        let mut packet = std::mem::take(&mut self.pending);
        packet.truncate(departure.length);
        if departure.segment_size == 0 {
            self.packets.push(packet);
            return;
        }
        let (header, data) = packet.split_at(usize::from(departure.header_length));
        let pieces = data.chunks(usize::from(departure.segment_size));
        let last = pieces.len().saturating_sub(1);
        let mut offset = 0;
        for (place, piece) in pieces.enumerate() {
            let mut whole = [header, piece].concat();
            // What can't be cut was no TCP segment: it is lost, and the stack will notice.
            if mend(&mut whole, offset, place > 0, place < last).is_some() {
                self.packets.push(whole);
            }
            offset += piece.len() as u32;
        }
    }
}

/// Makes a packet of its own of a piece: lengths, sequence number, flags, checksums.
fn mend(packet: &mut [u8], offset: u32, follows: bool, goes_on: bool) -> Option<()> {
    let total = packet.len();
    let (source, destination, start): (IpAddr, IpAddr, _) = match packet.first()? >> 4 {
        4 => {
            let header = ipv4::Header::checked_mut(packet)?;
            header.set_total_length(total as u16);
            let ends = (header.source().into(), header.destination().into());
            ipv4::write_checksum(packet).ok()?;
            (ends.0, ends.1, ipv4::HEADER_LENGTH)
        }
        _ => {
            let header = ipv6::Header::checked_mut(packet)?;
            header.set_payload_length((total - ipv6::HEADER_LENGTH) as u16);
            (header.source().into(), header.destination().into(), ipv6::HEADER_LENGTH)
        }
    };
    let segment = packet.get_mut(start..)?;
    let seq = u32::from_be_bytes(segment.get(4..8)?.try_into().ok()?);
    segment.get_mut(4..8)?.copy_from_slice(&seq.wrapping_add(offset).to_be_bytes());
    let flags = segment.get_mut(13)?;
    if goes_on {
        *flags &= !(tcp::Flags::FIN.0 | tcp::Flags::PSH.0);
    }
    if follows {
        *flags &= !tcp::Flags::CWR.0;
    }
    segment.get_mut(16..18)?.fill(0);
    let sum = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            Sum::new().pseudo_v4(source, destination, Protocol::TCP, segment.len() as u16)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            Sum::new().pseudo_v6(source, destination, Protocol::TCP, segment.len() as u32)
        }
        _ => return None,
    };
    let checksum = sum.bytes(segment).finish();
    segment.get_mut(16..18)?.copy_from_slice(&checksum.to_be_bytes());
    Some(())
}
