//! What listeners are bound to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shm::session::TransportProtocol;

/// A listener's number.
pub type ListenerId = u32;

/// What a socket is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bind {
    /// The protocol.
    pub protocol: TransportProtocol,
    /// The address; the unspecified one stands for all of its version, and the one of IPv6 for those of IPv4 too, unless
    /// `only_v6`.
    pub address: IpAddr,
    /// The port, not 0.
    pub port: u16,
    /// IPv6 only.
    pub only_v6: bool,
}

impl Bind {
    /// Whether it serves packets to an address, and how particularly: 0 is an address of its own. Among listeners on a
    /// port the one with the least has them.
    #[must_use]
    pub fn serves(&self, address: IpAddr) -> Option<usize> {
        Place::serving(address.to_canonical()).iter().position(|place| *place == Place::of(self))
    }
}

/// Which addresses a listener serves. More particular ones come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Place {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    Any4,
    Any6,
    Any,
}

impl Place {
    pub(super) fn of(bind: &Bind) -> Self {
        match bind.address.to_canonical() {
            IpAddr::V4(address) if address.is_unspecified() => Self::Any4,
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) if !address.is_unspecified() => Self::V6(address),
            IpAddr::V6(_) if bind.only_v6 => Self::Any6,
            IpAddr::V6(_) => Self::Any,
        }
    }

    /// Those that serve an address, the most particular one first.
    pub(super) fn serving(address: IpAddr) -> [Self; 3] {
        match address {
            IpAddr::V4(address) => [Self::V4(address), Self::Any4, Self::Any],
            IpAddr::V6(address) => [Self::V6(address), Self::Any6, Self::Any],
        }
    }
}
