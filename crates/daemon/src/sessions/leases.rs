//! Local ports of outgoing connections.

use std::collections::BTreeSet;

use control::config::LeasedPorts;
use control::state::KeptLease;
use forward::steering::SteeringError;
use shm::attach::{Refusal, RefusalKind};
use shm::session::{Lease, PortRange};

use super::Sessions;
use super::bounds::Usage;
use crate::processes::{UserBound, invalid, no_resources};

/// Of so many ranges, one is root's.
const ROOTS: usize = 8;

impl Sessions {
    /// A range of ports for a stack. Ranges are gone round, so that one that was given back is not used again at once: its
    /// ports' earlier peers may remember connections (RFC 9293 3.4.1). One that is asked for is one that the process had of
    /// an earlier daemon, and has connections from.
    pub(super) fn lease(&mut self, id: u32, asked: Lease) -> Result<PortRange, Refusal> {
        let Lease { stack: number, first: wanted } = asked;
        let stack = self.stack(id, number)?.id;
        self.admit(id, &Usage { leases: 1, ..Usage::default() })?;
        let ports = self.config.load().ports;
        if let Some(first) = wanted {
            return self.lease_again(id, number, first, ports);
        }
        if self.session(id)?.uid() != 0 {
            self.leave_some_to_root(ports, None)?;
        }
        let count = LeasedPorts::LEASE;
        let all: Vec<u16> = ports.leases().collect();
        let next = all.partition_point(|first| *first <= self.last_lease);
        let last_of = |first: u16| first.saturating_add(count - 1);
        let turn = all.get(next..).into_iter().chain(all.get(..next)).flatten();
        let mut turn: Vec<u16> = turn.copied().collect();
        // Who leases a port gets the FINs that come again to its earlier connections, which nobody answers then.
        turn.sort_by_cached_key(|first| self.steering.waits_within(*first, last_of(*first)));
        for first in &turn {
            let last = last_of(*first);
            // Its process is expected back, connections of one that has ended go on from there, or somebody serves there: others
            // may yet join.
            if self.reserved.contains_key(first)
                || self.steering.has_moved_within(*first, last)
                || self.steering.serves_within(*first, last)
            {
                continue;
            }
            match self.steering.lease(stack, *first, count) {
                Ok(()) => {
                    self.last_lease = *first;
                    self.stack(id, number)?.leases.insert(*first);
                    self.links.note(*first, number);
                    return Ok(PortRange { first: *first, count });
                }
                Err(SteeringError::Leased { .. } | SteeringError::Served(_)) => {}
                Err(error) => return Err(no_resources(error.to_string())),
            }
        }
        Err(no_resources(format!(
            "every range of {count} ports in {ports} is leased, or a port of it is served; give \
             sessions.ports more"
        )))
    }

    /// The range that begins at `first`, if it is one of those and nobody has it.
    fn lease_again(
        &mut self,
        id: u32,
        number: u32,
        first: u16,
        ports: LeasedPorts,
    ) -> Result<PortRange, Refusal> {
        if !ports.leases().any(|range| range == first) {
            let problem = format!("no range of ports that are leased begins at {first}");
            return Err(invalid(problem));
        }
        let uid = self.session(id)?.uid();
        let owner = self.reserved.get(&first).copied();
        if owner.is_some_and(|owner| owner != uid) {
            let problem = format!("another user has leased the range that begins at {first}");
            return Err(Refusal::new(RefusalKind::Permission, problem));
        }
        let count = LeasedPorts::LEASE;
        if !self.stack(id, number)?.leases.contains(&first) {
            if uid != 0 && owner.is_none() {
                self.leave_some_to_root(ports, Some(first))?;
            }
            let stack = self.stack(id, number)?.id;
            self.steering
                .lease(stack, first, count)
                .map_err(|error| no_resources(error.to_string()))?;
            self.stack(id, number)?.leases.insert(first);
            self.links.note(first, number);
            self.reserved.remove(&first);
        }
        Ok(PortRange { first, count })
    }

    /// Whether a user may serve a port, as far as that keeps its range from others: it may keep as many as it may lease. Root may.
    pub(super) fn admit_served(&mut self, id: u32, port: u16) -> Result<(), Refusal> {
        let uid = self.session(id)?.uid();
        let (ports, most) = {
            let config = self.config.load();
            (config.ports, usize::from(config.leases))
        };
        let Some(range) = ports.lease_of(port).filter(|_| uid != 0) else { return Ok(()) };
        let own = self.kept_ranges(ports, |other| other == uid);
        if own.contains(&range) {
            return Ok(());
        }
        let (key, what) = ("leases", "ranges of ports, leased or served,");
        UserBound { key, what, has: own.len(), more: 1, most }.check("sessions", uid)?;
        self.leave_some_to_root(ports, Some(range))
    }

    /// Whether users other than root may keep one more range: this one, or any.
    fn leave_some_to_root(&self, ports: LeasedPorts, range: Option<u16>) -> Result<(), Refusal> {
        let kept = self.kept_ranges(ports, |other| other != 0);
        let all = ports.leases().count();
        if kept.len() < all - all / ROOTS || range.is_some_and(|range| kept.contains(&range)) {
            return Ok(());
        }
        Err(no_resources(format!(
            "users other than root lease or serve {} of the {all} ranges of ports in {ports}, and the \
             rest is root's; give sessions.ports more",
            kept.len()
        )))
    }

    /// The ranges that the processes of some users keep from others.
    fn kept_ranges(&self, ports: LeasedPorts, whose: impl Fn(u32) -> bool) -> BTreeSet<u16> {
        let mut kept = BTreeSet::new();
        for session in self.list.values().filter(|session| whose(session.uid())) {
            for stack in session.stacks.values() {
                let served = stack.listeners.values().map(|has| has.bind.port);
                kept.extend(served.filter_map(|port| ports.lease_of(port)));
                kept.extend(&stack.leases);
            }
        }
        kept
    }

    /// What is leased, for a daemon that comes after this one.
    pub(crate) fn kept_leases(&self) -> Vec<KeptLease> {
        let mut kept = Vec::new();
        for session in self.list.values() {
            let leases = session.stacks.values().flat_map(|stack| &stack.leases);
            kept.extend(leases.map(|first| KeptLease { first: *first, uid: session.uid() }));
        }
        kept
    }
}
