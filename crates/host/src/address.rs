//! Addresses as calls have them, and as the stack has them: IPv4 over an IPv6 socket is mapped (RFC 4291
//! 2.5.5.2) in the former only.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::session::Domain;

/// As the stack has it.
pub(crate) fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// As a socket of this domain tells it.
pub(crate) fn told(domain: Domain, address: SocketAddr) -> SocketAddr {
    match (domain, address.ip()) {
        (Domain::V6, IpAddr::V4(ip)) if ip.is_unspecified() => {
            SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), address.port())
        }
        (Domain::V6, IpAddr::V4(ip)) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        _ => address,
    }
}

/// Any address of the domain.
pub(crate) fn any(domain: Domain) -> IpAddr {
    match domain {
        Domain::V4 => Ipv4Addr::UNSPECIFIED.into(),
        Domain::V6 => Ipv6Addr::UNSPECIFIED.into(),
    }
}
