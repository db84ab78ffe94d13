//! Sums over bytes, in lanes that the compiler puts into vector registers.
//!
//! A lane takes 32-bit words in two sums: of the words themselves, modulo 2^32, and of their upper halves. What
//! the first has lost is 65,536 times the second, so the sum of the lower halves follows from both. That is two
//! additions and a shift for each word, without carries, for as long as neither sum of halves overflows.

/// Bytes of a step.
const STEP: usize = 32;
const LANES: usize = STEP / 4;
/// Bytes after which a sum of halves might overflow: 65,536 words in each lane.
const SPAN: usize = STEP * 65_536;
/// Below this, whole words with carries take fewer steps.
const SHORT: usize = 128;

#[derive(Default)]
struct Lanes {
    words: [u32; LANES],
    upper: [u32; LANES],
}

impl Lanes {
    #[inline(always)]
    fn add(&mut self, block: &[u8]) {
        let lanes = self.words.iter_mut().zip(&mut self.upper);
        for (word, (sum, upper)) in block.chunks_exact(4).zip(lanes) {
            if let &[a, b, c, d] = word {
                let word = u32::from_ne_bytes([a, b, c, d]);
                *sum = sum.wrapping_add(word);
                *upper = upper.wrapping_add(word >> 16);
            }
        }
    }

    #[inline(always)]
    fn total(&self) -> u64 {
        let lanes = self.words.iter().zip(&self.upper);
        lanes.map(|(sum, upper)| u64::from(sum.wrapping_sub(upper << 16)) + u64::from(*upper)).sum()
    }
}

/// The sum of 16-bit words in the machine's order, not folded, below 2^33 for each 4 MB.
#[inline]
pub(super) fn sum(bytes: &[u8]) -> u64 {
    if bytes.len() < SHORT {
        return short(bytes);
    }
    long(bytes)
}

fn long(bytes: &[u8]) -> u64 {
    let mut total = 0;
    for span in bytes.chunks(SPAN) {
        let mut lanes = Lanes::default();
        let mut blocks = span.chunks_exact(STEP);
        for block in &mut blocks {
            lanes.add(block);
        }
        total += lanes.total() + short(blocks.remainder());
    }
    total
}

/// Copies `source` to `target`, which are of one length, and sums what it copied.
#[inline]
pub(super) fn copy(source: &[u8], target: &mut [u8]) -> u64 {
    let mut total = 0;
    for (source, target) in source.chunks(SPAN).zip(target.chunks_mut(SPAN)) {
        let mut lanes = Lanes::default();
        let mut blocks = source.chunks_exact(STEP);
        let mut places = target.chunks_exact_mut(STEP);
        for (block, place) in (&mut blocks).zip(&mut places) {
            place.copy_from_slice(block);
            lanes.add(block);
        }
        let (rest, place) = (blocks.remainder(), places.into_remainder());
        place.copy_from_slice(rest);
        total += lanes.total() + short(rest);
    }
    total
}

/// Whole 64-bit words with their carries added at the low end, then what is left.
#[inline]
fn short(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    let mut sum = 0u64;
    for word in &mut words {
        if let &[a, b, c, d, e, f, g, h] = word {
            let (next, carry) = sum.overflowing_add(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
            // What is carried was lost from 2^64 - 1 at most, so this does not overflow.
            sum = next + u64::from(carry);
        }
    }
    fold(sum) + tail(words.remainder())
}

/// Less than eight bytes.
#[inline]
fn tail(bytes: &[u8]) -> u64 {
    match *bytes {
        [] => 0,
        [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
        _ => {
            let mut whole = [0; 8];
            for (place, byte) in whole.iter_mut().zip(bytes) {
                *place = *byte;
            }
            fold(u64::from_ne_bytes(whole))
        }
    }
}

#[inline(always)]
const fn fold(sum: u64) -> u64 {
    (sum & 0xffff_ffff) + (sum >> 32)
}
