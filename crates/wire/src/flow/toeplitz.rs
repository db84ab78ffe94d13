//! The Toeplitz hash of receive-side scaling (Microsoft's RSS specification), as NICs compute it.

/// A hash key of 40 bytes, enough for an IPv6 five-tuple's 36.
pub type Key = [u8; 40];

/// The key that Microsoft's specification verifies implementations with.
pub const MICROSOFT_KEY: Key = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// A key of period 16 bits: both directions of a connection get the same hash (Woo and Park,
/// "Scalable TCP session monitoring with symmetric receive-side scaling", 2012).
pub const SYMMETRIC_KEY: Key = {
    let mut key = [0x6d; 40];
    let mut i = 1;
    while i < key.len() {
        key[i] = 0x5a;
        i += 2;
    }
    key
};

/// The hash of up to 36 bytes; later ones do not count.
#[must_use]
pub fn hash(key: &Key, input: &[u8]) -> u32 {
    let mut hash = 0;
    // For each byte of input, 40 bits of key: the 32-bit window slides over them bit by bit.
    for (&byte, key) in input.iter().zip(key.windows(5)) {
        let window = key.iter().fold(0u64, |bits, &next| bits << 8 | u64::from(next));
        for bit in 0..8 {
            let selected = 0u32.wrapping_sub(u32::from(byte >> (7 - bit) & 1));
            hash ^= (window >> (8 - bit)) as u32 & selected;
        }
    }
    hash
}
