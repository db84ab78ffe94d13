//! The host's way out.

use millrace_transport::{Departure, Offloads, Sink};

/// A packet that was sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    /// ns.
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
    /// Bytes of data of each segment that the port cuts it into; 0: none.
    pub(crate) segment_size: u16,
}

#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) segmentation: u32,
    /// Packets that it still has buffers for.
    pub(crate) room: usize,
    pub(crate) sent: Vec<Sent>,
    buffer: Vec<u8>,
}

impl Default for Port {
    fn default() -> Self {
        Self { segmentation: 0, room: usize::MAX, sent: Vec::new(), buffer: Vec::new() }
    }
}

impl Sink for Port {
    fn offloads(&self) -> Offloads {
        Offloads { segmentation: self.segmentation, ..Offloads::default() }
    }

    fn buffer(&mut self, length: usize) -> Option<&mut [u8]> {
        if self.room == 0 {
            return None;
        }
        self.buffer = vec![0; length];
        Some(&mut self.buffer)
    }

    fn send(&mut self, departure: Departure) {
        self.room -= usize::from(self.room != usize::MAX);
        self.buffer.truncate(departure.length);
        let bytes = std::mem::take(&mut self.buffer);
        self.sent.push(Sent { at: 0, bytes, segment_size: departure.segment_size });
    }
}
