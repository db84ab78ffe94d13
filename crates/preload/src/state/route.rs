//! Which way packets to an address go: asked of the daemon, and remembered for a second.

use std::net::IpAddr;

use shm::session::Routed;

use super::State;
use crate::clock;

/// How long an answer holds: ns.
const FRESH: u64 = 1_000_000_000;
/// Answers that are remembered.
const MOST: usize = 1024;

impl State {
    /// Which way to `destination`. A daemon that does not answer leaves it to the kernel.
    pub(crate) fn route(&mut self, destination: IpAddr) -> Routed {
        let now = clock::now();
        let known = self.routes.get(&destination).filter(|(at, _)| now < at + FRESH);
        if let Some((_, routed)) = known {
            return *routed;
        }
        let routed = self.attachment.link.route(destination).unwrap_or(Routed::Kernel);
        if self.routes.len() >= MOST {
            self.routes.clear();
        }
        self.routes.insert(destination, (now, routed));
        routed
    }

    /// A range more of local ports. Gives whether there is one.
    pub(crate) fn lease(&mut self) -> bool {
        match self.attachment.link.lease(self.attachment.queues.number) {
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
