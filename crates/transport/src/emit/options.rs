//! TCP options as they are written.

use crate::segment::FAST_OPEN;
use crate::sequence::Seq;

/// Bytes of time stamps that come first, padded.
const STAMPS: usize = 12;

/// TCP options, padded to whole words. Time stamps in front, which nearly every segment has and mostly nothing
/// else, are kept as numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OptionBytes {
    stamps: Option<(u32, u32)>,
    /// What follows.
    bytes: [[u8; 8]; 5],
    length: usize,
}

impl OptionBytes {
    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if end > 40 - self.stamped() {
            return;
        }
        if let Some(place) = self.bytes.as_flattened_mut().get_mut(self.length..end) {
            place.copy_from_slice(bytes);
            self.length = end;
        }
    }

    #[inline(always)]
    fn stamped(&self) -> usize {
        if self.stamps.is_some() { STAMPS } else { 0 }
    }

    /// Bytes.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.stamped() + self.length
    }

    /// Time stamps that come first: value and echo.
    #[inline(always)]
    pub(super) fn stamps(&self) -> Option<(u32, u32)> {
        self.stamps
    }

    /// What follows them.
    #[inline(always)]
    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.as_flattened().get(..self.length).unwrap_or(&[])
    }

    pub(crate) fn mss(&mut self, mss: u16) {
        let [a, b] = mss.to_be_bytes();
        self.push(&[2, 4, a, b]);
    }

    pub(crate) fn window_scale(&mut self, shift: u8) {
        self.push(&[1, 3, 3, shift]);
    }

    pub(crate) fn sack_permitted(&mut self) {
        self.push(&[1, 1, 4, 2]);
    }

    /// Both in three words.
    pub(crate) fn sack_permitted_and_timestamps(&mut self, value: u32, echo: u32) {
        self.push(&[4, 2, 8, 10]);
        self.push(&value.to_be_bytes());
        self.push(&echo.to_be_bytes());
    }

    /// Accurate ECN: the counters' lower 24 bits.
    pub(crate) fn accurate(&mut self, kind: u8, fields: &[u32]) {
        let length = 2 + 3 * fields.len();
        self.push(&[kind, length as u8]);
        for field in fields {
            let [_, a, b, c] = field.to_be_bytes();
            self.push(&[a, b, c]);
        }
        self.push([1; 3].get(..(4 - length % 4) % 4).unwrap_or(&[]));
    }

    /// Bytes that are free.
    pub(crate) fn room(&self) -> usize {
        40 - self.len()
    }

    /// Fast Open: a cookie, or none to ask for one. Gives whether there was room.
    pub(crate) fn fast_open(&mut self, cookie: &[u8]) -> bool {
        let length = 2 + cookie.len();
        if self.len() + length.next_multiple_of(4) > 40 {
            return false;
        }
        self.push(&[FAST_OPEN, length as u8]);
        self.push(cookie);
        self.push([1; 3].get(..(4 - length % 4) % 4).unwrap_or(&[]));
        true
    }

    #[inline(always)]
    pub(crate) fn timestamps(&mut self, value: u32, echo: u32) {
        if self.length == 0 {
            self.stamps = Some((value, echo));
            return;
        }
        self.push(&[1, 1, 8, 10]);
        self.push(&value.to_be_bytes());
        self.push(&echo.to_be_bytes());
    }

    /// As many blocks as fit.
    pub(crate) fn sack(&mut self, blocks: &[(Seq, Seq)]) {
        let count = blocks.len().min((36 - self.len().min(36)) / 8);
        if count == 0 {
            return;
        }
        self.push(&[1, 1, 5, 2 + 8 * count as u8]);
        for (start, end) in blocks.iter().take(count) {
            self.push(&start.0.to_be_bytes());
            self.push(&end.0.to_be_bytes());
        }
    }
}
