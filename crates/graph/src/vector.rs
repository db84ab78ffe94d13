//! The packets in flight on one worker, as parallel arrays.

use dpdk::Buffer;

use crate::{InterfaceId, StackId};

/// Packets that a vector holds at most. A slot is a `u8`, so indexing needs no bounds check.
pub const CAPACITY: usize = 256;

/// Place of a packet in its vector. A packet keeps its slot from input to output.
pub type Slot = u8;

/// A node by its place in its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeId(pub u16);

/// An ICMP error that the sender of a packet is to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IcmpError {
    /// Its type.
    pub kind: u8,
    /// Its code.
    pub code: u8,
    /// What the code asks for: an MTU, or where in the packet the problem is (bytes).
    pub detail: u16,
}

/// All slots in order.
pub(crate) const SLOTS: [Slot; CAPACITY] = {
    let mut slots = [0; CAPACITY];
    let mut at = 0;
    while at < CAPACITY {
        slots[at] = at as Slot;
        at += 1;
    }
    slots
};

/// Whether these are the first slots of a vector in order: then its arrays can be read as they lie.
/// So it is for most lists, because most packets go the same way.
#[inline]
#[must_use]
pub fn in_place(slots: &[Slot]) -> bool {
    SLOTS.get(..slots.len()) == Some(slots)
}

/// Slots that a node picks from the list it was given, to send them on together.
pub struct Picked {
    slots: [Slot; CAPACITY],
    len: usize,
}

impl Picked {
    /// None yet.
    #[inline(always)]
    #[must_use]
    pub fn new() -> Self {
        Self { slots: [0; CAPACITY], len: 0 }
    }

    /// Starts over.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds one. More than a vector holds start over.
    #[inline(always)]
    pub fn push(&mut self, slot: Slot) {
        self.slots[self.len % CAPACITY] = slot;
        self.len += 1;
    }

    /// The slots picked from `all`, each at most once and in order. When it was all of them this is
    /// `all` itself: to read as a whole what was just written byte by byte stalls.
    #[inline(always)]
    #[must_use]
    pub fn of<'a>(&'a self, all: &'a [Slot]) -> &'a [Slot] {
        if self.len == all.len() { all } else { &self.slots[..self.len.min(CAPACITY)] }
    }
}

impl Default for Picked {
    fn default() -> Self {
        Self::new()
    }
}

/// Up to 256 packets and what the nodes have found out about them so far.
///
/// Nodes read and write the arrays directly; a node documents which ones it needs filled and which
/// ones it fills. A slot without a buffer is free.
#[derive(Debug)]
pub struct Vector {
    /// The packets.
    pub buffers: [Option<Buffer>; CAPACITY],
    /// Interface that the packet came in on.
    pub interface: [InterfaceId; CAPACITY],
    /// Offset of the network header from the start of the packet's data: bytes.
    pub network: [u16; CAPACITY],
    /// Next hop chosen by the look-up, or what the next node documents.
    pub next_hop: [u32; CAPACITY],
    /// Interface that the packet leaves by, or what the next node documents.
    pub egress: [InterfaceId; CAPACITY],
    /// VRF in whose routes the packet is looked up, of one that goes to a node that looks up in any.
    pub vrf: [u16; CAPACITY],
    /// IPv4 address to look up, as the input node noted it.
    pub destination4: [u32; CAPACITY],
    /// IPv6 address to look up, likewise.
    pub destination6: [u128; CAPACITY],
    /// What the sender is to be told, of a packet that was refused.
    pub icmp_error: [IcmpError; CAPACITY],
    /// The stack that a packet came from, at the node where what stacks send enters.
    pub stack: [Option<StackId>; CAPACITY],
    /// Node where the packet goes on behind the last feature of the arc that it is on.
    pub(crate) resume: [NodeId; CAPACITY],
    used: usize,
}

impl Vector {
    /// An empty vector, on the heap: it is some 13 KB.
    #[must_use]
    pub fn new() -> Box<Self> {
        Box::new(Self {
            buffers: [const { None }; CAPACITY],
            interface: [InterfaceId::NONE; CAPACITY],
            network: [0; CAPACITY],
            next_hop: [0; CAPACITY],
            egress: [InterfaceId::NONE; CAPACITY],
            vrf: [0; CAPACITY],
            destination4: [0; CAPACITY],
            destination6: [0; CAPACITY],
            icmp_error: [IcmpError::default(); CAPACITY],
            stack: [None; CAPACITY],
            resume: [NodeId(0); CAPACITY],
            used: 0,
        })
    }

    /// Slots in use since the vector was last emptied, freed ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether no slot is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The first free slots, for a receive burst: pass the number filled to [`Self::fill`].
    pub fn free_slots(&mut self) -> &mut [Option<Buffer>] {
        &mut self.buffers[self.used.min(CAPACITY)..]
    }

    /// Takes the first `count` free slots into use.
    pub fn fill(&mut self, count: usize) {
        self.used = (self.used + count).min(CAPACITY);
    }

    /// Puts one packet into a free slot; gives it back when all 256 are in use.
    pub fn push(&mut self, buffer: Buffer) -> Result<Slot, Buffer> {
        match Slot::try_from(self.used) {
            Ok(slot) => {
                self.buffers[usize::from(slot)] = Some(buffer);
                self.used += 1;
                Ok(slot)
            }
            Err(_) => Err(buffer),
        }
    }

    /// The packet in a slot, when it still has one.
    #[inline(always)]
    #[must_use]
    pub fn buffer(&self, slot: Slot) -> Option<&Buffer> {
        self.buffers[usize::from(slot)].as_ref()
    }

    /// The packet in a slot, to change it.
    #[inline(always)]
    pub fn buffer_mut(&mut self, slot: Slot) -> Option<&mut Buffer> {
        self.buffers[usize::from(slot)].as_mut()
    }

    /// The packet's bytes from its network header on (its first segment's).
    #[inline(always)]
    #[must_use]
    pub fn network(&self, slot: Slot) -> &[u8] {
        let offset = usize::from(self.network[usize::from(slot)]);
        self.buffer(slot).and_then(|buffer| buffer.data().get(offset..)).unwrap_or(&[])
    }

    /// The packet's bytes from its network header on, to change them.
    #[inline(always)]
    pub fn network_mut(&mut self, slot: Slot) -> &mut [u8] {
        let offset = usize::from(self.network[usize::from(slot)]);
        match self.buffers[usize::from(slot)].as_mut() {
            Some(buffer) => buffer.data_mut().get_mut(offset..).unwrap_or(&mut []),
            None => &mut [],
        }
    }

    /// Forgets all slots; every buffer must have left before (the engine frees those left over).
    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_in_place_when_it_is_the_first_slots_in_order() {
        assert!(in_place(&[]) && in_place(&[0, 1, 2]) && in_place(&SLOTS));
        assert!(!in_place(&[1, 2]) && !in_place(&[0, 2]) && !in_place(&[1, 0]));
    }

    #[test]
    fn picked_slots_are_the_list_itself_when_all_are_picked() {
        let all = [3, 5, 9];
        let mut picked = Picked::new();
        picked.push(3);
        picked.push(9);
        assert_eq!(picked.of(&all), [3, 9]);
        picked.clear();
        all.iter().for_each(|slot| picked.push(*slot));
        assert!(std::ptr::eq(picked.of(&all), &all[..]));
    }
}
