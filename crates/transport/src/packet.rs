//! Packets on their way in and out.

use crate::ends::Ends;

/// A received IP packet, from its IP header on.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// All of its bytes; link-layer padding behind them is allowed.
    pub bytes: &'a [u8],
    /// Whether the port has already found the TCP or UDP checksum right; else it is checked.
    pub checksum_is_good: bool,
}

impl<'a> Packet<'a> {
    /// A packet whose checksum is to be checked.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, checksum_is_good: false }
    }
}

/// What the way out can do by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offloads {
    /// It fills in the TCP or UDP checksum: the field then holds the pseudo header's sum.
    pub checksum: bool,
    /// Bytes of payload of one large packet that it cuts into segments; 0: it does not cut.
    pub segmentation: u32,
    /// Bytes of payload of one large packet that paths other than the network take, segments of a connection in one piece, which
    /// nobody cuts; 0: none.
    pub path_segmentation: u32,
    /// Bytes of data of one large UDP packet that it cuts into datagrams of one size; 0: it does not.
    pub datagram_segmentation: u32,
}

/// A packet that is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// Bytes of the packet, from its IP header on.
    pub length: usize,
    /// Bytes of payload of each segment to cut it into; 0: it is sent as it is.
    pub segment_size: u16,
    /// Bytes of IP and transport header.
    pub header_length: u16,
}

/// Takes packets out of the stack.
pub trait Sink {
    /// What it can do.
    fn offloads(&self) -> Offloads {
        Offloads::default()
    }

    /// A buffer for the next packet, of `length` bytes, contents undefined. It may be shorter, as the first
    /// piece of a chain: headers lie within it (120 bytes do in any case), [`extend`](Self::extend) gives the
    /// others. What was not sent before is forgotten. `None`: there is none now, which is no loss: what a
    /// connection had to send stays to be sent, and leaves with a later flush. Answers that belong to no
    /// connection are not kept.
    fn buffer(&mut self, length: usize) -> Option<&mut [u8]>;

    /// The same for a packet that leaves by another path than the network ([`Stack::input_by`](crate::Stack::input_by)), never 0;
    /// there, nobody looks at checksums. `None` concerns this path alone: others still get buffers.
    fn buffer_by(&mut self, path: u16, length: usize) -> Option<&mut [u8]> {
        let _ = path;
        self.buffer(length)
    }

    /// A segment that came by a path other than the network is for no connection here, between ends as they are seen from here:
    /// whoever sent it is to send what is for them by the network.
    fn turn_away(&mut self, path: u16, ends: &Ends) {
        let _ = (path, ends);
    }

    /// The next piece of a packet that lacks `left` bytes. Of what is longer, the first bytes are used. `None`:
    /// there is none; the packet is given up.
    fn extend(&mut self, left: usize) -> Option<&mut [u8]> {
        let _ = left;
        None
    }

    /// The first piece of a chain once more: headers are written when the data is in place and summed.
    fn head(&mut self) -> Option<&mut [u8]> {
        None
    }

    /// Sends the packet in the last buffer, or in the pieces that were given since.
    fn send(&mut self, departure: Departure);
}

/// Keeps packets in order, for tests.
#[derive(Debug, Default)]
pub struct PacketList {
    /// The packets.
    pub packets: Vec<Vec<u8>>,
    pending: Vec<u8>,
}

impl Sink for PacketList {
    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        self.pending = vec![0; length];
        Some(&mut self.pending)
    }

    fn send(&mut self, departure: Departure) {
        self.pending.truncate(departure.length);
        self.packets.push(std::mem::take(&mut self.pending));
    }
}
