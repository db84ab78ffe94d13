//! One packet: an owned pointer to a DPDK mbuf.

mod mbuf;
mod received;

use std::ptr::NonNull;

use crate::Segments;
use crate::ffi::{self, Mbuf};

pub use received::Checksum;

/// A packet, owned. Dropping it gives it back to its pool.
///
/// It is one pointer wide, `Option<Buffer>` too, so arrays of it are what drivers read and write.
/// A packet is one segment unless the device scattered it ([`is_chained`](Self::is_chained));
/// [`data`](Self::data) is the first segment.
#[repr(transparent)]
pub struct Buffer(NonNull<Mbuf>);

// SAFETY: an mbuf belongs to whoever holds the pointer, pools may be used from any thread, and
// `Buffer` is neither cloned nor shared mutably.
unsafe impl Send for Buffer {}
// SAFETY: `&Buffer` only reads, and nobody else has a buffer whose reference count is 1.
unsafe impl Sync for Buffer {}

const _: () = assert!(size_of::<Option<Buffer>>() == size_of::<*mut Mbuf>());

impl Buffer {
    /// Takes over an mbuf that nobody else uses.
    ///
    /// # Safety
    /// `mbuf` must be a live mbuf (a whole chain when it has several segments) with reference
    /// count 1, and the caller must own it.
    #[inline(always)]
    pub(crate) unsafe fn from_raw(mbuf: NonNull<Mbuf>) -> Self {
        Self(mbuf)
    }

    #[inline(always)]
    pub(crate) fn mbuf(&self) -> &Mbuf {
        // SAFETY: the mbuf is live and ours as long as `self` is.
        unsafe { self.0.as_ref() }
    }

    #[inline(always)]
    pub(crate) fn mbuf_mut(&mut self) -> &mut Mbuf {
        // SAFETY: as above, and `&mut self` excludes other references.
        unsafe { self.0.as_mut() }
    }

    /// The first segment's bytes: the whole packet unless it is chained.
    #[inline(always)]
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.mbuf().data()
    }

    /// The first segment's bytes, to change.
    #[inline(always)]
    #[must_use]
    pub fn data_mut(&mut self) -> &mut [u8] {
        self.mbuf_mut().data_mut()
    }

    /// Length of the whole packet, all segments: bytes.
    #[inline(always)]
    #[must_use]
    pub fn len(&self) -> usize {
        self.mbuf().pkt_len as usize
    }

    /// Whether the packet has no bytes.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Free bytes before the packet.
    #[inline(always)]
    #[must_use]
    pub fn headroom(&self) -> usize {
        usize::from(self.mbuf().data_off)
    }

    /// Free bytes after the packet, in its last segment.
    #[must_use]
    pub fn tailroom(&self) -> usize {
        self.segments().last().map_or(0, |segment| segment.room)
    }

    /// Grows the packet by `n` bytes at the front and returns the new bytes (their content is what
    /// was there before). `None`, and no change, when the headroom is smaller.
    #[inline(always)]
    #[must_use]
    pub fn prepend(&mut self, n: usize) -> Option<&mut [u8]> {
        let mbuf = self.mbuf_mut();
        let n16 = u16::try_from(n).ok()?;
        let data_off = mbuf.data_off.checked_sub(n16)?;
        let data_len = mbuf.data_len.checked_add(n16)?;
        mbuf.data_off = data_off;
        mbuf.data_len = data_len;
        mbuf.pkt_len += u32::from(n16);
        mbuf.data_mut().get_mut(..n)
    }

    /// Grows the packet by `n` bytes at its end and returns the new bytes (their content is what
    /// was there before). `None`, and no change, when the tailroom is smaller.
    #[must_use]
    pub fn append(&mut self, n: usize) -> Option<&mut [u8]> {
        let n16 = u16::try_from(n).ok()?;
        let last = self.last_segment();
        // SAFETY: `last_segment` returns a live segment of this chain, and `&mut self` is held.
        let segment = unsafe { &mut *last };
        if segment.room() < n {
            return None;
        }
        let start = usize::from(segment.data_len);
        segment.data_len += n16;
        self.mbuf_mut().pkt_len += u32::from(n16);
        // SAFETY: as above; the reference from before is not used any more.
        unsafe { (*last).data_mut() }.get_mut(start..)
    }

    /// Takes `n` bytes off the front. `false`, and no change, when the first segment is shorter.
    #[inline(always)]
    #[must_use]
    pub fn adjust(&mut self, n: usize) -> bool {
        let mbuf = self.mbuf_mut();
        if n > usize::from(mbuf.data_len) {
            return false;
        }
        mbuf.data_len -= n as u16;
        mbuf.data_off += n as u16;
        mbuf.pkt_len -= n as u32;
        true
    }

    /// Takes `n` bytes off the end. `false`, and no change, when the last segment is shorter.
    #[inline]
    #[must_use]
    pub fn trim(&mut self, n: usize) -> bool {
        let last = self.last_segment();
        // SAFETY: `last_segment` returns a live segment of this chain, and `&mut self` is held.
        let segment = unsafe { &mut *last };
        if n > usize::from(segment.data_len) {
            return false;
        }
        segment.data_len -= n as u16;
        self.mbuf_mut().pkt_len -= n as u32;
        true
    }

    /// How many segments the packet has.
    #[inline(always)]
    #[must_use]
    pub fn segment_count(&self) -> u16 {
        self.mbuf().nb_segs
    }

    /// Whether the packet has more than one segment.
    #[inline(always)]
    #[must_use]
    pub fn is_chained(&self) -> bool {
        self.segment_count() > 1
    }

    /// The segments in order.
    #[must_use]
    pub fn segments(&self) -> Segments<'_> {
        Segments::new(self.mbuf())
    }

    /// Cuts the packet to its first `length` bytes, if it is longer; segments behind the first one go
    /// back to their pool. `false`, and no change, when the first segment has fewer than that.
    #[must_use]
    pub fn truncate(&mut self, length: usize) -> bool {
        if self.len() <= length {
            return true;
        }
        let first = self.mbuf_mut();
        if usize::from(first.data_len) < length {
            return false;
        }
        first.data_len = length as u16;
        first.pkt_len = length as u32;
        drop(self.cut());
        true
    }

    /// Moves a chained packet's bytes into its first segment. `false`, and no change, when they do
    /// not fit there.
    #[must_use]
    pub fn linearize(&mut self) -> bool {
        let first = self.mbuf();
        let (total, start) = (first.pkt_len as usize, usize::from(first.data_len));
        let Some(more) = total.checked_sub(start) else { return false };
        if more > first.room() {
            return false;
        }
        self.mbuf_mut().data_len = total as u16;
        let Some(rest) = self.cut() else { return true };
        let mut room = self.data_mut().get_mut(start..).unwrap_or_default();
        for segment in rest.segments() {
            let n = segment.data.len().min(room.len());
            let (here, after) = room.split_at_mut(n);
            here.copy_from_slice(&segment.data[..n]);
            room = after;
        }
        true
    }

    /// Cuts off the segments behind the first one; the packet's length is the caller's affair.
    fn cut(&mut self) -> Option<Self> {
        let first = self.mbuf_mut();
        let left = std::mem::replace(&mut first.nb_segs, 1).saturating_sub(1);
        let rest = NonNull::new(std::mem::replace(&mut first.next, std::ptr::null_mut()))?;
        // SAFETY: the chain was ours, and the link to it is cut, so this is its only owner.
        let mut rest = unsafe { Self::from_raw(rest) };
        // Drivers count segments in a packet's first one only, which this one was not.
        rest.mbuf_mut().nb_segs = left.max(1);
        Some(rest)
    }

    /// Copies the packet, at most `longest` bytes of it, to the end of `target`.
    pub fn copy_into(&self, target: &mut Vec<u8>, longest: usize) {
        let mut left = longest;
        for segment in self.segments() {
            let part = segment.data.get(..left).unwrap_or(segment.data);
            target.extend_from_slice(part);
            left -= part.len();
        }
    }

    /// Starts loading the mbuf's first cache line (lengths, flags, where the data is).
    #[inline(always)]
    pub fn prefetch_header(&self) {
        prefetch(self.0.as_ptr().cast());
    }

    /// Starts loading the packet's first cache line. Reads the mbuf, so that should be there.
    #[inline(always)]
    pub fn prefetch_data(&self) {
        prefetch(self.mbuf().start());
    }

    fn last_segment(&mut self) -> *mut Mbuf {
        let mut segment = self.0.as_ptr();
        // SAFETY: the chain is live and ours, and ends with a null pointer.
        unsafe {
            if (*segment).nb_segs > 1 {
                while !(*segment).next.is_null() {
                    segment = (*segment).next;
                }
            }
        }
        segment
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `self` owns the mbuf and is gone after this.
        unsafe { ffi::millrace_free(self.0.as_ptr()) };
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffer")
            .field("len", &self.len())
            .field("port", &self.port())
            .field("segments", &self.mbuf().nb_segs)
            .finish()
    }
}

#[inline(always)]
fn prefetch(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) line, options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = line;
}

#[cfg(test)]
mod tests;
