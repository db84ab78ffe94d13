//! A process on a stack worker.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use arc_swap::ArcSwap;
use client::session::Queues;
use control::config;
use forward::steering::{Flow, SteeringReader};
use graph::{ClientWake, Errand, StackId};
use host::{Orphans, Plan, Served, Sessions, WorkerEnd, held_bytes};
use shm::session::TransportProtocol;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use transport::{Config, Ends};

use super::super::dismissal::Dismissal;
use super::exchange::{Exchange, ROOM, Ways};
use super::held::Held;

/// Bytes of memory of a stack without connections and sockets, at most: tables, timers, buffers.
const BARE: usize = 512 << 10;

/// Bytes of the worker's own memory that a process takes at most, without the data that its stack holds.
pub(in crate::sessions) fn state_bytes(plan: &Plan) -> usize {
    plan.state_bytes() + ROOM + BARE
}

/// What tells which other stack of this host a connection goes to.
pub(in crate::sessions) struct Neighbourhood {
    /// The process's stack.
    pub(in crate::sessions) id: StackId,
    pub(in crate::sessions) steering: SteeringReader,
    /// The router's own addresses.
    pub(in crate::sessions) addresses: Vec<IpAddr>,
    pub(in crate::sessions) config: Arc<ArcSwap<config::Sessions>>,
}

impl Neighbourhood {
    /// The stack that a connection between these ends goes to, if it may take a path there.
    fn meets(&self, ends: &Ends) -> Option<StackId> {
        let is_own = |end: &SocketAddr| self.addresses.contains(&end.ip());
        if !is_own(&ends.local) || !is_own(&ends.remote) || self.config.load().links == 0 {
            return None;
        }
        let (protocol, local, remote) = (TransportProtocol::Tcp, ends.local, ends.remote);
        self.steering.meets(self.id, &Flow { protocol, local, remote })
    }
}

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
    pub(in crate::sessions) uid: u32,
    /// Data that its connections hold, and may hold.
    pub(in crate::sessions) held: Held,
    /// Told when it does not keep to the protocol.
    pub(in crate::sessions) dismissal: Dismissal,
    pub(in crate::sessions) neighbourhood: Neighbourhood,
}

/// The way to whoever goes on with what a process leaves.
pub(super) type Heir = Sender<Orphans>;

/// A process, on its worker's thread.
pub(super) struct Tenant {
    queues: Queues,
    served: Served,
    wake: ClientWake,
    answers: Errand,
    events: Errand,
    uid: u32,
    /// Data that its connections hold, and may hold.
    held: Held,
    dismissal: Dismissal,
    neighbourhood: Neighbourhood,
    /// Its number in the worker's exchange.
    path: u16,
    /// Who gets what it leaves. `None`: it is there.
    heir: Option<Heir>,
    /// It has left nothing more.
    has_left: bool,
}

impl Tenant {
    /// `None`: there is no memory, or there are too many.
    pub(super) fn new(arrival: Arrival, exchange: &mut Exchange) -> Option<Self> {
        let Arrival { mut queues, end, wake, answers, events, uid, held, dismissal, neighbourhood } =
            arrival;
        let plan = end.plan();
        let config = Config {
            connections_v4: plan.connections(),
            connections_v6: plan.connections(),
            connections: plan.connections(),
            time_waits: plan.time_waits(),
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
        let path = exchange.join(neighbourhood.id)?;
        Some(Self {
            queues,
            served,
            wake,
            answers,
            events,
            uid,
            held,
            dismissal,
            neighbourhood,
            path,
            heir: None,
            has_left: false,
        })
    }

    /// The process is gone: whoever is there gets the connections that it has closed.
    pub(super) fn leave_to(&mut self, heir: Heir) {
        self.heir = Some(heir);
    }

    /// Whether nothing of a process that is gone is here any more.
    pub(super) fn has_left(&self) -> bool {
        self.has_left
    }

    /// Gives some of what the process leaves away, when there is room. Gives how much there was to do.
    fn give_away(&mut self, now: u64) -> usize {
        let Some(heir) = self.heir.as_ref().filter(|_| !self.has_left) else { return 0 };
        match heir.try_reserve() {
            Ok(room) => match self.served.leave(now) {
                Some(orphans) => room.send(orphans),
                None => self.has_left = true,
            },
            // The bell rings when there is.
            Err(TrySendError::Full(())) => return 0,
            // Nobody is there any more.
            Err(TrySendError::Closed(())) => self.has_left = true,
        }
        1
    }

    pub(super) fn number(&self) -> u32 {
        self.queues.number
    }

    /// Its user.
    pub(super) fn uid(&self) -> u32 {
        self.uid
    }

    /// Its number in the exchange.
    pub(super) fn path(&self) -> u16 {
        self.path
    }

    /// Connections that begin to other stacks of this worker take the path there.
    fn meet(&mut self, exchange: &mut Exchange) {
        if !self.served.takes_paths() {
            exchange.shut(self.path);
        }
        for id in self.served.take_begun() {
            let Some(ends) = self.served.sessions().ends(id) else { continue };
            let met = self.neighbourhood.meets(&ends).filter(|_| self.served.takes_paths());
            let path = met.and_then(|met| exchange.path_to(met));
            if let Some(path) = path.filter(|path| path.number != self.path) {
                self.served.sessions().take_path(id, path);
            }
        }
    }

    /// What other stacks of this worker have sent. Gives how many packets those were.
    fn receive_near(&mut self, now: u64, exchange: &mut Exchange, is_full: bool) -> usize {
        let Some(inbox) = exchange.take(self.path) else { return 0 };
        let Self { queues, served, path: own, .. } = self;
        let sessions = served.sessions();
        let count = inbox.packets(|path, packets| {
            if !is_full {
                let mut ways = Ways::new(&mut queues.outbound, exchange, *own);
                sessions.input_by(path, now, packets, &mut ways);
            }
        });
        for (path, ends) in inbox.turned() {
            sessions.leave_path(*path, ends, &mut Ways::new(&mut queues.outbound, exchange, *own));
        }
        exchange.give_back(*own, inbox);
        count
    }

    /// Another stack has left the worker.
    pub(super) fn end_path(&mut self, path: u16, exchange: &mut Exchange) {
        let Self { queues, served, path: own, .. } = self;
        let mut ways = Ways::new(&mut queues.outbound, exchange, *own);
        served.sessions().end_path(path, &mut ways);
    }

    /// Packets in. Gives how many there were.
    fn receive(&mut self, now: u64, exchange: &mut Exchange) -> usize {
        let Self { queues, served, held, path, .. } = self;
        let Queues { inbound, outbound, .. } = queues;
        let (sessions, is_full) = (served.sessions(), held.is_full());
        let datagrams = sessions.waiting_datagrams();
        sessions.limit_datagrams(held.of_datagrams(datagrams));
        let came = inbound.receive(|packets| {
            let mut ways = Ways::new(outbound, exchange, *path);
            if is_full {
                // Who does not read what has come gets no more: it is sent again.
                sessions.input_datagrams(now, packets, &mut ways);
            } else {
                sessions.input(now, packets, &mut ways);
            }
        });
        came + self.receive_near(now, exchange, is_full)
    }

    /// What comes when the process is gone comes again, to whoever has its connections then. Gives how much that was.
    fn turn_away(&mut self, exchange: &mut Exchange) -> usize {
        if let Some(inbox) = exchange.take(self.path) {
            exchange.give_back(self.path, inbox);
        }
        self.queues.inbound.receive(|_| {})
    }

    /// Packets in, commands, timers, packets out, and what there is to tell. Gives how much there was to do.
    pub(super) fn round(&mut self, now: u64, exchange: &mut Exchange) -> usize {
        let before = held_bytes();
        let came = match self.heir {
            None => self.receive(now, exchange),
            Some(_) => self.turn_away(exchange),
        };
        let done = self.served.serve(now);
        self.meet(exchange);
        let Self { queues, served, path, .. } = self;
        let sessions = served.sessions();
        let is_due = sessions.next_deadline().is_some_and(|at| at <= now) || sessions.wants_turn();
        if came + done > 0 || is_due || served.is_starved() {
            served.turn(now, &mut Ways::new(&mut queues.outbound, exchange, *path));
        }
        queues.outbound.ring();
        served.look(now);
        let (answers, events) = (&self.answers, &self.events);
        served.ring(
            |sleeps| {
                answers.ring(sleeps);
            },
            |sleeps| {
                events.ring(sleeps);
            },
        );
        let given = self.give_away(now);
        let more = held_bytes() as isize - before as isize;
        let is_tight = self.held.note(more, self.served.held_beside());
        self.served.tighten(is_tight);
        came + done + given
    }

    /// Whether it has to go. One that is gone goes anyway.
    pub(super) fn is_broken(&self) -> bool {
        self.heir.is_none() && self.served.is_broken()
    }

    /// It is told so.
    pub(super) fn dismiss(&self) {
        self.dismissal.dismiss("it breaks the protocol of its stack worker");
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
        let is_deaf = self.wake.event().is_none() || self.wake.may_be_full();
        is_deaf || self.served.is_starved() || self.heir.is_some()
    }

    /// After a sleep; `now`: TSC cycles.
    pub(super) fn awake(&mut self, now: u64) {
        self.served.sleeps().withdraw();
        self.queues.withdraw();
        self.queues.clear();
        // A ring that brings a command costs its user a part of its share of the worker's time, and nobody else anything.
        if self.served.has_commands() {
            self.wake.clear_for_work();
        } else {
            self.wake.clear(now);
        }
    }

    /// Whether something has come since.
    pub(super) fn has_work(&self) -> bool {
        self.queues.inbound.has_packets() || self.served.has_commands()
    }
}
