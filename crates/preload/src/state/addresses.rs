//! The router's own addresses: those that the daemon named when it was met, and what its answers have said of them since.

use std::net::{IpAddr, SocketAddr};

use shm::session::Routed;

use super::State;

/// Addresses of the router, as far as is known.
#[derive(Debug)]
pub(super) struct Addresses(Vec<IpAddr>);

impl Addresses {
    /// Those that a daemon names at first.
    pub(super) fn new(all: &[IpAddr]) -> Self {
        Self(all.to_vec())
    }

    pub(super) fn all(&self) -> &[IpAddr] {
        &self.0
    }

    #[inline]
    pub(super) fn has(&self, ip: IpAddr) -> bool {
        self.0.contains(&ip)
    }

    /// The daemon has said how packets go to `destination`.
    pub(super) fn learn(&mut self, destination: SocketAddr, routed: Routed) {
        let ip = destination.ip();
        match routed {
            // What goes to an own address comes from there; all else comes from another one.
            Routed::Millrace { source, .. } => {
                self.note(source, true);
                self.note(ip, source == ip);
            }
            Routed::Kernel if destination.port() == 0 => self.note(ip, false),
            // The kernel has it too, maybe, and nobody serves that port.
            Routed::Kernel => {}
        }
    }

    fn note(&mut self, ip: IpAddr, is_own: bool) {
        if is_own && !self.has(ip) {
            self.0.push(ip);
        } else if !is_own {
            self.0.retain(|own| *own != ip);
        }
    }
}

impl State {
    /// Whether the router has an address, as far as is known.
    pub(crate) fn has_known_address(&self, ip: IpAddr) -> bool {
        self.addresses.has(ip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_say_which_addresses_come_and_go() {
        let [first, second, other]: [IpAddr; 3] =
            ["192.0.2.1", "2001:db8::1", "198.51.100.9"].map(|text| text.parse().unwrap());
        let from = |source| Routed::Millrace { source, mtu: 1500 };
        let mut addresses = Addresses::new(&[first]);
        for (destination, port, routed, all) in [
            // Of others, an answer says where packets come from.
            (other, 80, from(first), vec![first]),
            (other, 80, from(second), vec![first, second]),
            (second, 0, from(second), vec![first, second]),
            // Nobody serves there, or the kernel alone: the address stays.
            (first, 80, Routed::Kernel, vec![first, second]),
            (first, 0, Routed::Kernel, vec![second]),
            // It is another host's by now.
            (second, 80, from(first), vec![first]),
            (other, 0, Routed::Kernel, vec![first]),
        ] {
            addresses.learn(SocketAddr::new(destination, port), routed);
            let mut known = addresses.all().to_vec();
            known.sort();
            assert_eq!(known, all, "{destination} {port}");
            assert_eq!(addresses.has(second), all.contains(&second));
        }
    }
}
