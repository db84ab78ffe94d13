//! Next hops by what they lead to: shared, counted, and written where the workers read them.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use graph::InterfaceId;
use tables::Epoch;
use wire::MacAddr;

use super::link::Link;
use crate::indices::Indices;
use crate::state::{Kind, NextHop, NextHops, reserved};

/// What a next hop leads to, behind its interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    /// A neighbour.
    Neighbor(IpAddr),
    /// Whoever has the destination address.
    Glean,
    /// A fixed MAC address.
    Fixed(MacAddr),
}

/// What is known of a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Its MAC address is not known (yet).
    Unresolved,
    /// It is known.
    Resolved {
        /// The address.
        mac: MacAddr,
        /// Not confirmed lately: its use is to be reported.
        stale: bool,
    },
    /// It did not answer.
    Failed,
}

#[derive(Debug)]
struct Entry {
    interface: InterfaceId,
    owner: Owner,
    status: Status,
    refs: u32,
    /// ECMP targets that it is a member of.
    targets: Vec<u32>,
    /// Its interface has gone or changed since: it lives until its last user lets go.
    detached: bool,
}

/// All next hops.
#[derive(Debug)]
pub(super) struct Hops {
    pub(super) table: Arc<NextHops>,
    entries: Vec<Option<Entry>>,
    /// Those that are not detached.
    by_owner: HashMap<InterfaceId, HashMap<Owner, u32>>,
    /// Members of groups that nothing is known of yet.
    waiting: BTreeSet<u32>,
    indices: Indices,
    pub(super) groups: Indices,
    epoch: Epoch,
}

impl Hops {
    pub(super) fn new(table: Arc<NextHops>, epoch: Epoch) -> Self {
        let end = u32::try_from(table.capacity())
            .unwrap_or(u32::MAX)
            .saturating_sub(crate::flow::NEXT_HOPS as u32);
        let groups = u32::try_from(table.group_capacity()).unwrap_or(u32::MAX);
        Self {
            table,
            entries: Vec::new(),
            by_owner: HashMap::new(),
            waiting: BTreeSet::new(),
            indices: Indices::new(reserved::FIRST, end),
            groups: Indices::new(0, groups),
            epoch,
        }
    }

    /// The next hop to `owner`, made when there is none; one more user. `None`: no index is free.
    pub(super) fn acquire(
        &mut self,
        interface: InterfaceId,
        link: &Link,
        owner: Owner,
    ) -> Option<u32> {
        if let Some(index) = self.find(interface, owner) {
            if let Some(entry) = self.entry_mut(index) {
                entry.refs += 1;
            }
            return Some(index);
        }
        let index = self.indices.take().or_else(|| {
            self.reclaim();
            self.indices.take()
        })?;
        let at = index as usize;
        if self.entries.len() <= at {
            self.entries.resize_with(at + 1, || None);
        }
        let status = Status::Unresolved;
        let entry =
            Entry { interface, owner, status, refs: 1, targets: Vec::new(), detached: false };
        self.table.take_used(index);
        self.table.set(index, &written(&entry, link));
        self.entries[at] = Some(entry);
        self.by_owner.entry(interface).or_default().insert(owner, index);
        Some(index)
    }

    /// One user less; the index of an unused next hop rests until no worker holds it.
    pub(super) fn release(&mut self, index: u32) {
        let Some(entry) = self.entry_mut(index) else { return };
        entry.refs -= 1;
        if entry.refs > 0 {
            return;
        }
        let (interface, owner, detached) = (entry.interface, entry.owner, entry.detached);
        self.entries[index as usize] = None;
        self.waiting.remove(&index);
        if !detached {
            if let Some(owners) = self.by_owner.get_mut(&interface) {
                owners.remove(&owner);
                if owners.is_empty() {
                    self.by_owner.remove(&interface);
                }
            }
        }
        self.indices.retire(index, self.epoch.retire());
    }

    /// Frees what no worker can still hold.
    pub(super) fn reclaim(&mut self) {
        let passed = self.epoch.passed();
        for index in self.indices.reclaim(passed) {
            self.table.set(*index, &NextHop::of_kind(Kind::Invalid));
        }
        self.groups.reclaim(passed);
    }

    /// Free indices.
    pub(super) fn free(&self) -> usize {
        self.indices.free()
    }

    /// An index for a group. `None`: none is free.
    pub(super) fn take_group(&mut self) -> Option<u32> {
        self.groups.take().or_else(|| {
            self.reclaim();
            self.groups.take()
        })
    }

    /// The index of a group that no route names any more.
    pub(super) fn retire_group(&mut self, index: u32) {
        self.groups.retire(index, self.epoch.retire());
    }

    /// Notes what is known of a neighbour, and shows it to the workers.
    pub(super) fn set_status(&mut self, index: u32, link: &Link, status: Status) {
        let Some(entry) = self.entry_mut(index).filter(|entry| !entry.detached) else { return };
        entry.status = status;
        let hop = written(entry, link);
        self.table.set(index, &hop);
        self.note_waiting(index);
    }

    /// Writes all next hops through an interface again: its MTU changed.
    pub(super) fn rewrite(&mut self, interface: InterfaceId, link: &Link) {
        for (_, index) in self.on(interface) {
            if let Some(entry) = self.entry(index) {
                self.table.set(index, &written(entry, link));
            }
        }
    }

    /// Cuts off all next hops through an interface: packets to them are dropped from now on.
    pub(super) fn detach(&mut self, interface: InterfaceId) {
        for index in self.by_owner.remove(&interface).unwrap_or_default().into_values() {
            if let Some(entry) = self.entry_mut(index) {
                entry.detached = true;
            }
            self.table.set(index, &NextHop::of_kind(Kind::Invalid));
        }
    }

    /// What is reached through an interface, and its indices.
    pub(super) fn on(&self, interface: InterfaceId) -> impl Iterator<Item = (Owner, u32)> + '_ {
        let owners = self.by_owner.get(&interface).into_iter().flatten();
        owners.map(|(owner, index)| (*owner, *index))
    }

    pub(super) fn find(&self, interface: InterfaceId, owner: Owner) -> Option<u32> {
        self.by_owner.get(&interface)?.get(&owner).copied()
    }

    /// Interface and address of the neighbour at an index.
    pub(super) fn neighbor(&self, index: u32) -> Option<(InterfaceId, IpAddr)> {
        let entry = self.entry(index).filter(|entry| !entry.detached)?;
        match entry.owner {
            Owner::Neighbor(address) => Some((entry.interface, address)),
            Owner::Glean | Owner::Fixed(_) => None,
        }
    }

    /// Interface of the connected network at an index.
    pub(super) fn glean(&self, index: u32) -> Option<InterfaceId> {
        self.entry(index)
            .filter(|entry| !entry.detached && entry.owner == Owner::Glean)
            .map(|entry| entry.interface)
    }

    /// How much a group wants this member: 2: it forwards, 1: it may yet, 0: it does not.
    pub(super) fn rank(&self, index: u32) -> u8 {
        match self.entry(index) {
            Some(entry) if entry.detached => 0,
            Some(Entry { owner: Owner::Neighbor(_), status, .. }) => match status {
                Status::Resolved { .. } => 2,
                Status::Unresolved => 1,
                Status::Failed => 0,
            },
            Some(_) => 2,
            None => 0,
        }
    }

    /// ECMP targets that the next hop is a member of.
    pub(super) fn targets(&self, index: u32) -> &[u32] {
        self.entry(index).map_or(&[], |entry| &entry.targets)
    }

    pub(super) fn join(&mut self, index: u32, target: u32) {
        if let Some(entry) = self.entry_mut(index) {
            entry.targets.push(target);
            self.note_waiting(index);
        }
    }

    pub(super) fn leave(&mut self, index: u32, target: u32) {
        if let Some(entry) = self.entry_mut(index) {
            entry.targets.retain(|known| *known != target);
            self.note_waiting(index);
        }
    }

    /// Members of groups that nothing is known of yet.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        self.waiting.iter().copied()
    }

    fn note_waiting(&mut self, index: u32) {
        if self.rank(index) == 1 && !self.targets(index).is_empty() {
            self.waiting.insert(index);
        } else {
            self.waiting.remove(&index);
        }
    }

    /// Users of a next hop.
    pub(super) fn users(&self, index: u32) -> u32 {
        self.entry(index).map_or(0, |entry| entry.refs)
    }

    /// All next hops: index, interface, what they lead to, users.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, InterfaceId, Owner, u32)> + '_ {
        self.entries.iter().enumerate().filter_map(|(index, entry)| {
            let entry = entry.as_ref()?;
            Some((index as u32, entry.interface, entry.owner, entry.refs))
        })
    }

    fn entry(&self, index: u32) -> Option<&Entry> {
        self.entries.get(index as usize).and_then(Option::as_ref)
    }

    fn entry_mut(&mut self, index: u32) -> Option<&mut Entry> {
        self.entries.get_mut(index as usize).and_then(Option::as_mut)
    }
}

fn written(entry: &Entry, link: &Link) -> NextHop {
    let (kind, mac) = match (entry.owner, entry.status) {
        (Owner::Glean, _) => (Kind::Glean, MacAddr::ZERO),
        (Owner::Fixed(mac), _) => (Kind::Forward, mac),
        (_, Status::Unresolved) => (Kind::Unresolved, MacAddr::ZERO),
        (_, Status::Resolved { mac, stale: false }) => (Kind::Forward, mac),
        (_, Status::Resolved { mac, stale: true }) => (Kind::ForwardStale, mac),
        (_, Status::Failed) => (Kind::HostUnreachable, MacAddr::ZERO),
    };
    link.next_hop(kind, mac)
}
