//! What routes share: sets of next hops, connected networks, reserved answers. Routes with the same
//! target name the same entry, and the workers see one value for all of them.

use std::collections::HashMap;

use graph::InterfaceId;
use wire::MacAddr;

use super::depend::Dependents;
use super::due::{Due, Queue};
use super::group::{self, EMPTY};
use super::link::{Changes, Links};
use super::next_hop::{Hops, Owner};
use super::route::Goal;
use super::{RouteError, Target, Via};
use crate::state::{GROUP_BIT, GROUP_SLOTS, VrfId, reserved};

#[derive(Debug)]
struct Group {
    index: u32,
    slots: Box<[u32; GROUP_SLOTS]>,
}

#[derive(Debug)]
struct Entry {
    goal: Goal,
    refs: u32,
    value: Option<u32>,
    /// Next hops and their weights.
    members: Vec<(u32, u32)>,
    group: Option<Group>,
}

/// All targets.
#[derive(Debug, Default)]
pub(super) struct Targets {
    entries: Vec<Option<Entry>>,
    by_goal: HashMap<Goal, u32>,
    free: Vec<u32>,
    dependents: Dependents,
    /// Those that changes concern, until their next hops are found anew.
    due: Due,
    /// Those of them that routes have been given to meanwhile.
    wanted: Vec<u32>,
    /// Those that found no free index when they were looked for last.
    starved: Queue,
    groups: usize,
    /// How many were resolved after changes, for tests that count work.
    #[cfg(test)]
    pub(super) resolved: usize,
}

impl Targets {
    /// The target of that goal, made when there is none; one more user.
    pub(super) fn acquire(
        &mut self,
        goal: Goal,
        links: &Links,
        hops: &mut Hops,
    ) -> Result<u32, RouteError> {
        if let Some(id) = self.by_goal.get(&goal).copied() {
            if let Some(entry) = self.entry_mut(id) {
                entry.refs += 1;
            }
            if self.due.remove(id) {
                self.wanted.push(id);
            }
            return Ok(id);
        }
        let group = match &goal {
            Goal::Route(_, Target::Via(hops_of_route)) if hops_of_route.len() > 1 => {
                let limit = hops.table.group_capacity();
                let index = hops.take_group().ok_or(RouteError::TooManyGroups { limit })?;
                Some(Group { index, slots: Box::new([EMPTY; GROUP_SLOTS]) })
            }
            _ => None,
        };
        let members = match members(&goal, links, hops) {
            Ok(members) => members,
            Err(error) => {
                if let Some(group) = group {
                    hops.groups.put_back(group.index);
                }
                return Err(error);
            }
        };
        let id = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            (self.entries.len() - 1) as u32
        });
        self.dependents.add(&goal, id);
        self.groups += usize::from(group.is_some());
        self.by_goal.insert(goal.clone(), id);
        self.entries[id as usize] = Some(Entry { goal, refs: 1, value: None, members, group });
        self.join(id, links, hops);
        Ok(id)
    }

    /// One user less; what nobody uses is freed. Must follow the change of the routes.
    pub(super) fn release(&mut self, id: u32, hops: &mut Hops) {
        let Some(entry) = self.entry_mut(id) else { return };
        entry.refs -= 1;
        if entry.refs > 0 {
            return;
        }
        let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::take) else { return };
        self.by_goal.remove(&entry.goal);
        self.dependents.remove(&entry.goal, id);
        self.due.remove(id);
        self.starved.remove(id);
        self.groups -= usize::from(entry.group.is_some());
        self.free.push(id);
        for (hop, _) in &entry.members {
            hops.leave(*hop, id);
            hops.release(*hop);
        }
        if let Some(group) = entry.group {
            hops.retire_group(group.index);
        }
    }

    /// What the workers are to see; `None`: packets can't go there now.
    pub(super) fn value(&self, id: u32) -> Option<u32> {
        self.entry(id)?.value
    }

    pub(super) fn goal(&self, id: u32) -> Option<&Goal> {
        self.entry(id).map(|entry| &entry.goal)
    }

    /// Next hops of a target with their weights.
    pub(super) fn members(&self, id: u32) -> &[(u32, u32)] {
        self.entry(id).map_or(&[], |entry| &entry.members)
    }

    /// Interfaces that routes name, those too that are not there. What interfaces imply does not count.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = InterfaceId> + '_ {
        self.entries.iter().flatten().flat_map(|entry| {
            let (via, port) = match &entry.goal {
                Goal::Route(_, Target::Via(hops)) => (hops.as_slice(), None),
                Goal::Route(_, Target::Port(interface)) => (&[][..], Some(*interface)),
                Goal::Route(..) | Goal::Connected(_) => (&[][..], None),
            };
            via.iter().filter_map(|hop| hop.interface).chain(port)
        })
    }

    /// VRFs that routes of others name, those too that are not there.
    pub(super) fn vrfs(&self) -> impl Iterator<Item = VrfId> + '_ {
        self.entries.iter().flatten().filter_map(|entry| match &entry.goal {
            Goal::Route(_, Target::Vrf(vrf)) => Some(*vrf),
            Goal::Route(..) | Goal::Connected(_) => None,
        })
    }

    /// Targets with several next hops.
    pub(super) fn groups(&self) -> usize {
        self.groups
    }

    /// Notes which targets changes concern. Returns those that are looked for at once: all but those by addresses, because
    /// networks, ports and VRFs are few.
    pub(super) fn concern(&mut self, changes: &Changes) -> Vec<u32> {
        let concerned = self.dependents.of(changes);
        let starved = std::iter::from_fn(|| self.starved.take());
        let starved: Vec<u32> = starved.filter(|id| !concerned.contains(id)).collect();
        let mut at_once = Vec::new();
        for id in concerned.into_iter().chain(starved) {
            match self.entry(id) {
                Some(Entry { goal: Goal::Route(_, Target::Via(_)), group, .. }) => {
                    let is_group = group.is_some();
                    self.due.add(id, is_group);
                }
                _ => at_once.push(id),
            }
        }
        at_once
    }

    /// Takes the next ones that are due, `most` of them at most.
    pub(super) fn take_due(&mut self, most: usize) -> Vec<u32> {
        std::iter::from_fn(|| self.due.take()).take(most).collect()
    }

    /// Takes those that are due and that routes have been given to.
    pub(super) fn take_wanted(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.wanted)
    }

    /// Whether any are due.
    pub(super) fn are_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Whether any found no free index.
    pub(super) fn are_starved(&self) -> bool {
        !self.starved.is_empty()
    }

    /// Lets those be due again that have waited longest for a free index, `most` of them at most.
    pub(super) fn feed(&mut self, most: usize) {
        for _ in 0..most {
            let Some(id) = self.starved.take() else { return };
            let is_group = self.entry(id).is_some_and(|entry| entry.group.is_some());
            self.due.add(id, is_group);
        }
    }

    /// Finds the next hops of these targets anew. Returns those whose value changed, and the next hops of
    /// before, each to be released once the routes are shown again. What finds no free index now is
    /// unusable until it is looked for again.
    pub(super) fn resolve(
        &mut self,
        targets: Vec<u32>,
        links: &Links,
        hops: &mut Hops,
    ) -> (Vec<u32>, Vec<u32>) {
        let (mut changed, mut left) = (Vec::new(), Vec::new());
        for id in targets {
            #[cfg(test)]
            {
                self.resolved += 1;
            }
            let Some(entry) = self.entry(id) else { continue };
            let before = entry.value;
            let new = members(&entry.goal, links, hops);
            if new.is_err() {
                self.starved.add(id);
            }
            let new = new.unwrap_or_default();
            let Some(entry) = self.entry_mut(id) else { continue };
            for (hop, _) in std::mem::replace(&mut entry.members, new) {
                hops.leave(hop, id);
                left.push(hop);
            }
            self.join(id, links, hops);
            if self.value(id) != before {
                changed.push(id);
            }
        }
        (changed, left)
    }

    /// Shares the slots of a group among the members that can forward, else those that may yet.
    pub(super) fn refill(&mut self, id: u32, hops: &Hops) {
        let Some(entry) = self.entry_mut(id) else { return };
        let Some(group) = &mut entry.group else { return };
        let best = entry.members.iter().map(|(hop, _)| hops.rank(*hop)).max().unwrap_or(0);
        let fit = entry.members.iter().copied().filter(|(hop, _)| hops.rank(*hop) == best);
        let fit: Vec<_> = fit.collect();
        let before = *group.slots;
        group::fill(&mut group.slots, &fit);
        for (slot, (old, new)) in before.iter().zip(group.slots.iter()).enumerate() {
            if old != new {
                hops.table.set_slot(group.index, slot, *new);
            }
        }
    }

    fn join(&mut self, id: u32, links: &Links, hops: &mut Hops) {
        self.refill(id, hops);
        let Some(entry) = self.entry_mut(id) else { return };
        entry.value = match (&entry.goal, &entry.group, entry.members.first()) {
            (Goal::Route(_, Target::Blackhole), ..) => Some(reserved::BLACKHOLE),
            (Goal::Route(_, Target::Unreachable), ..) => Some(reserved::UNREACHABLE),
            (Goal::Route(_, Target::Local), ..) => Some(reserved::LOCAL),
            (Goal::Route(_, Target::Broadcast), ..) => Some(reserved::BROADCAST),
            (Goal::Route(_, Target::Vrf(vrf)), ..) => {
                links.has_vrf(*vrf).then(|| reserved::of_vrf(*vrf))
            }
            (_, Some(group), Some(_)) => Some(group.index | GROUP_BIT),
            (_, None, Some((hop, _))) => Some(*hop),
            (_, _, None) => None,
        };
        for (hop, _) in entry.group.iter().flat_map(|_| &entry.members) {
            hops.join(*hop, id);
        }
    }

    fn entry(&self, id: u32) -> Option<&Entry> {
        self.entries.get(id as usize).and_then(Option::as_ref)
    }

    fn entry_mut(&mut self, id: u32) -> Option<&mut Entry> {
        self.entries.get_mut(id as usize).and_then(Option::as_mut)
    }
}

/// The next hops that a goal has now, each one user more. What is behind no interface that is up is left out.
fn members(goal: &Goal, links: &Links, hops: &mut Hops) -> Result<Vec<(u32, u32)>, RouteError> {
    let mut wanted = Vec::new();
    match goal {
        Goal::Connected(interface) => wanted.push((*interface, Owner::Glean, 1)),
        // A neighbour has a route in the VRF of its interface alone: from another it would be looked for without end.
        Goal::Route(vrf, Target::Port(interface)) if links.vrf_of(*interface) == *vrf => {
            let mac = links.get(*interface).and_then(|link| link.next_hop_mac);
            wanted.push((*interface, mac.map_or(Owner::Glean, Owner::Fixed), 1));
        }
        Goal::Route(_, Target::Flood(interface)) => {
            wanted.push((*interface, Owner::Fixed(MacAddr::BROADCAST), 1));
        }
        Goal::Route(vrf, Target::Via(via)) => {
            let vrf_of = |hop: &Via| hop.interface.map_or(*vrf, |id| links.vrf_of(id));
            for hop in via.iter().filter(|hop| !links.is_own(vrf_of(hop), hop.address)) {
                let found = || links.live_interface_of(*vrf, hop.address);
                let interface = hop.interface.or_else(found);
                if let Some(interface) = interface {
                    wanted.push((interface, Owner::Neighbor(hop.address), u32::from(hop.weight)));
                }
            }
        }
        Goal::Route(..) => {}
    }
    let mut members: Vec<(u32, u32)> = Vec::with_capacity(wanted.len());
    for (interface, owner, weight) in wanted {
        let Some(link) = links.live(interface) else { continue };
        let Some(index) = hops.acquire(interface, link, owner) else {
            members.iter().for_each(|(index, _)| hops.release(*index));
            return Err(RouteError::TooManyHops { limit: hops.table.capacity() });
        };
        // Two ways of writing one next hop.
        match members.iter_mut().find(|(known, _)| *known == index) {
            Some((_, sum)) => {
                *sum += weight;
                hops.release(index);
            }
            None => members.push((index, weight)),
        }
    }
    Ok(members)
}
