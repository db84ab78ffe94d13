//! Links to other processes of this machine: asked for when a connection to one begins, and ended with their other ends.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use client::session::{Queues, Served, Ways};
use shm::session::{Introduced, LinkPlace};
use transport::Path;

use super::State;
use super::attachment::{Way, show};
use crate::kinds::{self, Kind};
use crate::sockets::Sockets;
use crate::{clock, environment, internal, report};

/// How long an introduction holds: ns.
const FRESH: u64 = 1_000_000_000;
/// Introductions that are remembered.
const MOST: usize = 1024;
/// Shares of a listener's members add up to this.
const WHOLE: u32 = 256;
/// Steps through the shares so that each part of the way meets all of them (the golden ratio's).
const STEP: u32 = 159;

/// Who serves a destination, as the daemon has said.
#[derive(Debug)]
struct Acquainted {
    /// Until then: ns.
    until: u64,
    /// Share of new connections, and the path there; `None`: by the daemon.
    members: Vec<(u16, Option<u16>)>,
    turn: u32,
}

/// What the daemon has said of destinations.
#[derive(Debug, Default)]
pub(super) struct Acquaintances(HashMap<SocketAddr, Acquainted>);

impl Acquainted {
    /// The path of the next connection.
    fn next(&mut self) -> Option<u16> {
        self.turn = self.turn.wrapping_add(STEP);
        let mut at = self.turn % WHOLE;
        for (share, path) in &self.members {
            match at.checked_sub(u32::from(*share)) {
                Some(rest) => at = rest,
                None => return *path,
            }
        }
        None
    }
}

/// As both versions of IP have it.
fn canonical(destination: SocketAddr) -> SocketAddr {
    SocketAddr::new(destination.ip().to_canonical(), destination.port())
}

impl State {
    /// Whether the daemon is to be asked who serves a destination, before a connection there begins.
    pub(crate) fn is_to_meet(&self, destination: SocketAddr) -> bool {
        let is_known = |known: &Acquainted| clock::now() < known.until;
        self.takes_paths(destination)
            && !self.acquaintances.0.get(&canonical(destination)).is_some_and(is_known)
    }

    /// The path that a connection to one of the router's own addresses takes. `None`: it goes by the daemon.
    pub(crate) fn path_to(&mut self, destination: SocketAddr) -> Option<Path> {
        if !self.takes_paths(destination) {
            return None;
        }
        let number = self.acquaintances.0.get_mut(&canonical(destination))?.next()?;
        Some(Path { number, mtu: shm::session::LINK_PACKET })
    }

    fn takes_paths(&self, destination: SocketAddr) -> bool {
        let may = self.attachment.is_there() && !self.sessions.is_shared();
        may && self.addresses.has(destination.ip().to_canonical()) && environment::wants_links()
    }

    /// The daemon has said who serves a destination. `None`: nobody does, or there are no links.
    pub(crate) fn meet(&mut self, destination: SocketAddr, introduced: Option<Introduced>) {
        let destination = canonical(destination);
        let turn = self.acquaintances.0.get(&destination).map_or(0, |known| known.turn);
        let members = introduced.map(|introduced| self.members(&introduced)).unwrap_or_default();
        if self.acquaintances.0.len() >= MOST {
            self.acquaintances.0.clear();
        }
        let until = clock::now() + FRESH;
        self.acquaintances.0.insert(destination, Acquainted { until, members, turn });
    }

    fn members(&mut self, introduced: &Introduced) -> Vec<(u16, Option<u16>)> {
        let Introduced { address, only_v6, neighbours, .. } = introduced;
        let path = |link| self.links.path_of(link).map(|path| path.number);
        let members: Vec<_> = neighbours
            .iter()
            .map(|neighbour| (neighbour.share, neighbour.link.and_then(path)))
            .collect();
        for path in members.iter().filter_map(|(_, path)| *path) {
            self.links.learn(path, Served { address: *address, only_v6: *only_v6 });
        }
        members
    }

    /// A link is there. One that can't be used is given back.
    pub(crate) fn adopt_link(&mut self, place: LinkPlace, is_first: bool, files: Vec<OwnedFd>) {
        let keep = |file| {
            let file = internal::raise(file);
            kinds::set(std::os::fd::AsRawFd::as_raw_fd(&file), Kind::Internal);
            file
        };
        let is_own = place.stack == self.attachment.number() && !self.sessions.is_shared();
        let is_wanted = environment::wants_links() && is_own;
        let problem = if is_wanted {
            self.links.add(place, is_first, files, keep).err().map(|error| error.to_string())
        } else {
            Some("links are not wanted here".to_owned())
        };
        if let Some(problem) = problem {
            report::say(&problem);
            let _ = self.attachment.link.unlink(place.link);
        }
    }

    /// The daemon says that the other end of a link is gone.
    pub(super) fn end_link(&mut self, link: u32) {
        if let Some(path) = self.links.path_of(link) {
            self.lose_path(path.number);
        }
    }

    /// Looks whether other ends of links are gone.
    pub(crate) fn heed_links(&mut self) {
        if self.links.is_empty() {
            return;
        }
        for path in self.links.heed() {
            if let Some(link) = self.lose_path(path).filter(|_| self.attachment.is_there()) {
                // The daemon may know already.
                let _ = self.attachment.link.unlink(link);
            }
        }
    }

    /// A link ends; its connections go on by the daemon, which knows what has become of them. Gives its number.
    fn lose_path(&mut self, path: u16) -> Option<u32> {
        // What the other end has sent before.
        self.receive_by_links(clock::now());
        let Self { attachment, sessions, links, acquaintances, .. } = self;
        if let (Way::Inline(queues), Sockets::Inline(sessions)) = (&mut *attachment.way, sessions) {
            sessions.end_path(path, &mut Ways::new(&mut queues.outbound, &mut links.exits));
        }
        acquaintances.0.clear();
        let number = links.remove(path, |descriptors: [i32; 2]| show(&descriptors));
        self.turn();
        number
    }

    /// Another daemon has come: it knows of no links.
    pub(super) fn outlive_daemon(&mut self) {
        self.links.outlive_daemon();
        self.acquaintances.0.clear();
    }

    /// Takes in what has come by links. Gives how many packets there were.
    pub(super) fn receive_by_links(&mut self, now: u64) -> usize {
        let Self { addresses, attachment, sessions, links, .. } = self;
        let (Way::Inline(queues), Sockets::Inline(sessions)) = (&mut *attachment.way, sessions)
        else {
            // A stack worker has no links.
            return 0;
        };
        let Queues { outbound, .. } = &mut **queues;
        let came = links.receive(addresses.all(), |path, packets, exits| {
            sessions.input_by(path, now, packets, &mut Ways::new(outbound, exits));
        });
        if links.has_turned() {
            for (path, ends) in links.take_turned() {
                sessions.leave_path(path, &ends, &mut Ways::new(outbound, &mut links.exits));
            }
        }
        came
    }
}
