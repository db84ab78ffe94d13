//! Walking over a chained packet.

use std::marker::PhantomData;

use crate::ffi::Mbuf;

/// One segment of a packet.
#[derive(Debug)]
pub struct Segment<'a> {
    /// Its bytes.
    pub data: &'a [u8],
    /// Free bytes after them.
    pub room: usize,
}

/// The segments of a packet in order.
#[derive(Debug)]
pub struct Segments<'a> {
    next: *const Mbuf,
    left: u16,
    packet: PhantomData<&'a Mbuf>,
}

impl<'a> Segments<'a> {
    pub(crate) fn new(first: &'a Mbuf) -> Self {
        Self { next: first, left: first.nb_segs, packet: PhantomData }
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        if self.next.is_null() || self.left == 0 {
            return None;
        }
        // SAFETY: the packet is borrowed for 'a and its chain does not change meanwhile; the count
        // bounds the walk.
        let segment: &'a Mbuf = unsafe { &*self.next };
        self.left -= 1;
        self.next = if self.left == 0 { std::ptr::null() } else { segment.next };
        Some(Segment { data: segment.data(), room: segment.room() })
    }
}
