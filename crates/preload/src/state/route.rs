//! Which way packets go, as the daemon has said within the last second, and the ports that it leases.

use std::net::{IpAddr, SocketAddr};

use shm::session::{Routed, TransportProtocol};

use super::State;
use crate::clock;

/// How long an answer holds: ns.
const FRESH: u64 = 1_000_000_000;
/// Answers that are remembered.
const MOST: usize = 1024;

impl State {
    /// A datagram has come by Millrace: an answer goes the same way.
    pub(crate) fn came_from(&mut self, remote: SocketAddr, local: IpAddr) {
        if super::is_the_kernels(remote.ip()) {
            return;
        }
        let key = (TransportProtocol::Udp, self.host_of(remote));
        if self.known_route(key.0, key.1).is_none() {
            let (source, mtu) = (local.to_canonical(), self.sessions.mtu());
            self.remember(key, (clock::now(), Routed::Millrace { source, mtu }));
        }
    }

    /// All ports of another host are reached alike; the router's own are served by this or that.
    pub(crate) fn host_of(&self, destination: SocketAddr) -> SocketAddr {
        let ip = destination.ip().to_canonical();
        SocketAddr::new(ip, if self.addresses.has(ip) { destination.port() } else { 0 })
    }

    /// An answer that holds.
    pub(crate) fn known_route(
        &self,
        protocol: TransportProtocol,
        destination: SocketAddr,
    ) -> Option<Routed> {
        let now = clock::now();
        let known = self.routes.get(&(protocol, destination));
        known.filter(|(at, _)| now < at + FRESH).map(|(_, routed)| *routed)
    }

    /// The daemon has answered what it was asked at a time. `None`: it has not, and the kernel may know the way.
    pub(crate) fn learn_route(
        &mut self,
        key: (TransportProtocol, SocketAddr),
        at: u64,
        answer: Option<Routed>,
    ) -> Routed {
        if let Some(routed) = answer {
            self.addresses.learn(key.1, routed);
        }
        let routed = answer.unwrap_or(Routed::Kernel);
        if let Routed::Millrace { mtu, .. } = routed {
            self.sessions.note_first_link(key.1.ip(), mtu);
        }
        self.remember(key, (at, routed));
        routed
    }

    fn remember(&mut self, key: (TransportProtocol, SocketAddr), answer: (u64, Routed)) {
        if self.routes.len() >= MOST {
            self.routes.clear();
        }
        self.routes.insert(key, answer);
    }

    /// Asks a daemon that does not know them for the ports that connections were opened from.
    pub(super) fn lease_again(&mut self) {
        for (first, _) in self.sessions.ports().to_vec() {
            let leased = self.attachment.link.lease(self.attachment.number(), Some(first));
            if let Err(error) = leased {
                crate::report::say(&error.to_string());
                self.sessions.remove_ports(first);
            }
        }
    }
}
