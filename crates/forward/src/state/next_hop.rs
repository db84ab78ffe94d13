//! Next hops and ECMP groups, read by the nodes while the control thread changes them.
//!
//! A next hop is 32 bytes in four atomic words, so that one half of a cache line says all that a
//! packet needs. Words are changed in place, in an order that never shows a half-made state:
//!
//! - what is fixed for the life of an index (next node, features, port, interface, MTU, source MAC, VLAN) is written
//!   before the index is first published in a route, and is changed only when no route names it;
//! - the destination MAC lies in one word with what of the source fits beside it, so a neighbour's
//!   new address is one store; a kind that sends nowhere leaves the last addresses in place, for whoever has
//!   read the kind before;
//! - `kind` is in the first word and is written last, with release order.

mod kind;
pub mod reserved;
mod words;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use graph::{InterfaceId, PortId};
use wire::MacAddr;

pub use kind::{Kind, NextNode};
use words::{
    Entry, FEATURES, GENERATION, HEAD, MACS, NEXT_NODE, PLAIN, TAGGED, TAIL, UNTAGGED, USED,
};
pub use words::{Reader, Words};

/// Set in a look-up's value when the rest is the number of a [`Group`].
pub const GROUP_BIT: u32 = 1 << 30;

/// Slots of a group: the most next hops that a route has, and the resolution of weights.
pub const GROUP_SLOTS: usize = 64;

/// A next hop, as read in one go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHop {
    /// What to do.
    pub kind: Kind,
    /// Where the packet goes when its new Ethernet header is written.
    pub next: NextNode,
    /// The egress interface has features on the output arc: they come before `next`.
    pub features: bool,
    /// Egress port.
    pub port: PortId,
    /// Egress interface.
    pub interface: InterfaceId,
    /// Largest IP packet that the egress interface takes: bytes.
    pub mtu: u16,
    /// VLAN tag control information, when the egress interface is a sub-interface.
    pub vlan: Option<u16>,
    /// Destination MAC address.
    pub destination: MacAddr,
    /// Source MAC address.
    pub source: MacAddr,
}

impl NextHop {
    /// A next hop that only says what to do.
    #[must_use]
    pub fn of_kind(kind: Kind) -> Self {
        let none = MacAddr::new([0; 6]);
        Self {
            kind,
            next: NextNode::Port,
            features: false,
            port: PortId::NONE,
            interface: InterfaceId::NONE,
            mtu: 0,
            vlan: None,
            destination: none,
            source: none,
        }
    }
}

/// An ECMP group: each slot names a next hop; weights are numbers of slots.
#[derive(Debug)]
pub struct Group([AtomicU32; GROUP_SLOTS]);

/// All next hops and groups.
#[derive(Debug)]
pub struct NextHops {
    entries: Box<[Entry]>,
    groups: Box<[Group]>,
}

impl NextHops {
    /// Room for `entries` next hops (the reserved ones included) and `groups` groups, all invalid.
    #[must_use]
    pub fn new(entries: usize, groups: usize) -> Self {
        let entry = |_| Entry([const { AtomicU64::new(0) }; 4]);
        let group = |_| Group([const { AtomicU32::new(reserved::BLACKHOLE) }; GROUP_SLOTS]);
        Self {
            entries: (0..entries.max(reserved::FIRST as usize)).map(entry).collect(),
            groups: (0..groups).map(group).collect(),
        }
    }

    /// Next hops that fit.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// Groups that fit.
    #[must_use]
    pub fn group_capacity(&self) -> usize {
        self.groups.len()
    }

    /// The next hop at an index; [`Kind::Invalid`] where there is none.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, index: u32) -> NextHop {
        let Some(Entry(words)) = self.entries.get(index as usize) else {
            return NextHop::of_kind(Kind::Invalid);
        };
        let head = words[HEAD].load(Ordering::Acquire).to_le_bytes();
        let kind = Kind::from_byte(head[0]);
        if kind == Kind::Invalid {
            return NextHop::of_kind(kind);
        }
        let macs = words[MACS].load(Ordering::Relaxed).to_le_bytes();
        let tail = words[TAIL].load(Ordering::Relaxed).to_le_bytes();
        let vlan = u16::from_le_bytes([tail[4], tail[5]]);
        NextHop {
            kind,
            next: NextNode::from_byte(head[1] >> NEXT_NODE),
            features: head[1] & FEATURES != 0,
            port: PortId::from_bits(u16::from_le_bytes([head[2], head[3]])),
            interface: InterfaceId::with_generation(
                u16::from_le_bytes([head[4], head[5]]),
                u16::from_le_bytes([tail[6], tail[7]]),
            ),
            mtu: u16::from_le_bytes([head[6], head[7]]),
            vlan: (vlan != UNTAGGED).then_some(vlan),
            destination: if kind.has_address() {
                MacAddr::new([macs[0], macs[1], macs[2], macs[3], macs[4], macs[5]])
            } else {
                MacAddr::ZERO
            },
            source: MacAddr::new([macs[6], macs[7], tail[0], tail[1], tail[2], tail[3]]),
        }
    }

    /// The next hops as the fast path reads them.
    #[inline(always)]
    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        Reader(&self.entries)
    }

    /// What to do at an index, without the rest.
    #[inline(always)]
    #[must_use]
    pub fn kind(&self, index: u32) -> Kind {
        match self.entries.get(index as usize) {
            Some(Entry(words)) => Kind::from_byte(words[HEAD].load(Ordering::Acquire) as u8),
            None => Kind::Invalid,
        }
    }

    /// Writes a next hop. Called by the control thread alone, in the order that the file describes.
    /// Does nothing beyond the capacity.
    pub fn set(&self, index: u32, hop: &NextHop) {
        let Some(Entry(words)) = self.entries.get(index as usize) else { return };
        let words16 = [hop.port.to_bits(), hop.interface.number(), hop.mtu].map(u16::to_le_bytes);
        let [port, interface, mtu] = words16;
        let d = hop.destination.octets();
        let s = hop.source.octets();
        let v = hop.vlan.unwrap_or(UNTAGGED).to_le_bytes();
        let macs = u64::from_le_bytes([d[0], d[1], d[2], d[3], d[4], d[5], s[0], s[1]]);
        let [g0, g1] = hop.interface.generation().to_le_bytes();
        let tail = u64::from_le_bytes([s[2], s[3], s[4], s[5], v[0], v[1], g0, g1]);
        let plain = hop.kind.has_address() && hop.next == NextNode::Port && !hop.features;
        let tagged = plain && hop.vlan.is_some();
        let flags = u8::from(plain) * PLAIN
            | u8::from(tagged) * TAGGED
            | u8::from(hop.features) * FEATURES
            | (hop.next as u8) << NEXT_NODE;
        let head = u64::from_le_bytes([
            hop.kind as u8,
            flags,
            port[0],
            port[1],
            interface[0],
            interface[1],
            mtu[0],
            mtu[1],
        ]);
        let is_new = self.kind(index) == Kind::Invalid && hop.kind != Kind::Invalid;
        if is_new || hop.kind.has_address() {
            words[TAIL].store(tail, Ordering::Relaxed);
            words[MACS].store(macs, Ordering::Relaxed);
        } else {
            let kept = words[TAIL].load(Ordering::Relaxed) & !GENERATION;
            words[TAIL].store(kept | tail & GENERATION, Ordering::Relaxed);
        }
        words[HEAD].store(head, Ordering::Release);
    }

    /// Notes that a stale next hop was used. The first time since the control thread looked, the line that all workers read is
    /// written; after that it is read.
    #[inline]
    pub fn mark_used(&self, index: u32) {
        if let Some(Entry(words)) = self.entries.get(index as usize) {
            if words[USED].load(Ordering::Relaxed) == 0 {
                words[USED].store(1, Ordering::Relaxed);
            }
        }
    }

    /// Whether the next hop was used since the last call.
    pub fn take_used(&self, index: u32) -> bool {
        let entry = self.entries.get(index as usize);
        entry.is_some_and(|Entry(words)| words[USED].swap(0, Ordering::Relaxed) != 0)
    }

    /// Chooses the next hop of a look-up's value: itself, or by flow hash among the group's.
    #[inline(always)]
    #[must_use]
    pub fn choose(&self, value: u32, hash: u32) -> u32 {
        if value & GROUP_BIT == 0 {
            return value;
        }
        match self.groups.get((value & !GROUP_BIT) as usize) {
            Some(Group(slots)) => slots[hash as usize % GROUP_SLOTS].load(Ordering::Relaxed),
            None => reserved::BLACKHOLE,
        }
    }

    /// Fills one slot of a group. Called by the control thread alone.
    pub fn set_slot(&self, group: u32, slot: usize, next_hop: u32) {
        if let Some(place) =
            self.groups.get(group as usize).and_then(|Group(slots)| slots.get(slot))
        {
            place.store(next_hop, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
