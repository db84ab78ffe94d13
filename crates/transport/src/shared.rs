//! What all connections of a stack share.

use std::net::IpAddr;

use crate::event::Event;
use crate::fast_open::{Keys, Servers};
use crate::limiter::Limiter;
use crate::listener::Listeners;
use crate::options::{Config, Sets};
use crate::packet::Offloads;
use crate::paths::Paths;
use crate::reason::Counters;
use crate::siphash::Secret;
use tables::PagedQueue;

/// What all connections of a stack share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) counters: Counters,
    /// Segments that may still leave in this step.
    pub(crate) allowance: usize,
    /// What the sink of this call can do.
    pub(crate) offloads: Offloads,
    /// The path that packets come by in this step; 0: the network.
    pub(crate) path: u16,
    /// Bytes of an IP packet that it takes.
    pub(crate) path_mtu: u16,
    pub(crate) events: PagedQueue<Event>,
    /// Connections with something to send at the next flush.
    pub(crate) dirty: PagedQueue<u32>,
    /// The sink did not take a packet of a connection.
    pub(crate) sink_is_full: bool,
    pub(crate) secret: Secret,
    pub(crate) sets: Sets,
    pub(crate) listeners: Listeners,
    /// Connections that their applications have closed, and that go on.
    pub(crate) orphans: usize,
    pub(crate) challenges: Limiter,
    pub(crate) resets: Limiter,
    pub(crate) unreachables: Limiter,
    pub(crate) paths: Paths,
    pub(crate) servers: Servers,
    /// Of the cookies that are given out.
    pub(crate) keys: Keys,
    /// Tests compare both ways.
    #[cfg(test)]
    pub(crate) shortcuts: bool,
}

impl Shared {
    /// Whether the paths for what is most frequent are taken, which do what the general steps would.
    #[inline(always)]
    pub(crate) fn takes_shortcuts(&self) -> bool {
        #[cfg(test)]
        return self.shortcuts;
        #[cfg(not(test))]
        true
    }

    /// Whether a challenge may go to `peer`.
    pub(crate) fn may_challenge(&mut self, peer: IpAddr, now: u64) -> bool {
        self.challenges.allow(peer, now, self.config.challenges)
    }

    /// Whether a reset may go to `peer` that belongs to no connection.
    pub(crate) fn may_reset(&mut self, peer: IpAddr, now: u64) -> bool {
        self.resets.allow(peer, now, self.config.resets)
    }

    pub(crate) fn new(config: Config) -> Self {
        let secret = Secret(config.seed);
        let path_mtu = config.mtu;
        Self {
            paths: Paths::new(config.path_mtus),
            servers: Servers::new(config.fast_open_cookies),
            keys: Keys::new(secret),
            config,
            counters: Counters::default(),
            allowance: usize::MAX,
            offloads: Offloads::default(),
            path: 0,
            path_mtu,
            events: PagedQueue::new(),
            dirty: PagedQueue::new(),
            sink_is_full: false,
            secret,
            sets: Sets::default(),
            listeners: Listeners::default(),
            orphans: 0,
            challenges: Limiter::new(secret, 8),
            resets: Limiter::new(secret, 9),
            unreachables: Limiter::new(secret, 10),
            #[cfg(test)]
            shortcuts: true,
        }
    }
}
