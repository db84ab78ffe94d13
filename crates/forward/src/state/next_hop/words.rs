//! A next hop as it lies in memory, and as the fast path reads it.

use std::sync::atomic::{AtomicU64, Ordering};

use graph::PortId;

use super::Kind;

/// No VLAN tag, in the word that holds one.
pub(super) const UNTAGGED: u16 = 0xffff;

/// kind (8 bits), flags (8: [`PLAIN`], [`TAGGED`], [`FEATURES`], next node), port (16), number of the interface (16), MTU (16).
pub(super) const HEAD: usize = 0;
/// Destination MAC (48 bits), first 2 bytes of the source (16), in the order of the wire.
pub(super) const MACS: usize = 1;
/// Last 4 bytes of the source MAC (32 bits), VLAN tag or `UNTAGGED` (16), generation of the interface (16).
pub(super) const TAIL: usize = 2;
/// The generation in it, which the fast path does not read.
pub(super) const GENERATION: u64 = 0xffff << 48;
/// Not 0: used since the control thread last looked.
pub(super) const USED: usize = 3;

/// Beside the kind of a next hop, [`Kind::Forward`] or [`Kind::ForwardStale`], whose packets go straight to a port: one
/// comparison tells.
pub(super) const PLAIN: u8 = 1;
/// Beside [`PLAIN`]: with a VLAN tag.
pub(super) const TAGGED: u8 = 2;
/// The egress interface has features on the output arc. Never beside [`PLAIN`].
pub(super) const FEATURES: u8 = 4;
/// Where among the flags the next node begins, which is 0 beside [`PLAIN`].
pub(super) const NEXT_NODE: u32 = 4;

#[derive(Debug)]
#[repr(align(32))]
pub(super) struct Entry(pub(super) [AtomicU64; 4]);

/// A next hop as it lies in memory.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    head: u64,
    pub(super) macs: u64,
    pub(super) tail: u64,
}

impl Words {
    /// Whether it is the common case: a frame without a VLAN tag leaves by a port, and goes through no feature before.
    #[inline(always)]
    #[must_use]
    pub fn is_plain(self) -> bool {
        (self.head >> 8) as u8 == PLAIN
    }

    /// Whether it is plain, and its neighbour is not stale.
    #[inline(always)]
    #[must_use]
    pub fn is_plain_and_fresh(self) -> bool {
        self.head as u16 == u16::from_le_bytes([Kind::Forward as u8, PLAIN])
    }

    /// Whether a frame leaves by a port, with a VLAN tag or without, and goes through no feature before.
    #[inline(always)]
    #[must_use]
    pub fn leaves(self) -> bool {
        (self.head >> 8) as u8 & PLAIN != 0
    }

    /// Whether the control thread wants to know that it is used.
    #[inline(always)]
    #[must_use]
    pub fn is_stale(self) -> bool {
        self.head as u8 == Kind::ForwardStale as u8
    }

    /// The VLAN tag, of a next hop that a frame leaves by.
    #[inline(always)]
    #[must_use]
    pub fn tag(self) -> Option<u16> {
        let tagged = (self.head >> 8) as u8 & TAGGED != 0;
        tagged.then_some((self.tail >> 32) as u16)
    }

    /// Egress port.
    #[inline(always)]
    #[must_use]
    pub fn port(self) -> PortId {
        PortId::from_bits((self.head >> 16) as u16)
    }

    /// Largest IP packet: bytes.
    #[inline(always)]
    #[must_use]
    pub fn mtu(self) -> u16 {
        (self.head >> 48) as u16
    }

    /// Both MAC addresses, in the order of the wire.
    #[inline(always)]
    #[must_use]
    pub fn addresses(self) -> ([u8; 8], [u8; 4]) {
        (self.macs.to_le_bytes(), (self.tail as u32).to_le_bytes())
    }
}

/// All next hops, as they lie in memory.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(pub(super) &'a [Entry]);

impl Reader<'_> {
    /// The words at an index; of [`Kind::Invalid`] where there is none.
    #[inline(always)]
    #[must_use]
    pub fn words(self, index: u32) -> Words {
        match self.0.get(index as usize) {
            Some(Entry(words)) => Words {
                head: words[HEAD].load(Ordering::Acquire),
                macs: words[MACS].load(Ordering::Relaxed),
                tail: words[TAIL].load(Ordering::Relaxed),
            },
            None => Words { head: 0, macs: 0, tail: 0 },
        }
    }
}
