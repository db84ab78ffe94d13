//! The two ends of a connection, and its key in the table.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use wire::Protocol;
use wire::checksum::Sum;
use wire::flow::{FiveTuple, FiveTuple4, FiveTuple6};

/// Addresses of both ends, of one IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ends {
    /// This end.
    pub local: SocketAddr,
    /// The peer.
    pub remote: SocketAddr,
}

impl Ends {
    /// `None` when the versions differ.
    pub(crate) fn new(local: SocketAddr, remote: SocketAddr) -> Option<Self> {
        (local.is_ipv4() == remote.is_ipv4()).then_some(Self { local, remote })
    }

    /// The key that segments from the peer carry.
    pub(crate) fn key(&self) -> FiveTuple {
        self.key_of(Protocol::TCP)
    }

    /// The same, of any protocol.
    pub(crate) fn key_of(&self, protocol: Protocol) -> FiveTuple {
        let ports = (self.remote.port(), self.local.port());
        match (self.remote.ip(), self.local.ip()) {
            (IpAddr::V4(remote), IpAddr::V4(local)) => {
                FiveTuple::V4(FiveTuple4::new((remote, ports.0), (local, ports.1), protocol))
            }
            (remote, local) => FiveTuple::V6(FiveTuple6::new(
                (to_v6(remote), ports.0),
                (to_v6(local), ports.1),
                protocol,
            )),
        }
    }

    /// Of the key of a packet from the peer.
    pub(crate) fn of_received(key: &FiveTuple) -> Self {
        match key {
            FiveTuple::V4(flow) => Self {
                local: (flow.destination(), flow.destination_port()).into(),
                remote: (flow.source(), flow.source_port()).into(),
            },
            FiveTuple::V6(flow) => Self {
                local: (flow.destination(), flow.destination_port()).into(),
                remote: (flow.source(), flow.source_port()).into(),
            },
        }
    }

    /// Whether both can be ends of a connection (RFC 1122 4.2.3.10).
    pub(crate) fn is_possible(&self) -> bool {
        let single = |ip: IpAddr| {
            let mapped = matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some());
            let broadcast = ip == IpAddr::V4(Ipv4Addr::BROADCAST);
            // IPv4-mapped addresses are for calls, on no wire (RFC 4291 2.5.5.2).
            !ip.is_multicast() && !ip.is_unspecified() && !broadcast && !mapped
        };
        let distinct = self.local != self.remote;
        let ports = self.local.port() != 0 && self.remote.port() != 0;
        single(self.local.ip()) && single(self.remote.ip()) && ports && distinct
    }

    /// Bytes of the IP header.
    #[inline]
    pub(crate) fn ip_header(&self) -> usize {
        if self.remote.is_ipv4() { wire::ipv4::HEADER_LENGTH } else { wire::ipv6::HEADER_LENGTH }
    }

    /// Sum over the pseudo header of `length` bytes.
    #[inline]
    pub(crate) fn pseudo_of(&self, protocol: Protocol, length: usize) -> Sum {
        match (self.local.ip(), self.remote.ip()) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                Sum::new().pseudo_v4(local, remote, protocol, length as u16)
            }
            (local, remote) => {
                Sum::new().pseudo_v6(to_v6(local), to_v6(remote), protocol, length as u32)
            }
        }
    }
}

/// The address as IPv6; mapped when it is not.
pub(crate) fn to_v6(ip: IpAddr) -> std::net::Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}
