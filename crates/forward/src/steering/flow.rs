//! A flow between this router and somebody else.

use std::net::{IpAddr, SocketAddr};

use shm::session::TransportProtocol;
use wire::Protocol;
use wire::flow::{FiveTuple4, FiveTuple6};

/// A flow by its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// Its protocol.
    pub protocol: TransportProtocol,
    /// The end here.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
}

impl Flow {
    #[inline]
    pub(super) fn protocol(&self) -> Protocol {
        match self.protocol {
            TransportProtocol::Tcp => Protocol::TCP,
            TransportProtocol::Udp => Protocol::UDP,
        }
    }

    /// Its hash, the same for all its packets.
    #[inline]
    pub(super) fn hash(&self, seed: u64) -> u32 {
        let protocol = self.protocol();
        let (to, from) = (self.local.port(), self.remote.port());
        match (self.remote.ip(), self.local.ip()) {
            (IpAddr::V4(remote), IpAddr::V4(local)) => {
                FiveTuple4::new((remote, from), (local, to), protocol).hash(seed)
            }
            (IpAddr::V6(remote), IpAddr::V6(local)) => {
                FiveTuple6::new((remote, from), (local, to), protocol).hash(seed)
            }
            _ => 0,
        }
    }
}
