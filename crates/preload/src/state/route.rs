//! Which way packets go: asked of the daemon, and remembered for a second.

use std::net::SocketAddr;

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
        let now = clock::now();
        let known = self.routes.get(&destination).filter(|(at, _)| now < at + FRESH);
        if let Some((_, routed)) = known {
            return *routed;
        }
        let asked = self.attachment.link.route(TransportProtocol::Tcp, destination);
        let routed = asked.unwrap_or(Routed::Kernel);
        if self.routes.len() >= MOST {
            self.routes.clear();
        }
        self.routes.insert(destination, (now, routed));
        routed
    }

    /// A range more of local ports. Gives whether there is one.
    pub(crate) fn lease(&mut self) -> bool {
        match self.attachment.link.lease(self.attachment.queues.number, None) {
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
}
