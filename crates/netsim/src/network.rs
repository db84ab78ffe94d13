//! Hosts on two sides of a path, and time.

mod host;
mod moving;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use transport::{Config, Event, Packet, Stack};

use crate::buffers::{CountedRings, HostStack};
use crate::capture::{self, Record};
use crate::link::{Fate, Link, LinkOptions};
use crate::random::Random;
use crate::router;
use crate::segment::Port;
use crate::steering::Steering;

pub use host::Application;
use host::Host;
pub use moving::Passage;

/// Where a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Its packets take the first link.
    Left,
    /// Its packets take the second link.
    Right,
}

/// Two sides, a link each way, and hosts that run an `A`.
pub struct Network<A> {
    now: u64,
    hosts: Vec<Host<A>>,
    links: [Link; 2],
    /// By arrival and number: receiving host and packet.
    wire: BTreeMap<(u64, u64), (usize, Vec<u8>)>,
    number: u64,
    changes: BTreeMap<u64, Vec<(Side, LinkOptions)>>,
    steering: Steering,
    random: Random,
    seed: u64,
    digest: DefaultHasher,
    records: Option<Vec<Record>>,
}

impl<A: Application> Network<A> {
    /// A path: links from the left and from the right.
    #[must_use]
    pub fn new(seed: u64, from_left: LinkOptions, from_right: LinkOptions) -> Self {
        Self {
            // Not zero: nothing may depend on it.
            now: 1_000_000_000,
            hosts: Vec::new(),
            links: [Link::new(from_left), Link::new(from_right)],
            wire: BTreeMap::new(),
            number: 0,
            changes: BTreeMap::new(),
            steering: Steering::default(),
            random: Random::new(seed),
            seed,
            digest: DefaultHasher::new(),
            records: None,
        }
    }

    /// Keeps all packets for [`write_capture`](Self::write_capture).
    pub fn record(&mut self) {
        self.records = Some(Vec::new());
    }

    /// The addresses of the host that is added as number `host`.
    #[must_use]
    pub fn addresses(host: usize) -> [IpAddr; 2] {
        let number = host as u16 + 1;
        [
            Ipv4Addr::new(10, 0, (number >> 8) as u8, number as u8).into(),
            Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number).into(),
        ]
    }

    /// Adds a host; `delay`: its own way to the path: ns; `segmentation`: bytes that its port cuts, 0 for
    /// none. Gives its number, or `None` when its tables do not fit.
    pub fn add(
        &mut self,
        side: Side,
        delay: u64,
        segmentation: u32,
        mut config: Config,
        application: A,
    ) -> Option<usize> {
        let buffers = CountedRings::default();
        config.seed = [self.seed, self.hosts.len() as u64];
        let stack = Stack::new(config.clone(), buffers.clone()).ok()?;
        let port = Port::new(segmentation);
        self.hosts.push(Host {
            stack,
            buffers,
            application,
            side,
            delay,
            port,
            wakes_at: self.now,
            config,
            ahead: 0,
            away: None,
            arriving: Vec::new(),
        });
        Some(self.hosts.len() - 1)
    }

    /// From then on, a link is another: ns of simulated time.
    pub fn change(&mut self, at: u64, side: Side, options: LinkOptions) {
        self.changes.entry(at).or_default().push((side, options));
    }

    /// Simulated time: ns.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// What runs on a host.
    #[must_use]
    pub fn application(&self, host: usize) -> Option<&A> {
        self.hosts.get(host).map(|host| &host.application)
    }

    /// A host's stack.
    #[must_use]
    pub fn stack(&self, host: usize) -> Option<&HostStack> {
        self.hosts.get(host).map(|host| &host.stack)
    }

    /// Connections of a host that still have FIFOs.
    #[must_use]
    pub fn fifos_held(&self, host: usize) -> usize {
        self.hosts.get(host).map_or(0, |host| host.buffers.held())
    }

    /// Packets that were sent.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.number
    }

    /// Bytes that a link has carried, and packets that found its queue full.
    #[must_use]
    pub fn carried(&self, side: Side) -> (u64, u64) {
        let link = &self.links[usize::from(side == Side::Right)];
        (link.carried, link.overflowed)
    }

    /// Bytes that wait at a link.
    #[must_use]
    pub fn waiting(&self, side: Side) -> u64 {
        self.links[usize::from(side == Side::Right)].waiting(self.now)
    }

    /// A number that two runs have in common only when every packet was sent alike, at the same time.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest.finish()
    }

    /// Writes what was recorded as pcapng.
    ///
    /// # Errors
    /// The target's; nothing is written unless [`record`](Self::record) was called first.
    pub fn write_capture(&self, target: impl Write) -> io::Result<()> {
        capture::write(self.records.as_deref().unwrap_or_default(), target)
    }

    /// When something happens next.
    fn next(&self) -> Option<u64> {
        let wire = self.wire.first_key_value().map(|((at, _), _)| *at);
        let change = self.changes.first_key_value().map(|(at, _)| *at);
        let timers = self.hosts.iter().filter_map(Host::deadline);
        let here = self.hosts.iter().filter(|host| host.away.is_none());
        let wakes = here.map(|host| host.wakes_at).filter(|at| *at != u64::MAX);
        timers.chain(wakes).chain(wire).chain(change).min()
    }

    /// Goes on to what happens next, but not beyond `until`: ns. Gives whether something happened.
    pub fn step(&mut self, until: u64) -> bool {
        let Some(next) = self.next().filter(|next| *next <= until) else {
            self.now = self.now.max(until);
            return false;
        };
        self.now = self.now.max(next);
        while let Some(entry) = self.changes.first_entry().filter(|entry| *entry.key() <= self.now)
        {
            for (side, options) in entry.remove() {
                self.links[usize::from(side == Side::Right)].options = options;
            }
        }
        let mut arrived = vec![Vec::new(); self.hosts.len()];
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let ((at, _), (host, packet)) = entry.remove_entry();
            let host = self.steering.stack_for(&packet, at).unwrap_or(host);
            if let Some(list) = arrived.get_mut(host) {
                list.push(packet);
            }
        }
        for (index, packets) in arrived.into_iter().enumerate() {
            self.run_host(index, &packets);
        }
        true
    }

    /// Lets time pass until then: ns.
    pub fn run_until(&mut self, until: u64) {
        while self.step(until) {}
    }

    fn run_host(&mut self, index: usize, packets: &[Vec<u8>]) {
        let now = self.now;
        let Some(host) = self.hosts.get_mut(index) else { return };
        if !host.is_back(now) {
            return;
        }
        host.take_in(now);
        let due = host.deadline().is_some_and(|at| at <= now);
        if packets.is_empty() && !due && host.wakes_at > now {
            return;
        }
        let batch: Vec<Packet<'_>> = packets.iter().map(|packet| Packet::new(packet)).collect();
        let clock = now + host.ahead;
        host.stack.input(clock, &batch, &mut host.port);
        host.stack.expire(clock, &mut host.port);
        let events: Vec<Event> = std::iter::from_fn(|| host.stack.poll_event()).collect();
        host.wakes_at = host.application.run(now, &mut host.stack, &events);
        host.stack.flush(clock, &mut host.port);
        let (side, delay) = (host.side, host.delay);
        for packet in std::mem::take(&mut host.port.packets) {
            self.send(index, side, delay, packet);
        }
    }

    fn send(&mut self, from: usize, side: Side, delay: u64, mut packet: Vec<u8>) {
        self.number += 1;
        self.digest.write_u64(self.now);
        self.digest.write(&packet);
        if let Some(records) = &mut self.records {
            records.push((self.now, u32::from(side == Side::Right), packet.clone()));
        }
        let Some(to) = self.receiver(&packet) else { return };
        let link = &mut self.links[usize::from(side == Side::Right)];
        match link.pass(self.now + delay, &mut packet, &mut self.random) {
            Fate::Lost => {}
            Fate::TooBig(mtu) => {
                if let Some(error) = router::too_big(&packet, mtu) {
                    self.number += 1;
                    self.wire.insert((self.now + 2 * delay + 1000, self.number), (from, error));
                }
            }
            Fate::Arrives(at, again) => {
                let way = self.hosts.get(to).map_or(0, |host| host.delay);
                if let Some(again) = again {
                    self.number += 1;
                    self.wire.insert((again + way, self.number), (to, packet.clone()));
                }
                self.wire.insert((at + way, self.number), (to, packet));
            }
        }
    }

    fn receiver(&self, packet: &[u8]) -> Option<usize> {
        let number = match packet.first()? >> 4 {
            4 => packet.get(18..20)?,
            _ => packet.get(38..40)?,
        };
        let number = usize::from(u16::from_be_bytes(number.try_into().ok()?));
        number.checked_sub(1).filter(|host| *host < self.hosts.len())
    }
}
