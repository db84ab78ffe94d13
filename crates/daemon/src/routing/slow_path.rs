//! Packets that workers hand to the control thread, and its timers.

use std::time::Duration;

use forward::Cause;
use forward::neighbor::{Action, Packet};
use graph::{Handoff, InterfaceId, Punt, Reason};

use super::Routing;

/// Packets taken from the workers' rings in one step, and of these from one worker: keeps a step below a millisecond.
const STEP: usize = 256;
const SHARE: usize = 64;
/// Routes gone over in one step after a change of interfaces: as many as a step of [`crate::daemon::RouteChanges`] changes.
const ROUTES: usize = 512;

/// A packet that a worker handed up. When it has waited, it goes back to that worker.
pub(super) struct Punted {
    worker: usize,
    packet: Handoff,
}

impl Packet for Punted {
    fn network(&self) -> &[u8] {
        self.packet.network()
    }

    fn interface(&self) -> InterfaceId {
        self.packet.interface()
    }

    fn next_hop(&self) -> u32 {
        self.packet.next_hop()
    }
}

/// What follows from a turn.
pub(crate) struct Turn {
    /// There is more to do at once.
    pub(crate) more: bool,
    /// Else: when something is due, from now on.
    pub(crate) wait: Option<Duration>,
}

impl Routing {
    /// Takes in what the workers handed up, does what is due, and shows some of the routes that have changed with their links.
    pub(crate) fn turn(&mut self) -> Turn {
        let now = self.now();
        let mut actions = std::mem::take(&mut self.actions);
        let Self { punts, early, slow, .. } = self;
        let more = punts.take(STEP, SHARE, |worker, Punt { cause, packet }| {
            let packet = Punted { worker, packet };
            match Cause::try_from(cause) {
                Ok(Cause::Early) => early.push(packet, now, &mut actions),
                Ok(cause) => slow.input(cause, packet, now, &mut actions),
                // A node that punts for a reason that nobody takes.
                Err(_) => actions.push(Action::Drop { packet, reason: Reason::Forgotten }),
            }
        });
        let more = self.slow.converge(ROUTES) || more;
        let due = self.slow.poll(now, &mut actions);
        let due = due.into_iter().chain(self.early.poll(now, &mut actions)).min();
        self.perform(actions);
        Turn { more, wait: due.map(|due| Duration::from_nanos(due.saturating_sub(now))) }
    }

    /// Lets SYNs go on that wait for somebody to serve where they go to, and need not any more.
    pub(crate) fn release_early(&mut self, is_settled: impl Fn(&[u8]) -> bool) {
        if !self.early.is_empty() {
            let mut actions = std::mem::take(&mut self.actions);
            self.early.release(is_settled, &mut actions);
            self.perform(actions);
        }
    }

    /// A worker has gone through its receive queues since the last call for it.
    pub(crate) fn listened(&mut self, worker: usize) {
        self.slow.listened(worker, self.now());
    }

    /// Whether packets for the control thread wait.
    pub(crate) fn has_punts(&self) -> bool {
        !self.punts.is_empty()
    }

    /// Does what the slow path asks for.
    pub(super) fn perform(&mut self, mut actions: Vec<Action<Punted>>) {
        for action in actions.drain(..) {
            match action {
                Action::Send { interface, frame } => self.injector.send(interface, &frame),
                Action::Release { packet: Punted { worker, packet } } => {
                    self.injector.release(worker, packet);
                }
                Action::Drop { packet, reason } => self.injector.drop(packet.packet, reason),
                Action::Conflict { interface, address, mac } => {
                    self.report_conflict(interface, address, mac);
                }
            }
        }
        self.injector.notify();
        // The memory is kept for the next turn.
        self.actions = actions;
    }

    fn report_conflict(
        &mut self,
        interface: InterfaceId,
        address: std::net::IpAddr,
        mac: wire::MacAddr,
    ) {
        // A station that claims our address does so with every packet.
        const SILENCE: u64 = 10_000_000_000;
        let now = self.now();
        if now < self.conflict_silence {
            return;
        }
        self.conflict_silence = now + SILENCE;
        let name = self.topology.interface_name(interface).unwrap_or("?");
        tracing::warn!("{mac} on interface {name} uses our address {address} too");
    }
}

#[cfg(test)]
mod tests;
