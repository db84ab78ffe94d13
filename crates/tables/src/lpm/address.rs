//! Addresses as integers in host byte order, and prefixes of them.

use std::{
    fmt,
    hash::Hash,
    net::{Ipv4Addr, Ipv6Addr},
};

/// An address family by the width of its addresses: `u32` for IPv4, `u128` for IPv6.
pub trait Address:
    Copy + Eq + Ord + Hash + fmt::Debug + Send + Sync + sealed::Sealed + 'static
{
    /// Bits in an address.
    const WIDTH: u8;
    /// Where the levels of the trie end, counted in bits from the top of the address.
    #[doc(hidden)]
    const LEVELS: &'static [u8];

    /// The address with all but the first `len` bits cleared.
    #[must_use]
    fn truncate(self, len: u8) -> Self;

    /// Bits `from..to` counted from the top, as a number; `from < to`, at most 32 of them.
    #[doc(hidden)]
    #[must_use]
    fn field(self, from: u8, to: u8) -> usize;

    /// Writes the address in its usual text form.
    ///
    /// # Errors
    /// Those of the formatter.
    fn write(self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u128 {}
}

macro_rules! address {
    ($integer:ty, $text:ty, $levels:expr) => {
        impl Address for $integer {
            const WIDTH: u8 = <$integer>::BITS as u8;
            const LEVELS: &'static [u8] = &$levels;

            #[inline(always)]
            fn truncate(self, len: u8) -> Self {
                let cleared = u32::from(Self::WIDTH.saturating_sub(len));
                self & <$integer>::MAX.checked_shl(cleared).unwrap_or(0)
            }

            #[inline(always)]
            fn field(self, from: u8, to: u8) -> usize {
                // A half at a time: shifts of 128 bits cost several times those of 64.
                let (word, below) = if to <= 64 && Self::WIDTH > 64 {
                    ((self as u128 >> 64) as u64, 64 - to)
                } else {
                    (self as u64, Self::WIDTH - to)
                };
                (word >> below) as usize & ((1 << (to - from)) - 1)
            }

            fn write(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&<$text>::from_bits(self), f)
            }
        }
    };
}

address!(u32, Ipv4Addr, [16, 24, 28, 32]);
address!(
    u128,
    Ipv6Addr,
    [
        16, 28, 34, 40, 48, 52, 56, 60, 64, 68, 72, 76, 80, 84, 88, 92, 96, 100, 104, 108, 112,
        116, 120, 124, 128
    ]
);

/// Why there is no such prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// More bits than the address has.
    #[error("prefix length {0} is longer than the address")]
    TooLong(u8),
    /// Bits are set beyond the length.
    #[error("address bits beyond prefix length {0} are not zero")]
    HostBits(u8),
}

/// The first `len` bits of an address; the others are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix<A> {
    bits: A,
    len: u8,
}

impl<A: Address> Prefix<A> {
    /// The prefix of `len` bits that `bits` spells.
    ///
    /// # Errors
    /// [`PrefixError`] when `len` exceeds the address, or bits are set beyond it.
    pub fn new(bits: A, len: u8) -> Result<Self, PrefixError> {
        let prefix = Self::covering(bits, len)?;
        if prefix.bits == bits { Ok(prefix) } else { Err(PrefixError::HostBits(len)) }
    }

    /// The prefix of `len` bits that `address` is in.
    ///
    /// # Errors
    /// [`PrefixError::TooLong`] when `len` exceeds the address.
    pub fn covering(address: A, len: u8) -> Result<Self, PrefixError> {
        if len > A::WIDTH {
            return Err(PrefixError::TooLong(len));
        }
        Ok(Self { bits: address.truncate(len), len })
    }

    /// A prefix of one address.
    #[must_use]
    pub fn host(address: A) -> Self {
        Self { bits: address, len: A::WIDTH }
    }

    /// Its first address.
    #[must_use]
    pub fn bits(self) -> A {
        self.bits
    }

    /// Its length in bits.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a length in bits; nothing to be empty")]
    pub fn len(self) -> u8 {
        self.len
    }

    /// Whether `address` is in it.
    #[must_use]
    pub fn contains(self, address: A) -> bool {
        address.truncate(self.len) == self.bits
    }
}

impl<A: Address> fmt::Display for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bits.write(f)?;
        write!(f, "/{}", self.len)
    }
}
