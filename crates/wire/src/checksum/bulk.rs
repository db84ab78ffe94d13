//! Sums over bytes, in lanes that the compiler puts into vector registers.
//!
//! A lane takes 32-bit words in two sums: of the words themselves, modulo 2^32, and of their upper halves. What
//! the first has lost is 65,536 times the second, so the sum of the lower halves follows from both. That is two
//! additions and a shift for each word, without carries, for as long as neither sum of halves overflows.

/// Bytes of a step.
const STEP: usize = 64;
const LANES: usize = STEP / 4;
/// Less is added up faster one word after the other: lanes cost some thirty instructions to bring together.
const SHORT: usize = 192;
/// Lanes that are left when they have been added up in vector registers.
const NARROW: usize = 4;
/// Bytes after which a sum of halves might overflow: 65,536 words in each of those lanes.
const SPAN: usize = 4 * NARROW * 65_536;
/// Bytes that are copied before they are summed.
const PIECE: usize = 4096;

/// Sums of words, and of their upper halves. Loops over their number are unrolled, and become vectors, only while
/// they are loops over a constant range.
struct Lanes {
    words: [u32; LANES],
    upper: [u32; LANES],
}

#[expect(
    clippy::needless_range_loop,
    reason = "iterators over several arrays are not made vectors"
)]
impl Lanes {
    #[inline(always)]
    fn new() -> Self {
        Self { words: [0; LANES], upper: [0; LANES] }
    }

    #[inline(always)]
    fn add(&mut self, block: &[u32; LANES]) {
        for lane in 0..LANES {
            self.words[lane] = self.words[lane].wrapping_add(block[lane]);
        }
        for lane in 0..LANES {
            self.upper[lane] = self.upper[lane].wrapping_add(block[lane] >> 16);
        }
    }

    #[inline(always)]
    fn total(&self) -> u64 {
        let (mut words, mut upper) = ([0u32; NARROW], [0u32; NARROW]);
        for lane in 0..LANES {
            words[lane % NARROW] = words[lane % NARROW].wrapping_add(self.words[lane]);
            upper[lane % NARROW] = upper[lane % NARROW].wrapping_add(self.upper[lane]);
        }
        let mut total = 0;
        for lane in 0..NARROW {
            let lower = words[lane].wrapping_sub(upper[lane] << 16);
            total += u64::from(lower) + u64::from(upper[lane]);
        }
        total
    }
}

#[inline(always)]
fn words(block: &[u8; STEP]) -> [u32; LANES] {
    let mut words = [0; LANES];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        if let &[a, b, c, d] = bytes {
            *word = u32::from_ne_bytes([a, b, c, d]);
        }
    }
    words
}

/// The sum of 16-bit words in the machine's order, not folded: below 2^35 for a megabyte.
#[inline]
pub(super) fn sum(bytes: &[u8]) -> u64 {
    if bytes.len() < SHORT { short(bytes) } else { long(bytes) }
}

#[inline(never)]
fn long(bytes: &[u8]) -> u64 {
    let mut total = 0;
    for span in bytes.chunks(SPAN) {
        let mut lanes = Lanes::new();
        let mut blocks = span.chunks_exact(STEP);
        for block in &mut blocks {
            if let Ok(block) = <&[u8; STEP]>::try_from(block) {
                lanes.add(&words(block));
            }
        }
        total += lanes.total() + short(blocks.remainder());
    }
    total
}

/// Copies `source` to `target`, which are of one length, and sums what it copied, a piece at a time: what was
/// copied is summed while it is in the nearest cache.
#[inline(always)]
pub(super) fn copy(source: &[u8], target: &mut [u8]) -> u64 {
    if source.len() < SHORT {
        return copy_short(source, target);
    }
    copy_long(source, target)
}

#[inline(never)]
fn copy_long(source: &[u8], target: &mut [u8]) -> u64 {
    let mut total = 0;
    for (source, target) in source.chunks(PIECE).zip(target.chunks_mut(PIECE)) {
        target.copy_from_slice(source);
        total += sum(source);
    }
    total
}

/// Whole 64-bit words, with their carries added at the low end, then what is left.
#[inline]
fn short(bytes: &[u8]) -> u64 {
    let (mut rest, mut sum) = (bytes, 0);
    while let Some((group, others)) = rest.split_first_chunk::<GROUP>() {
        sum = add_group(sum, group);
        rest = others;
    }
    while let Some((word, others)) = rest.split_first_chunk::<8>() {
        sum = add(sum, u64::from_ne_bytes(*word));
        rest = others;
    }
    if rest.is_empty() { fold(sum) } else { fold(sum) + tail(rest) }
}

/// The same for what is copied on the way: what was read for one need not be read for the other.
#[inline(always)]
fn copy_short(source: &[u8], target: &mut [u8]) -> u64 {
    let (mut groups, mut places) = (source.chunks_exact(GROUP), target.chunks_exact_mut(GROUP));
    let mut sum = 0;
    for (group, place) in groups.by_ref().zip(places.by_ref()) {
        if let Ok(group) = <&[u8; GROUP]>::try_from(group) {
            place.copy_from_slice(group);
            sum = add_group(sum, group);
        }
    }
    let rest = groups.remainder();
    if rest.is_empty() {
        return fold(sum);
    }
    places.into_remainder().copy_from_slice(rest);
    fold(sum) + short(rest)
}

/// Bytes that are added without looking whether there are more.
const GROUP: usize = 32;

#[inline(always)]
fn add_group(sum: u64, group: &[u8; GROUP]) -> u64 {
    group.chunks_exact(8).fold(sum, |sum, word| match *word {
        [a, b, c, d, e, f, g, h] => add(sum, u64::from_ne_bytes([a, b, c, d, e, f, g, h])),
        _ => sum,
    })
}

#[inline(always)]
fn add(sum: u64, word: u64) -> u64 {
    let (sum, carry) = sum.overflowing_add(word);
    // A sum that has carried is below 2^64 - 1, so this does not overflow.
    sum + u64::from(carry)
}

/// Less than eight bytes.
#[inline]
fn tail(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(4);
    let whole = match words.next() {
        Some(&[a, b, c, d]) => u64::from(u32::from_ne_bytes([a, b, c, d])),
        _ => 0,
    };
    let rest = match *words.remainder() {
        [a, b, c] => [a, b, c, 0],
        [a, b] => [a, b, 0, 0],
        [a] => [a, 0, 0, 0],
        _ => [0; 4],
    };
    whole + u64::from(u32::from_ne_bytes(rest))
}

#[inline(always)]
const fn fold(sum: u64) -> u64 {
    (sum & 0xffff_ffff) + (sum >> 32)
}
