//! Packets that C holds: by a number, so that one that was given back twice is seen.

use crate::{Channel, Packet};

/// Packets for one thread, and to the daemon.
#[derive(Debug)]
pub struct ChannelHandle {
    pub(super) channel: Channel,
    pub(super) held: Held,
    /// A burst on its way; empty between calls.
    pub(super) burst: Vec<Packet>,
}

/// A packet that was received. It stays the caller's, and `data` valid, until it is given to millrace_send(),
/// millrace_return() or millrace_release().
#[repr(C)]
#[derive(Debug)]
pub struct PacketView {
    /// Its bytes, to look at and to change: `length` of them.
    pub data: *mut u8,
    /// Bytes at `data`: all of them, or the first piece of a packet longer than a slot.
    pub length: u32,
    /// Bytes of the packet.
    pub total: u32,
    /// Pieces in which it lies: one, unless it is longer than a slot; see millrace_piece().
    pub pieces: u32,
    /// The port where it came in; change it to choose where millrace_send() sends it.
    pub port: u8,
    /// 1: a copy, the packet itself went on. 0: the packet.
    pub copy: u8,
    /// Which one it is, for the library.
    pub handle: u64,
}

#[derive(Debug, Default)]
struct Place {
    generation: u32,
    packet: Option<Packet>,
}

/// Numbered packets; as many at most as the rings have slots.
#[derive(Debug, Default)]
pub(super) struct Held {
    places: Vec<Place>,
    free: Vec<u32>,
}

impl Held {
    pub(super) fn put(&mut self, packet: Packet) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            (self.places.len() - 1) as u32
        });
        let Some(place) = self.places.get_mut(index as usize) else { return u64::MAX };
        place.packet = Some(packet);
        u64::from(place.generation) << 32 | u64::from(index)
    }

    fn place(&mut self, handle: u64) -> Option<&mut Place> {
        let place = self.places.get_mut(handle as u32 as usize)?;
        (u64::from(place.generation) == handle >> 32).then_some(place)
    }

    pub(super) fn get(&mut self, handle: u64) -> Option<&mut Packet> {
        self.place(handle)?.packet.as_mut()
    }

    /// Takes it out; its number is void from now on.
    pub(super) fn take(&mut self, handle: u64) -> Option<Packet> {
        let place = self.place(handle)?;
        let packet = place.packet.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(handle as u32);
        Some(packet)
    }

    /// Puts back what [`take`](Self::take) gave last, by the same number.
    pub(super) fn put_back(&mut self, handle: u64, packet: Packet) {
        self.free.pop();
        if let Some(place) = self.places.get_mut(handle as u32 as usize) {
            place.generation = (handle >> 32) as u32;
            place.packet = Some(packet);
        }
    }
}
