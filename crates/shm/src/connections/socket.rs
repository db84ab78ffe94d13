//! What is known of a UDP socket.

use std::net::SocketAddr;

use super::place::SOCKET_WORDS;
use super::record::{address, address_words, halves, pair};

/// A UDP socket. Times are of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketRecord {
    /// This end. An unspecified address stands for any.
    pub local: SocketAddr,
    /// The peer that it is connected to, of the same IP version.
    pub remote: Option<SocketAddr>,
    /// When this was written: ns.
    pub at: u64,
    /// What waits for the application, and to be sent, as it counts in the buffers: bytes.
    pub queues: (u32, u32),
    /// Datagrams that found the receive buffer full.
    pub dropped: u64,
}

impl SocketRecord {
    pub(super) fn encode(&self) -> [u64; SOCKET_WORDS] {
        let family = if self.local.is_ipv4() { 4 } else { 6 };
        let [local_high, local_low] = address_words(self.local.ip());
        let [high, low] = self.remote.map_or([0; 2], |remote| address_words(remote.ip()));
        let port = self.remote.map_or(0, |remote| remote.port());
        let ports = pair(self.local.port().into(), port.into());
        let queues = pair(self.queues.0, self.queues.1);
        [family, local_high, local_low, high, low, ports, self.at, queues, self.dropped]
    }

    /// What such words say. `None`: no socket could have written them.
    pub(super) fn decode(words: &[u64; SOCKET_WORDS]) -> Option<Self> {
        let [family, local_high, local_low, high, low, ports, at, queues, dropped] = *words;
        let family = u8::try_from(family).ok()?;
        let (port, peer) = halves(ports);
        let port = u16::try_from(port).ok().filter(|port| *port != 0)?;
        let remote = match u16::try_from(peer).ok()? {
            0 => None,
            peer => Some((address(family, high, low)?, peer).into()),
        };
        let local = (address(family, local_high, local_low)?, port).into();
        Some(Self { local, remote, at, queues: halves(queues), dropped })
    }
}
