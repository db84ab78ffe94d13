//! Memory for rings that two cores touch, without unsafe code: words that are atomic, and one way of copying
//! them, which both layouts use.

use std::sync::atomic::{AtomicU32, Ordering};

use super::CAPACITY;

/// Bytes of a word.
pub(super) const WORD: usize = 4;
/// Words of a cache line.
pub(super) const LINE: usize = 64 / WORD;

/// A packet outside of a ring.
#[derive(Debug, Clone)]
pub(super) struct Packet {
    pub(super) words: [u32; CAPACITY / WORD],
    /// Bytes.
    pub(super) length: usize,
}

impl Packet {
    pub(super) fn new(length: usize) -> Self {
        Self { words: [0x5a5a_5a5a; CAPACITY / WORD], length }
    }
}

/// Words from a cache line on.
#[derive(Debug)]
pub(super) struct Words {
    words: Box<[AtomicU32]>,
    /// Words ahead of the first line.
    base: usize,
}

impl Words {
    /// All zeros.
    pub(super) fn new(count: usize) -> Self {
        let words: Box<[AtomicU32]> = (0..count + LINE).map(|_| AtomicU32::new(0)).collect();
        let base = words.as_ptr().align_offset(LINE * WORD).min(LINE);
        Self { words, base }
    }

    /// `count` words; none when they do not lie within.
    #[inline(always)]
    pub(super) fn part(&self, at: usize, count: usize) -> &[AtomicU32] {
        let at = self.base + at;
        self.words.get(at..at + count).unwrap_or_default()
    }
}

/// Copies a packet in.
#[inline(always)]
pub(super) fn copy_in(to: &[AtomicU32], packet: &Packet) {
    let words = packet.words.iter().take(packet.length.div_ceil(WORD));
    to.iter().zip(words).for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
}

/// Copies a packet of `length` bytes out. Gives its first word.
#[inline(always)]
pub(super) fn copy_out(from: &[AtomicU32], length: usize, into: &mut Packet) -> u32 {
    into.length = length.min(CAPACITY);
    let words = into.words.iter_mut().take(length.div_ceil(WORD));
    words.zip(from).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
    into.words.first().copied().unwrap_or(0)
}
