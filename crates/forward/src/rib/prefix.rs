//! A prefix of either family, and what the code that serves both asks of one.

use std::fmt;
use std::hash::Hash;
use std::net::IpAddr;

use wire::prefix::{Ipv4Prefix, Ipv6Prefix, PrefixError};

/// A prefix of either family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Prefix {
    /// IPv4.
    V4(Ipv4Prefix),
    /// IPv6.
    V6(Ipv6Prefix),
}

impl Prefix {
    /// Errors: `Length`; `HostBits` when bits beyond the length are set.
    pub fn new(address: IpAddr, length: u8) -> Result<Self, PrefixError> {
        match address {
            IpAddr::V4(address) => Ipv4Prefix::new(address, length).map(Self::V4),
            IpAddr::V6(address) => Ipv6Prefix::new(address, length).map(Self::V6),
        }
    }

    /// The prefix of this length that the address lies in. Errors: `Length`.
    pub fn containing(address: IpAddr, length: u8) -> Result<Self, PrefixError> {
        match address {
            IpAddr::V4(address) => Ipv4Prefix::containing(address, length).map(Self::V4),
            IpAddr::V6(address) => Ipv6Prefix::containing(address, length).map(Self::V6),
        }
    }

    /// The prefix of one address alone.
    #[must_use]
    pub fn host(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::V4(Ipv4Prefix::host(address)),
            IpAddr::V6(address) => Self::V6(Ipv6Prefix::host(address)),
        }
    }

    /// Its first and its last address.
    pub(super) fn bounds(self) -> (IpAddr, IpAddr) {
        match self {
            Self::V4(prefix) => (prefix.address().into(), prefix.last().into()),
            Self::V6(prefix) => (prefix.address().into(), prefix.last().into()),
        }
    }

    /// The network address.
    #[must_use]
    pub fn address(self) -> IpAddr {
        match self {
            Self::V4(prefix) => IpAddr::V4(prefix.address()),
            Self::V6(prefix) => IpAddr::V6(prefix.address()),
        }
    }

    /// Leading bits that count.
    #[must_use]
    pub fn length(self) -> u8 {
        match self {
            Self::V4(prefix) => prefix.length(),
            Self::V6(prefix) => prefix.length(),
        }
    }

    /// Whether the address lies in it.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        match (self, address) {
            (Self::V4(prefix), IpAddr::V4(address)) => prefix.contains(address),
            (Self::V6(prefix), IpAddr::V6(address)) => prefix.contains(address),
            _ => false,
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(prefix) => prefix.fmt(f),
            Self::V6(prefix) => prefix.fmt(f),
        }
    }
}

/// What the routes of one family are sorted by.
pub(super) trait Key: Copy + Ord + Hash + Into<Prefix> {
    /// Bits of an address.
    const WIDTH: u8;

    /// Leading bits that count.
    fn length(self) -> u8;

    /// Its first `length` bits; itself when `length` is no shorter.
    fn truncated(self, length: u8) -> Self;

    /// The prefixes of its first and its last address.
    fn hosts(self) -> (Self, Self);
}

macro_rules! key {
    ($name:ident, $width:literal, $variant:ident) => {
        impl Key for $name {
            const WIDTH: u8 = $width;

            fn length(self) -> u8 {
                $name::length(self)
            }

            fn truncated(self, length: u8) -> Self {
                Self::containing(self.address(), length.min($name::length(self))).unwrap_or(self)
            }

            fn hosts(self) -> (Self, Self) {
                (Self::host(self.address()), Self::host(self.last()))
            }
        }

        impl From<$name> for Prefix {
            fn from(prefix: $name) -> Self {
                Self::$variant(prefix)
            }
        }
    };
}

key!(Ipv4Prefix, 32, V4);
key!(Ipv6Prefix, 128, V6);
