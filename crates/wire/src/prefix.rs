//! Address prefixes: an address and how many of its leading bits count.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Why something is no prefix. The texts say what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// Not of the form ADDRESS/LENGTH.
    #[error("'{0}' is no prefix: write ADDRESS/LENGTH, like 10.0.0.0/8 or 2001:db8::/32")]
    Syntax(String),
    /// The length is more than the address has bits.
    #[error("prefix length {length} is more than {bits}")]
    Length {
        /// The length given.
        length: u32,
        /// Bits of an address.
        bits: u8,
    },
    /// Bits beyond the length are set.
    #[error("{given} has bits beyond its length: {network} would be right")]
    HostBits {
        /// As given.
        given: String,
        /// The same with those bits cleared.
        network: String,
    },
    /// The mask is not a run of ones from the left.
    #[error("mask {0} is not a run of ones from the left, like 255.255.255.0")]
    Mask(String),
}

macro_rules! prefix {
    ($name:ident, $address:ident, $bits:ty, $width:literal, $example:literal) => {
        #[doc = concat!("A network, like ", $example, ": no bits beyond the length are set.")]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            bits: $bits,
            length: u8,
        }

        impl $name {
            /// Every address.
            pub const ALL: Self = Self { bits: 0, length: 0 };

            /// Errors: `Length`; `HostBits` when bits beyond the length are set.
            pub fn new(address: $address, length: u8) -> Result<Self, PrefixError> {
                let network = Self::containing(address, length)?;
                if network.bits == address.to_bits() {
                    Ok(network)
                } else {
                    let given = format!("{address}/{length}");
                    Err(PrefixError::HostBits { given, network: network.to_string() })
                }
            }

            /// The prefix of this length that the address lies in. Errors: `Length`.
            pub fn containing(address: $address, length: u8) -> Result<Self, PrefixError> {
                if length > $width {
                    return Err(PrefixError::Length { length: length.into(), bits: $width });
                }
                Ok(Self { bits: address.to_bits() & Self::mask_bits(length), length })
            }

            /// From a network address and a mask. Errors: `Mask`, `HostBits`.
            pub fn from_mask(address: $address, mask: $address) -> Result<Self, PrefixError> {
                let length = mask.to_bits().leading_ones() as u8;
                if mask.to_bits() != Self::mask_bits(length) {
                    return Err(PrefixError::Mask(mask.to_string()));
                }
                Self::new(address, length)
            }

            /// The prefix of one address alone.
            #[must_use]
            pub const fn host(address: $address) -> Self {
                Self { bits: address.to_bits(), length: $width }
            }

            #[inline]
            const fn mask_bits(length: u8) -> $bits {
                match <$bits>::MAX.checked_shl($width - length as u32) {
                    Some(mask) => mask,
                    None => 0,
                }
            }

            /// The network address.
            #[inline]
            #[must_use]
            pub const fn address(self) -> $address {
                $address::from_bits(self.bits)
            }

            /// The network address as a number.
            #[inline]
            #[must_use]
            pub const fn bits(self) -> $bits {
                self.bits
            }

            /// Leading bits that count.
            #[inline]
            #[must_use]
            pub const fn length(self) -> u8 {
                self.length
            }

            /// The mask.
            #[must_use]
            pub const fn mask(self) -> $address {
                $address::from_bits(Self::mask_bits(self.length))
            }

            /// The last address in it.
            #[must_use]
            pub const fn last(self) -> $address {
                $address::from_bits(self.bits | !Self::mask_bits(self.length))
            }

            /// Whether the address lies in it.
            #[inline]
            #[must_use]
            pub const fn contains(self, address: $address) -> bool {
                address.to_bits() & Self::mask_bits(self.length) == self.bits
            }

            /// Whether all of `other` lies in it.
            #[must_use]
            pub const fn covers(self, other: Self) -> bool {
                self.length <= other.length && self.contains(other.address())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}/{}", self.address(), self.length)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = PrefixError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let (address, length) = split(text)?;
                let address = address.parse().map_err(|_| PrefixError::Syntax(text.into()))?;
                let length = u8::try_from(length)
                    .map_err(|_| PrefixError::Length { length, bits: $width })?;
                Self::new(address, length)
            }
        }
    };
}

prefix!(Ipv4Prefix, Ipv4Addr, u32, 32, "192.0.2.0/24");
prefix!(Ipv6Prefix, Ipv6Addr, u128, 128, "2001:db8::/32");

impl Ipv4Prefix {
    /// The address that means every host of the network (RFC 922); none in /31 (RFC 3021) and /32.
    #[must_use]
    pub fn broadcast(self) -> Option<Ipv4Addr> {
        (self.length <= 30).then(|| self.last())
    }
}

/// Address text and length number of 'ADDRESS/LENGTH'.
fn split(text: &str) -> Result<(&str, u32), PrefixError> {
    let syntax = || PrefixError::Syntax(text.into());
    let (address, length) = text.split_once('/').ok_or_else(syntax)?;
    // The standard parser would take a sign.
    if !length.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(syntax());
    }
    Ok((address, length.parse().map_err(|_| syntax())?))
}

#[cfg(test)]
mod tests;
