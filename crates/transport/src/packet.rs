//! Packets on their way in and out.

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

    /// A buffer of exactly `length` bytes for the next packet, contents undefined. `None`: there is
    /// none now, which is no loss: what a connection had to send stays to be sent, and leaves with a later
    /// flush. Answers that belong to no connection are not kept.
    fn buffer(&mut self, length: usize) -> Option<&mut [u8]>;

    /// Sends the packet in the last buffer.
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
