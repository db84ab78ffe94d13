//! The Internet checksum (RFC 1071), whole and incremental (RFC 1624).

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::protocol::Protocol;

mod bulk;

/// A running ones' complement sum over 16-bit words.
///
/// Words are added in the machine's byte order and swapped once at the end, which gives the same
/// sum (RFC 1071 2B). 64 bits hold the carries of 16 GB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
pub struct Sum(u64);

impl Sum {
    /// The empty sum.
    #[inline]
    pub const fn new() -> Self {
        Self(0)
    }

    /// Adds bytes. An odd last byte counts as the high half of a word, so only the last slice of
    /// a message may have an odd length.
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        Self(self.0 + bulk::sum(bytes))
    }

    /// Copies `source` to `target` and adds it, while one comes from memory once; of the longer of the two what the
    /// other lacks is left alone. The same holds for an odd last byte as with [`bytes`](Self::bytes).
    #[inline(always)]
    pub fn copy(self, source: &[u8], target: &mut [u8]) -> Self {
        let length = source.len().min(target.len());
        match (source.get(..length), target.get_mut(..length)) {
            (Some(source), Some(target)) => Self(self.0 + bulk::copy(source, target)),
            _ => self,
        }
    }

    /// Adds the sum of what comes next in the message, `offset` bytes behind this sum's beginning, which may be
    /// odd: each byte then stands in the other half of its word (RFC 1071 2B).
    #[inline]
    pub const fn join(self, next: Self, offset: usize) -> Self {
        if offset % 2 == 0 {
            return Self(self.0 + next.0);
        }
        Self(self.0 + next.folded().swap_bytes() as u64)
    }

    /// Adds one word, given as a number.
    #[inline]
    pub const fn u16(self, word: u16) -> Self {
        Self(self.0 + word.to_be() as u64)
    }

    /// Adds two words, given as a number.
    #[inline]
    pub const fn u32(self, words: u32) -> Self {
        Self(self.0 + words.to_be() as u64)
    }

    /// Adds IPv4's pseudo header (RFC 793 3.1, RFC 768); `length`: bytes of upper-layer header
    /// and data.
    #[inline]
    pub fn pseudo_v4(
        self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: Protocol,
        length: u16,
    ) -> Self {
        self.u32(source.to_bits()).u32(destination.to_bits()).u16(u16::from(protocol.0)).u16(length)
    }

    /// Adds IPv6's pseudo header (RFC 8200 8.1); `length`: bytes of upper-layer header and data.
    #[inline]
    pub fn pseudo_v6(
        self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        protocol: Protocol,
        length: u32,
    ) -> Self {
        self.bytes(&source.octets())
            .bytes(&destination.octets())
            .u32(length)
            .u16(u16::from(protocol.0))
    }

    /// The sum folded to 16 bits, in the machine's byte order.
    #[inline]
    const fn folded(self) -> u16 {
        // A half that has carried is below all ones, so its carry finds room.
        let (sum, carry) = (self.0 as u32).overflowing_add((self.0 >> 32) as u32);
        let sum = sum + carry as u32;
        let (sum, carry) = (sum as u16).overflowing_add((sum >> 16) as u16);
        sum + carry as u16
    }

    /// The checksum to write: the folded sum's complement.
    #[inline]
    #[must_use]
    pub const fn finish(self) -> u16 {
        u16::from_be(!self.folded())
    }

    /// The same, with 0xffff for 0: UDP keeps 0 for "no checksum" (RFC 768).
    #[inline]
    #[must_use]
    pub const fn finish_udp(self) -> u16 {
        match self.finish() {
            0 => 0xffff,
            checksum => checksum,
        }
    }

    /// Whether the sum, taken over a message with its checksum, says that the message is intact.
    #[inline]
    #[must_use]
    pub const fn is_valid(self) -> bool {
        // Modulo 0xffff, which the compiler makes one multiplication; all zeroes add up to no message's sum.
        self.0 != 0 && self.0 % 0xffff == 0
    }
}

/// The checksum of one slice.
#[inline]
#[must_use]
pub fn of(bytes: &[u8]) -> u16 {
    Sum::new().bytes(bytes).finish()
}

/// Whether a 20-byte IPv4 header's checksum is right, without a branch.
#[inline]
#[must_use]
pub fn ipv4_header_is_valid(header: &[u8; 20]) -> bool {
    let Some((first, rest)) = header.split_first_chunk() else { return false };
    let Some((second, rest)) = rest.split_first_chunk() else { return false };
    let Some((source, rest)) = rest.split_first_chunk() else { return false };
    let destination = rest.first_chunk().unwrap_or(&[0; 4]);
    let narrow = [second, source, destination].map(|word| u64::from(u32::from_ne_bytes(*word)));
    // One's complement addition is addition modulo 0xffff, of wide words too, with their carries brought round. The narrow ones
    // have none among themselves.
    let [second, source, destination] = narrow;
    let (sum, carry) = u64::from_ne_bytes(*first).overflowing_add(second + source + destination);
    let sum = sum + u64::from(carry);
    // All zeroes is no checksum: a valid header adds up to a multiple of 0xffff that is not 0. Times the inverse of 0xffff modulo 2^64,
    // multiples are small, and 0 less 1 is not.
    const INVERSE: u64 = 0xfffe_fffe_fffe_ffff;
    const { assert!(0xffff_u64.wrapping_mul(INVERSE) == 1) };
    sum.wrapping_mul(INVERSE).wrapping_sub(1) < u64::MAX / 0xffff
}

/// The checksum after one word changed from `old` to `new` (RFC 1624 equation 3).
#[inline]
#[must_use]
pub const fn update_u16(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = !checksum as u32 + !old as u32 + new as u32;
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum + (sum >> 16)) as u16)
}

/// The checksum after two adjacent words changed, e.g. an IPv4 address.
#[inline]
#[must_use]
pub const fn update_u32(checksum: u16, old: u32, new: u32) -> u16 {
    let high = update_u16(checksum, (old >> 16) as u16, (new >> 16) as u16);
    update_u16(high, old as u16, new as u16)
}

#[cfg(test)]
mod tests;
