//! What all connections of a stack share.

use std::collections::VecDeque;

use crate::event::Event;
use crate::fast_open::{Keys, Servers};
use crate::listener::Listeners;
use crate::options::{Config, SECOND, Sets};
use crate::packet::Offloads;
use crate::paths::Paths;
use crate::reason::Counters;
use crate::siphash::Secret;
use crate::tcp::flight::Spares;

/// So many in a second.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    second: u64,
    used: u32,
}

impl Limiter {
    pub(crate) fn allow(&mut self, now: u64, limit: u32) -> bool {
        let second = now / SECOND;
        if second != self.second {
            (self.second, self.used) = (second, 0);
        }
        self.used = self.used.saturating_add(1);
        self.used <= limit
    }
}

/// What all connections of a stack share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) counters: Counters,
    /// What the sink of this call can do.
    pub(crate) offloads: Offloads,
    pub(crate) events: VecDeque<Event>,
    /// Connections with something to send at the next flush.
    pub(crate) dirty: Vec<u32>,
    /// The sink did not take a packet of a connection.
    pub(crate) sink_is_full: bool,
    pub(crate) secret: Secret,
    pub(crate) sets: Sets,
    pub(crate) listeners: Listeners,
    pub(crate) challenges: Limiter,
    pub(crate) resets: Limiter,
    pub(crate) unreachables: Limiter,
    pub(crate) paths: Paths,
    pub(crate) servers: Servers,
    /// Of the cookies that are given out.
    pub(crate) keys: Keys,
    /// Flights that no connection uses.
    pub(crate) flights: Spares,
}

impl Shared {
    pub(crate) fn new(config: Config) -> Self {
        let secret = Secret(config.seed);
        Self {
            paths: Paths::new(config.path_mtus),
            servers: Servers::new(config.fast_open_cookies),
            keys: Keys::new(secret),
            config,
            counters: Counters::default(),
            offloads: Offloads::default(),
            events: VecDeque::new(),
            dirty: Vec::new(),
            sink_is_full: false,
            secret,
            sets: Sets::default(),
            listeners: Listeners::default(),
            challenges: Limiter::default(),
            resets: Limiter::default(),
            unreachables: Limiter::default(),
            flights: Spares::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_own_allowance() {
        let mut limiter = Limiter::default();
        let allowed = (0..10).filter(|_| limiter.allow(5, 3)).count();
        assert_eq!(allowed, 3);
        assert!(limiter.allow(SECOND, 3));
    }
}
