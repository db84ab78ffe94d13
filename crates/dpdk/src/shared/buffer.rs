//! A packet in memory that is not ours alone.

use crate::ffi::Mbuf;
use crate::{Buffer, BufferPool};

/// A packet, owned, whose bytes another process may change at any time. Dropping it frees it;
/// [`SharedPool::take_back`](super::SharedPool::take_back) is better.
#[repr(transparent)]
pub struct SharedBuffer(
    /// Its `data` is never asked for.
    Buffer,
);

impl SharedBuffer {
    pub(super) fn new(buffer: Buffer) -> Self {
        Self(buffer)
    }

    pub(super) fn into_inner(self) -> Buffer {
        self.0
    }

    pub(super) fn mbuf(&self) -> &Mbuf {
        self.0.mbuf()
    }

    /// Length of the whole packet, all segments: bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the packet has no bytes.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many segments the packet has.
    #[inline]
    #[must_use]
    pub fn segment_count(&self) -> u16 {
        self.0.segment_count()
    }

    /// Whether the packet has more than one segment.
    #[inline]
    #[must_use]
    pub fn is_chained(&self) -> bool {
        self.0.is_chained()
    }

    /// The DPDK port that it was received on.
    #[inline]
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port()
    }

    /// Makes the packet the `length` bytes from `offset` on of its buffer. `false`, and no change, when they do not lie
    /// within, there are none, or the packet is chained.
    #[inline]
    #[must_use]
    pub fn set_span(&mut self, offset: usize, length: usize) -> bool {
        let mbuf = self.0.mbuf_mut();
        let inside = offset.checked_add(length).is_some_and(|end| end <= mbuf.buf_len.into());
        if !inside || length == 0 || mbuf.nb_segs != 1 {
            return false;
        }
        // Both are at most `buf_len`, which has 16 bits.
        mbuf.data_off = offset as u16;
        mbuf.data_len = length as u16;
        mbuf.pkt_len = length as u32;
        true
    }

    /// A copy in memory of our own: in one buffer of `pool`. `None` when the pool is empty or the packet is longer
    /// than one of its buffers. Should the other process write meanwhile, the copy is a mixture of old and new.
    #[must_use]
    pub fn copy(&self, pool: &BufferPool) -> Option<Buffer> {
        let mut copy = pool.alloc()?;
        let whole = self.pieces(&mut |from, length| {
            let Some(to) = copy.append(length) else { return false };
            // SAFETY: `pieces` gives bytes that are valid to read; the target is a buffer of another pool.
            unsafe { shm::read_shared(from, to) };
            true
        });
        copy.set_port(self.port());
        whole.then_some(copy)
    }

    /// Copies the packet, at most `longest` bytes of it, to the end of `target`.
    pub fn copy_into(&self, target: &mut Vec<u8>, longest: usize) {
        let mut left = longest;
        self.pieces(&mut |from, length| {
            let (start, length) = (target.len(), length.min(left));
            left -= length;
            target.resize(start + length, 0);
            if let Some(to) = target.get_mut(start..) {
                // SAFETY: `pieces` gives bytes that are valid to read; the target is memory of our own.
                unsafe { shm::read_shared(from, to) };
            }
            left > 0
        });
    }

    /// Where each segment's bytes begin and how many they are, until `each` says `false`. Gives whether it never did.
    fn pieces(&self, each: &mut dyn FnMut(*const u8, usize) -> bool) -> bool {
        let mut segment: *const Mbuf = self.0.mbuf();
        for _ in 0..self.0.mbuf().nb_segs {
            // SAFETY: the chain is live and ours, and has as many segments as its first one says or ends with a null
            // pointer.
            let Some(mbuf) = (unsafe { segment.as_ref() }) else { break };
            if !each(mbuf.start(), mbuf.data_len.into()) {
                return false;
            }
            segment = mbuf.next;
        }
        true
    }
}

impl std::fmt::Debug for SharedBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
