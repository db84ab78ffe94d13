//! The `shm` crate's packet queue, as its users have it. Its packets are bytes, not words.

use std::sync::Arc;

use shm::{Consumer, Layout, LayoutError, Meta, Producer, Segment};

use super::words::{Packet, WORD};
use super::{CAPACITY, Empty, Fill, SLOTS};
use crate::failure::Failure;

/// The filling end, and the packet's bytes.
pub(super) struct Filler(Producer, [u8; CAPACITY]);
/// The emptying end, and room for a packet's bytes.
pub(super) struct Emptier(Consumer, [u8; CAPACITY]);

/// Both ends.
pub(super) fn ring() -> Result<(Filler, Emptier), Failure> {
    let layout = Layout::new(SLOTS as u32, CAPACITY as u32)?;
    let segment = Arc::new(Segment::create("millrace-bench", layout.bytes())?);
    let missing = LayoutError::Memory { needed: layout.bytes(), given: segment.length() };
    let region = || segment.region(0, layout.bytes()).ok_or(missing);
    let producer = Producer::new(region()?, layout)?;
    let consumer = Consumer::new(region()?, layout)?;
    Ok((Filler(producer, [0x5a; CAPACITY]), Emptier(consumer, [0; CAPACITY])))
}

impl Fill for Filler {
    #[inline(always)]
    fn push(&mut self, packet: &Packet) -> bool {
        if let (Some(first), Some(word)) = (self.1.get_mut(..WORD), packet.words.first()) {
            first.copy_from_slice(&word.to_ne_bytes());
        }
        let bytes = self.1.get(..packet.length).unwrap_or_default();
        self.0.push(bytes, Meta::default()).is_ok()
    }

    fn flush(&mut self) {}
}

impl Empty for Emptier {
    #[inline(always)]
    fn take(&mut self, into: &mut Packet) -> Option<u32> {
        let taken = self.0.next()?;
        into.length = self.0.copy(&taken, &mut self.1);
        self.0.release(taken);
        self.1.first_chunk().copied().map(u32::from_ne_bytes)
    }
}
