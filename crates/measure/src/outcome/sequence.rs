//! Which frames of a stream arrived, how often, and in which order.

use crate::frame::Signature;

/// How far a frame may lie behind the newest one to be told from a copy: frames, a power of two. A million frames are 70 ms
/// at 14.88 million frames/s, more than any device holds.
const WINDOW: u64 = 1 << 20;
const WORDS: usize = (WINDOW / 64) as usize;

/// The sequence numbers that arrived.
#[derive(Debug)]
pub struct Sequence {
    /// One bit for each of the last [`WINDOW`] numbers, by number modulo that.
    seen: Box<[u64]>,
    /// One above the highest number that arrived.
    next: u64,
    unique: u64,
    duplicated: u64,
    reordered: u64,
    extent: u64,
    untraceable: u64,
}

impl Default for Sequence {
    fn default() -> Self {
        Self {
            seen: vec![0; WORDS].into(),
            next: 0,
            unique: 0,
            duplicated: 0,
            reordered: 0,
            extent: 0,
            untraceable: 0,
        }
    }
}

impl Sequence {
    /// The whole of a number of which a frame has only the low bits ([`Signature::SEQUENCES`]): of all that it may be, the one
    /// that is closest to the next.
    #[inline]
    #[must_use]
    pub fn whole(&self, low: u64) -> u64 {
        const HALF: u64 = Signature::SEQUENCES / 2;
        let near = self.next - self.next % Signature::SEQUENCES + low;
        if near + HALF < self.next {
            near + Signature::SEQUENCES
        } else if near >= self.next + HALF && near >= Signature::SEQUENCES {
            near - Signature::SEQUENCES
        } else {
            near
        }
    }

    /// Counts a number. Whether it came for the first time.
    #[inline]
    pub fn take(&mut self, number: u64) -> bool {
        if number >= self.next {
            self.forget(number);
            self.next = number + 1;
            self.mark(number);
            self.unique += 1;
            return true;
        }
        let behind = self.next - number;
        if behind > WINDOW {
            self.untraceable += 1;
            return false;
        }
        if self.mark(number) {
            self.duplicated += 1;
            return false;
        }
        self.unique += 1;
        self.reordered += 1;
        self.extent = self.extent.max(behind - 1);
        true
    }

    /// Takes the numbers from the next one to `number` into the window: none of them has arrived.
    #[inline]
    fn forget(&mut self, number: u64) {
        if number - self.next >= WINDOW {
            self.seen.fill(0);
            return;
        }
        let mut at = self.next;
        while at <= number {
            let (word, bit) = place(at);
            if bit == 0 && number - at >= 64 {
                self.seen[word] = 0;
                at += 64;
            } else {
                self.seen[word] &= !(1 << bit);
                at += 1;
            }
        }
    }

    /// Whether it had arrived before.
    #[inline]
    fn mark(&mut self, number: u64) -> bool {
        let (word, bit) = place(number);
        let before = self.seen[word] >> bit & 1;
        self.seen[word] |= 1 << bit;
        before == 1
    }

    /// Whether a number has arrived, as far as the window tells.
    #[inline]
    #[must_use]
    pub fn has(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        number < self.next && self.next - number <= WINDOW && self.seen[word] >> bit & 1 == 1
    }

    /// Numbers that arrived, each counted once.
    #[must_use]
    pub fn unique(&self) -> u64 {
        self.unique
    }

    /// Further copies of numbers that had arrived.
    #[must_use]
    pub fn duplicated(&self) -> u64 {
        self.duplicated
    }

    /// Numbers that arrived after a higher one (RFC 4737 3.3).
    #[must_use]
    pub fn reordered(&self) -> u64 {
        self.reordered
    }

    /// How far the worst of these lay behind the highest that had arrived.
    #[must_use]
    pub fn extent(&self) -> u64 {
        self.extent
    }

    /// Numbers so far behind that nothing is known of them.
    #[must_use]
    pub fn untraceable(&self) -> u64 {
        self.untraceable
    }
}

#[inline]
const fn place(number: u64) -> (usize, u32) {
    ((number % WINDOW / 64) as usize, (number % 64) as u32)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// The same with a set of all that came.
    fn plain(numbers: &[u64]) -> [u64; 5] {
        let mut seen = HashSet::new();
        let [mut unique, mut duplicated, mut reordered, mut extent, mut untraceable] = [0; 5];
        let mut highest: Option<u64> = None;
        for &number in numbers {
            let behind = highest.map_or(0, |highest| (highest + 1).saturating_sub(number));
            if behind > WINDOW {
                untraceable += 1;
            } else if !seen.insert(number) {
                duplicated += 1;
            } else {
                unique += 1;
                if behind > 0 {
                    reordered += 1;
                    extent = extent.max(behind - 1);
                }
            }
            highest = highest.max(Some(number));
        }
        [unique, duplicated, reordered, extent, untraceable]
    }

    fn ours(numbers: &[u64]) -> [u64; 5] {
        let mut sequence = Sequence::default();
        for number in numbers {
            sequence.take(*number);
        }
        [
            sequence.unique(),
            sequence.duplicated(),
            sequence.reordered(),
            sequence.extent(),
            sequence.untraceable(),
        ]
    }

    #[test]
    fn one_late_frame_is_reordered_and_not_those_that_overtook_it() {
        // RFC 4737 3.3: 3 comes when 8 would be next.
        assert_eq!(ours(&[0, 1, 2, 4, 5, 6, 7, 3, 8]), [9, 0, 1, 4, 0]);
    }

    #[test]
    fn low_bits_stand_for_the_closest_number() {
        let after = |number| {
            let mut sequence = Sequence::default();
            sequence.take(number);
            sequence
        };
        let all = Signature::SEQUENCES;
        let fresh = Sequence::default();
        assert_eq!([0, 5, all - 1].map(|low| fresh.whole(low)), [0, 5, all - 1]);
        // Ahead over the end, and back behind it; the same when they began again long ago.
        for lap in [all, 3 * all] {
            assert_eq!(after(lap - 2).whole(1), lap + 1);
            assert_eq!(after(lap + 5).whole(all - 3), lap - 3);
            assert_eq!(after(lap + 5).whole(7), lap + 7);
        }
    }

    #[test]
    fn the_window_ends_where_it_should() {
        let last = WINDOW - 1;
        assert_eq!(ours(&[0, last, 0]), [2, 1, 0, 0, 0]);
        let mut sequence = Sequence::default();
        assert!(!sequence.has(0));
        assert!(sequence.take(1) && sequence.has(1) && !sequence.has(0) && !sequence.has(2));
        assert!(sequence.take(WINDOW) && sequence.has(1));
        assert!(sequence.take(WINDOW + 1) && !sequence.has(1));
        assert_eq!(ours(&[1, WINDOW, 0]), [2, 0, 0, 0, 1]);
        assert_eq!(ours(&[1, WINDOW, 1]), [2, 1, 0, 0, 0]);
        // A jump over the whole window leaves nothing of what was there.
        assert_eq!(ours(&[5, 5 + 3 * WINDOW, 5 + 2 * WINDOW + 6]), [3, 0, 1, WINDOW - 6, 0]);
    }

    proptest! {
        #[test]
        fn it_counts_as_a_plain_set_does(
            steps in prop::collection::vec((0..200_i64, prop::bool::weighted(0.1), 0..300_i64), 1..500),
            big in prop::option::of((0..500_usize, 1..3 * WINDOW)),
        ) {
            let (mut numbers, mut at) = (Vec::new(), 0_i64);
            for (place, (ahead, back, by)) in steps.into_iter().enumerate() {
                at += if ahead < 150 { 1 } else { ahead };
                if let Some((_, jump)) = big.filter(|(there, _)| *there == place) {
                    at += jump as i64;
                }
                numbers.push(at as u64);
                if back {
                    numbers.push((at - by).max(0) as u64);
                }
            }
            prop_assert_eq!(ours(&numbers), plain(&numbers));
        }
    }
}
