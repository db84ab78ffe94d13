//! SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash that nobody without the key can find collisions of.

/// A secret key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u64; 2]);

impl Key {
    /// Hash of whole words.
    #[must_use]
    pub fn hash(&self, words: &[u64]) -> u64 {
        let [k0, k1] = self.0;
        let mut v = [
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ];
        for word in words {
            absorb(&mut v, *word);
        }
        absorb(&mut v, (words.len() as u64 * 8) << 56);
        v[2] ^= 0xff;
        for _ in 0..4 {
            round(&mut v);
        }
        v[0] ^ v[1] ^ v[2] ^ v[3]
    }
}

fn absorb(v: &mut [u64; 4], word: u64) {
    v[3] ^= word;
    round(v);
    round(v);
    v[0] ^= word;
}

fn round(v: &mut [u64; 4]) {
    let [mut a, mut b, mut c, mut d] = *v;
    a = a.wrapping_add(b);
    c = c.wrapping_add(d);
    b = b.rotate_left(13) ^ a;
    d = d.rotate_left(16) ^ c;
    a = a.rotate_left(32).wrapping_add(d);
    c = c.wrapping_add(b);
    b = b.rotate_left(17) ^ c;
    d = d.rotate_left(21) ^ a;
    c = c.rotate_left(32);
    *v = [a, b, c, d];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_papers_vectors() {
        // Key 00..0f; messages of 0 and of 8 bytes 00..07, from the reference vectors.
        let key = Key([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        assert_eq!(key.hash(&[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(key.hash(&[0x0706_0504_0302_0100]), 0x93f5_f579_9a93_2462);
    }
}
