//! A process on a stack worker.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use client::session::Queues;
use graph::{ClientWake, Errand};
use host::{Served, Sessions, WorkerEnd, held_bytes};
use tokio::sync::Notify;
use transport::Config;

/// Connections over each version of IP: more than the process has numbers for, since some end after their session.
const CONNECTIONS: usize = 1 << 17;

/// A process that comes.
pub(in crate::sessions) struct Arrival {
    /// Its stack's packet queues.
    pub(in crate::sessions) queues: Queues,
    pub(in crate::sessions) end: WorkerEnd,
    /// Rung by the process.
    pub(in crate::sessions) wake: ClientWake,
    /// Ring the process: for answers, for events.
    pub(in crate::sessions) answers: Errand,
    pub(in crate::sessions) events: Errand,
    /// Bytes of data that its connections may hold.
    pub(in crate::sessions) most: usize,
    /// Told when it does not keep to the protocol.
    pub(in crate::sessions) dismissed: Arc<Notify>,
}

/// A process, on its worker's thread.
pub(super) struct Tenant {
    queues: Queues,
    served: Served,
    wake: ClientWake,
    answers: Errand,
    events: Errand,
    /// Bytes of data that its connections hold, and may hold.
    held: isize,
    most: usize,
    dismissed: Arc<Notify>,
}

impl Tenant {
    /// `None`: there is no memory.
    pub(super) fn new(arrival: Arrival) -> Option<Self> {
        let Arrival { mut queues, end, wake, answers, events, most, dismissed } = arrival;
        let config = Config {
            connections_v4: CONNECTIONS,
            connections_v6: CONNECTIONS,
            seed: queues.seed,
            ..Config::default()
        };
        let mut sessions = Sessions::new(config).ok()?;
        sessions.keep_urgent_inline();
        if let Some((writer, key)) = queues.take_claims() {
            sessions.claim_in(writer, key);
        }
        if let Some(writer) = queues.take_connections() {
            sessions.show_in(writer);
        }
        let served = Served::new(end, sessions);
        Some(Self { queues, served, wake, answers, events, held: 0, most, dismissed })
    }

    pub(super) fn number(&self) -> u32 {
        self.queues.number
    }

    /// Packets in, commands, timers, packets out, and what there is to tell. Gives how much there was to do.
    pub(super) fn round(&mut self, now: u64) -> usize {
        let before = held_bytes();
        let Self { queues, served, .. } = self;
        let is_full = usize::try_from(self.held).is_ok_and(|held| held > self.most);
        let Queues { inbound, outbound, .. } = queues;
        // Who does not read what has come gets no more: it is sent again.
        let came = inbound.receive(|packets| {
            if !is_full {
                served.sessions().input(now, packets, outbound);
            }
        });
        let done = served.serve(now);
        let sessions = served.sessions();
        let is_due = sessions.next_deadline().is_some_and(|at| at <= now) || sessions.wants_turn();
        if came + done > 0 || is_due || served.is_starved() {
            let Queues { outbound, .. } = queues;
            served.turn(now, outbound);
        }
        queues.outbound.ring();
        served.sessions().look(now);
        let (answers, events) = (&self.answers, &self.events);
        served.ring(
            |sleeps| {
                answers.ring(sleeps);
            },
            |sleeps| {
                events.ring(sleeps);
            },
        );
        self.held += held_bytes() as isize - before as isize;
        // What the process sends stops at half, so that acknowledgments are always taken in.
        let half = self.most / 2;
        self.served.tighten(usize::try_from(self.held).is_ok_and(|held| held > half));
        came + done
    }

    /// Whether it has to go.
    pub(super) fn is_broken(&self) -> bool {
        self.served.is_broken()
    }

    /// It is told so.
    pub(super) fn dismiss(&self) {
        self.dismissed.notify_one();
    }

    /// Before a sleep; `now`: TSC cycles. `false`: there is something to do.
    pub(super) fn arm(&mut self, now: u64) -> bool {
        self.wake.arm(now);
        self.served.sleeps().announce();
        let wants_room = self.served.sessions().wants_turn();
        self.queues.arm(wants_room) && !self.served.has_commands()
    }

    /// What ends the sleep.
    pub(super) fn doors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(self.queues.as_fd()).chain(self.wake.event())
    }

    /// When the next round is due: ns.
    pub(super) fn deadline(&mut self) -> Option<u64> {
        self.served.sessions().next_deadline()
    }

    /// Whether it is to be looked at soon, though nobody rings.
    pub(super) fn is_waiting(&mut self) -> bool {
        self.served.is_starved() || self.wake.event().is_none()
    }

    /// After a sleep; `now`: TSC cycles.
    pub(super) fn awake(&mut self, now: u64) {
        self.served.sleeps().withdraw();
        self.queues.withdraw();
        self.queues.clear();
        self.wake.clear(now);
    }

    /// Whether something has come since.
    pub(super) fn has_work(&self) -> bool {
        self.queues.inbound.has_packets() || self.served.has_commands()
    }
}
