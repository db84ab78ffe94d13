//! Packets by reference: what stands in a ring's slot when the packet itself lies in a buffer that the device
//! has filled, in the client's own segment.
//!
//! A slot with [`flag::REFERENCE`](super::flag) holds a [`Reference`]; whoever gets it owns the buffer until it is
//! referred to in the other direction. A slot with [`flag::RETURN`](super::flag), from a client, holds the
//! places of buffers that it is done with.

/// Bytes of a [`Reference`].
pub const REFERENCE: usize = 12;
/// Most places in one slot of returned buffers: with them it is one cache line.
pub const RETURNS: usize = 15;

/// Where a packet lies: three numbers of 32 bits, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// The buffer's number.
    pub place: u32,
    /// Where in the buffer the packet begins: bytes.
    pub offset: u32,
    /// Bytes of the packet.
    pub length: u32,
}

impl Reference {
    /// As it stands in a slot.
    #[inline]
    #[must_use]
    pub fn encode(self) -> [u8; REFERENCE] {
        let mut bytes = [0; REFERENCE];
        let words = [self.place, self.offset, self.length];
        for (target, word) in bytes.chunks_exact_mut(4).zip(words) {
            target.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// From a slot's bytes; nothing is checked but how many they are.
    #[inline]
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; REFERENCE] = bytes.try_into().ok()?;
        let mut words = places(bytes);
        let mut next = || words.next();
        Some(Self { place: next()?, offset: next()?, length: next()? })
    }
}

/// Numbers of buffers from a slot's bytes.
pub fn places(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.chunks_exact(4).filter_map(|word| Some(u32::from_le_bytes(word.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_it_was_told() {
        let reference = Reference { place: 7, offset: 128, length: 0x0102_0304 };
        let bytes = reference.encode();
        assert_eq!(bytes, [7, 0, 0, 0, 128, 0, 0, 0, 4, 3, 2, 1]);
        assert_eq!(Reference::decode(&bytes), Some(reference));
        assert_eq!(Reference::decode(&bytes[..11]), None);
        assert_eq!(Reference::decode(&[0; 13]), None);
        assert_eq!(places(&[1, 0, 0, 0, 0, 1, 0, 0, 9]).collect::<Vec<_>>(), [1, 256]);
    }
}
