//! Which way packets go: asked of the daemon, and remembered for a second.

use std::net::{IpAddr, SocketAddr};

use shm::session::{Routed, TransportProtocol};

use super::State;
use crate::clock;

/// How long an answer holds: ns.
const FRESH: u64 = 1_000_000_000;
/// Answers that are remembered.
const MOST: usize = 1024;

impl State {
    /// Which way connections to `destination` go. A daemon that does not answer leaves it to the kernel.
    pub(crate) fn route(&mut self, destination: SocketAddr) -> Routed {
        self.route_of(TransportProtocol::Tcp, destination)
    }

    /// The same of datagrams.
    pub(crate) fn route_datagrams(&mut self, destination: SocketAddr) -> Routed {
        let end = self.host_of(destination);
        let routed = self.route_of(TransportProtocol::Udp, end);
        match routed {
            // An address that the router has got since.
            Routed::Millrace { source, .. } if source == end.ip() && end.port() == 0 => {
                self.route_of(TransportProtocol::Udp, self.host_of(destination))
            }
            routed => routed,
        }
    }

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
    fn host_of(&self, destination: SocketAddr) -> SocketAddr {
        let ip = destination.ip().to_canonical();
        SocketAddr::new(ip, if self.addresses.has(ip) { destination.port() } else { 0 })
    }

    fn route_of(&mut self, protocol: TransportProtocol, destination: SocketAddr) -> Routed {
        match self.known_route(protocol, destination) {
            Some(routed) => routed,
            None => self.ask_route(protocol, destination),
        }
    }

    /// An answer that holds.
    pub(super) fn known_route(
        &self,
        protocol: TransportProtocol,
        destination: SocketAddr,
    ) -> Option<Routed> {
        let now = clock::now();
        let known = self.routes.get(&(protocol, destination));
        known.filter(|(at, _)| now < at + FRESH).map(|(_, routed)| *routed)
    }

    /// Has an answer anew.
    pub(super) fn ask_route(
        &mut self,
        protocol: TransportProtocol,
        destination: SocketAddr,
    ) -> Routed {
        let now = clock::now();
        let asked = self.attachment.link.route(protocol, destination);
        if let Ok(routed) = asked {
            self.addresses.learn(destination, routed);
        }
        let routed = asked.unwrap_or(Routed::Kernel);
        if let Routed::Millrace { mtu, .. } = routed {
            self.sessions.note_first_link(destination.ip(), mtu);
        }
        self.remember((protocol, destination), (now, routed));
        routed
    }

    fn remember(&mut self, key: (TransportProtocol, SocketAddr), answer: (u64, Routed)) {
        if self.routes.len() >= MOST {
            self.routes.clear();
        }
        self.routes.insert(key, answer);
    }

    /// A range more of local ports. Gives whether there is one.
    pub(crate) fn lease(&mut self) -> bool {
        match self.attachment.link.lease(self.attachment.number(), None) {
            Ok(range) => {
                self.sessions.add_ports(range.first, range.count);
                true
            }
            Err(error) => {
                crate::report::say(&error.to_string());
                false
            }
        }
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
