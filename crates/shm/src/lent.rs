//! The client's view of device buffers that lie in its segment.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::Region;
use crate::attach::Reference;

/// Buffers of equal size in a region, numbered from 0.
#[derive(Debug)]
pub struct Buffers {
    region: Region,
    count: u32,
    size: u32,
    /// Tells packets of different areas apart.
    id: u32,
}

/// A packet in one of the buffers: the holder's until it refers the other side to it.
#[derive(Debug)]
#[must_use = "its buffer stays taken until it is sent or returned"]
pub struct Lent {
    reference: Reference,
    area: u32,
}

impl Lent {
    /// Where it lies, for the other side.
    #[inline]
    #[must_use]
    pub fn reference(&self) -> Reference {
        self.reference
    }
}

impl Buffers {
    /// `count` buffers of `size` bytes each from the region's beginning. `None`: they do not fit, or there are none.
    ///
    /// # Safety
    /// The other side keeps to the protocol: it does not touch a buffer that it has referred this side to, until it is
    /// referred to it again. A client may say so of the daemon; the daemon must not say so of a client.
    ///
    /// So does this side: nothing else of it reaches into the region; [`accept`](Self::accept) is given each reference that comes
    /// from the other side, once, and no others; and no borrow of a packet's bytes is left when the other side is referred to it.
    #[must_use]
    pub unsafe fn trust(region: Region, count: u32, size: u32) -> Option<Self> {
        static AREAS: AtomicU32 = AtomicU32::new(0);
        let bytes = u64::from(count) * u64::from(size);
        let fits = bytes > 0 && bytes <= region.length() as u64;
        let id = AREAS.fetch_add(1, Ordering::Relaxed);
        fits.then_some(Self { region, count, size, id })
    }

    /// Takes over the packet that the other side refers to. `None`: it does not lie within a buffer.
    #[inline]
    #[must_use]
    pub fn accept(&self, reference: Reference) -> Option<Lent> {
        let Reference { place, offset, length } = reference;
        let inside = u64::from(offset) + u64::from(length) <= u64::from(self.size);
        let sound = place < self.count && inside && length > 0;
        sound.then_some(Lent { reference, area: self.id })
    }

    /// Its bytes, where they lie. `None` for a packet of another area.
    #[inline]
    #[must_use]
    pub fn bytes(&self, lent: &Lent) -> Option<&[u8]> {
        let (start, length) = self.span(lent)?;
        // SAFETY: within the region, as `accept` saw; the other side leaves the buffer alone until it is referred to it, and
        // then nobody has this borrow any more: says who called `trust`.
        Some(unsafe { std::slice::from_raw_parts(start, length) })
    }

    /// The same, to change.
    #[inline]
    #[must_use]
    pub fn bytes_mut(&mut self, lent: &mut Lent) -> Option<&mut [u8]> {
        let (start, length) = self.span(lent)?;
        // SAFETY: as above, and no other borrow lives: this one is of all buffers, and there are no others in this memory.
        Some(unsafe { std::slice::from_raw_parts_mut(start, length) })
    }

    #[inline]
    fn span(&self, lent: &Lent) -> Option<(*mut u8, usize)> {
        let Reference { place, offset, length } = lent.reference;
        let at = u64::from(place) * u64::from(self.size) + u64::from(offset);
        if lent.area != self.id {
            return None;
        }
        // SAFETY: `accept` and `trust` saw that it lies within the region.
        let start = unsafe { self.region.base().add(at as usize) };
        Some((start.as_ptr(), length as usize))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Segment;

    fn buffers() -> Buffers {
        let segment = Arc::new(Segment::create("test", 8192).unwrap());
        let region = segment.region(64, 8000).unwrap();
        // SAFETY: there is no other side.
        unsafe { Buffers::trust(region, 3, 2048) }.unwrap()
    }

    #[test]
    fn packets_lie_in_their_buffers() {
        let (mut ours, theirs) = (buffers(), buffers());
        let reference = Reference { place: 2, offset: 2040, length: 8 };
        let mut lent = ours.accept(reference).unwrap();
        ours.bytes_mut(&mut lent).unwrap().copy_from_slice(b"12345678");
        let mut whole = ours.accept(Reference { place: 2, offset: 0, length: 2048 }).unwrap();
        assert!(ours.bytes_mut(&mut whole).unwrap().ends_with(b"\x00\x0012345678"));
        assert_eq!(theirs.bytes(&lent), None, "of another area");
        assert_eq!(lent.reference(), reference);
    }

    #[test]
    fn what_lies_outside_is_refused() {
        let buffers = buffers();
        let no = |place, offset, length| {
            assert!(buffers.accept(Reference { place, offset, length }).is_none());
        };
        no(3, 0, 60);
        no(0, 0, 0);
        no(0, 1, 2048);
        no(0, u32::MAX, u32::MAX);
        no(u32::MAX, 0, 60);
        let segment = Arc::new(Segment::create("test", 4096).unwrap());
        let region = segment.region(0, 4096).unwrap();
        // SAFETY: there is no other side.
        unsafe {
            assert!(Buffers::trust(region.clone(), 3, 2048).is_none());
            assert!(Buffers::trust(region.clone(), 0, 2048).is_none());
            assert!(Buffers::trust(region, u32::MAX, u32::MAX).is_none());
        }
    }
}
