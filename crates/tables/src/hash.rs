//! Keyed hashing: fast, and not forced into collisions by someone who does not know the seed.
//!
//! Folded multiplication: two keyed 64-bit halves are multiplied to 128 bits, whose halves are
//! combined by exclusive or. Two rounds, so that every bit of the key reaches every bit of the hash.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
};

/// Random words that key the hash; one per table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seed {
    words: [u64; 4],
}

#[inline(always)]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product as u64) ^ ((product >> 64) as u64)
}

impl Seed {
    /// A seed that no one can foresee: std's own random keys are the source.
    pub(crate) fn random() -> Self {
        let random = RandomState::new();
        Self { words: [0u64, 1, 2, 3].map(|word| random.hash_one(word)) }
    }

    #[cfg(all(test, loom))]
    pub(crate) fn fixed() -> Self {
        Self { words: [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822, 0x299f_31d0] }
    }

    /// Hash of `count` words, taken in pairs.
    #[inline(always)]
    pub(crate) fn hash(&self, count: usize, word: impl Fn(usize) -> u64) -> u64 {
        let [a, b, c, d] = self.words;
        let mut state = c;
        for index in (0..count).step_by(2) {
            let right = if index + 1 < count { word(index + 1) } else { 0 };
            state = fold(word(index) ^ a ^ state, right ^ b ^ state.rotate_left(32));
        }
        fold(state ^ c, d | 1)
    }
}

/// Keyed hashing for the writer's maps.
#[derive(Debug, Clone)]
pub(crate) struct Keyed(Seed);

impl Default for Keyed {
    fn default() -> Self {
        Self(Seed::random())
    }
}

impl BuildHasher for Keyed {
    type Hasher = KeyedHasher;

    fn build_hasher(&self) -> KeyedHasher {
        KeyedHasher { seed: self.0, state: 0 }
    }
}

/// State of [`Keyed`] over one key.
#[derive(Debug)]
pub(crate) struct KeyedHasher {
    seed: Seed,
    state: u64,
}

impl Hasher for KeyedHasher {
    fn finish(&self) -> u64 {
        self.state
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.state = self.seed.hash(2, |index| if index == 0 { word } else { self.state });
    }

    fn write_u128(&mut self, word: u128) {
        self.write_u64(word as u64);
        self.write_u64((word >> 64) as u64);
    }
}
