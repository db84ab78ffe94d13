//! A process gives connections to the daemon.

use std::time::Instant;

use forward::steering::{Flow, ListenerId, SteeringError};
use graph::StackId;
use shm::attach::{Refusal, RefusalKind};
use shm::session::{CarrierId, Event, Offered};
use transport::{ConnectionId, ImportError};

use super::super::parking::{EndedFlow, Expected, Parking};
use super::super::routes::own;
use super::super::{LastWords, Lent, Sessions};
use super::cargo::Cargo;
use super::{Charge, Kind, Named, Parked, Place};
use crate::processes::{invalid, no_resources, unknown};

/// A connection is on its way to the daemon's own stack: its packets go there already.
pub(in crate::sessions) struct Taking {
    pub(in crate::sessions) parking: Parking,
    /// Until it is there.
    pub(in crate::sessions) expected: Option<Expected>,
    pub(super) flow: Option<Flow>,
    /// The stack that it had moved to before.
    pub(super) before: Option<StackId>,
    pub(super) charge: Charge,
}

impl Lent<'_> {
    /// A stack of a process gives a connection, if it may.
    pub(in crate::sessions) fn take(
        &mut self,
        process: u32,
        number: u32,
        cargo: &Cargo,
    ) -> Result<Taking, Refusal> {
        let flow = cargo.flow();
        self.check_giver(process, number, flow.as_ref())?;
        let sessions = &mut *self.sessions;
        let (parking, own_stack) = sessions.own_stack()?;
        let uid = sessions.session(process)?.uid();
        let charge = Charge { uid, bytes: cargo.bytes() };
        sessions.moves.admit(charge, &sessions.config.load())?;
        // The own stack takes no packets before the connection is there.
        let expected = Some(parking.expect());
        let before = match &flow {
            Some(flow) => sessions.park(own_stack, flow)?,
            None => None,
        };
        sessions.moves.charge(charge);
        Ok(Taking { parking, expected, flow, before, charge })
    }

    /// The same of a connection that nobody has any more. When the daemon does not take it, it is over: gives what its peer is to be
    /// told, if it was that stack's to end.
    pub(in crate::sessions) fn take_last(
        &mut self,
        process: u32,
        number: u32,
        cargo: &Cargo,
    ) -> Result<Taking, Option<LastWords>> {
        self.take(process, number, cargo).map_err(|_| {
            self.check_giver(process, number, cargo.flow().as_ref()).ok()?;
            cargo.last_words()
        })
    }

    /// Whether a flow is a stack's of a process to give away.
    fn check_giver(
        &mut self,
        process: u32,
        number: u32,
        flow: Option<&Flow>,
    ) -> Result<(), Refusal> {
        let id = self.sessions.started(process, number)?;
        let Some(flow) = flow else { return Ok(()) };
        let local = flow.local.ip();
        if own(&self.routing.interfaces(), local).is_none() {
            return Err(invalid(format!("the router does not have the address {local}")));
        }
        let checked = self.sessions.steering.check_owner(id, flow);
        checked.map_err(|error| not_its(flow, &error))
    }
}

/// A process has no business with a flow.
fn not_its(flow: &Flow, error: &SteeringError) -> Refusal {
    let Flow { local, remote, .. } = flow;
    let problem = format!("the connection from {local} to {remote}: {error}");
    Refusal::new(RefusalKind::Permission, problem)
}

impl Sessions {
    pub(in crate::sessions) fn own_stack(&self) -> Result<(Parking, StackId), Refusal> {
        let own = self.moves.own();
        own.ok_or_else(|| no_resources("the daemon's own stack has ended; ask again"))
    }

    /// A flow's packets are for the own stack from now on, and what that was to end there is over. Gives the stack of a process that
    /// the connection had moved to before.
    pub(super) fn park(
        &mut self,
        own_stack: StackId,
        flow: &Flow,
    ) -> Result<Option<StackId>, Refusal> {
        let before = self.steering.redirected(flow).filter(|before| *before != own_stack);
        self.steering.park(own_stack, flow).map_err(no_resources)?;
        self.moves.disown(flow);
        Ok(before)
    }

    /// A stack of a process that it has begun with.
    pub(super) fn started(&mut self, process: u32, number: u32) -> Result<StackId, Refusal> {
        let stack = self.stack(process, number)?;
        if stack.start.is_some() {
            return Err(invalid(format!("stack {number} has not been started")));
        }
        Ok(stack.id)
    }

    /// The daemon's own stack has it, or not: then it is as it was before.
    fn settle(
        &mut self,
        taking: &Taking,
        imported: Result<Option<ConnectionId>, ImportError>,
    ) -> Result<Option<ConnectionId>, Refusal> {
        if let (Ok(_), Some(flow)) = (&imported, &taking.flow) {
            // What was left of an earlier connection has made way.
            self.end_wait(flow);
        }
        imported.map_err(|error| {
            self.moves.discharge(taking.charge);
            if let Some(flow) = &taking.flow {
                // Nothing else is to end there: the flow was free.
                self.moves.disown(flow);
                let back = taking.before.map(|stack| self.steering.redirect(stack, flow));
                // Whoever had it may have ended meanwhile.
                if !matches!(back, Some(Ok(()))) {
                    self.steering.end_redirect(flow);
                }
            }
            invalid(format!("the connection: {error}"))
        })
    }

    /// A connection that has a name is on its way, if that stack has it.
    pub(in crate::sessions) fn begin_deposit(
        &mut self,
        id: CarrierId,
        (process, stack): (u32, u32),
    ) -> Result<(), Refusal> {
        let named = self.moves.named.get_mut(&id);
        let named = named.ok_or_else(|| unknown("there is no such carrier, or it was closed"))?;
        match named.place {
            Place::At { process: at, stack: of } if (at, of) == (process, stack) => {
                named.place = Place::Moving;
                Ok(())
            }
            _ => Err(invalid("the connection of that carrier is not with that stack")),
        }
    }

    /// A named connection could not be taken: its process has it still.
    pub(in crate::sessions) fn cancel_deposit(
        &mut self,
        id: CarrierId,
        (process, stack): (u32, u32),
    ) {
        let there = self.list.contains_key(&process);
        let Some(named) = self.moves.named.get_mut(&id) else { return };
        named.place = if there { Place::At { process, stack } } else { Place::Gone };
        named.is_recalled = false;
        let closed = matches!(named.kind, Kind::Carrier { is_closed: true });
        self.tell_waiting(id, Event::Lost(id));
        if closed {
            self.moves.forget(id);
        }
    }

    /// A named connection was taken, or not.
    pub(in crate::sessions) fn end_deposit(
        &mut self,
        id: CarrierId,
        from: (u32, u32),
        (taking, own): (&Taking, Vec<u8>),
        imported: Result<Option<ConnectionId>, ImportError>,
    ) -> Result<(), Refusal> {
        let connection = match self.settle(taking, imported) {
            Ok(connection) => connection,
            Err(refusal) => {
                self.cancel_deposit(id, from);
                return Err(refusal);
            }
        };
        let parked = Parked { own, connection, flow: taking.flow, charge: taking.charge };
        match self.moves.named.get_mut(&id) {
            Some(named) if !matches!(named.kind, Kind::Carrier { is_closed: true }) => {
                named.place = Place::Parked(parked);
                named.since = Instant::now();
                named.given_by(from.0);
                let is_wanted = !named.waiting.is_empty();
                self.tell_waiting(id, Event::Parked(id));
                if !is_wanted {
                    self.tell_earlier(id, Event::Parked(id));
                }
            }
            // Nobody holds it any more.
            _ => {
                self.moves.forget(id);
                self.finish(parked);
            }
        }
        Ok(())
    }

    /// A connection that nobody will have again was taken, or not.
    pub(in crate::sessions) fn end_abandon(
        &mut self,
        taking: &Taking,
        imported: Result<Option<ConnectionId>, ImportError>,
    ) -> Result<(), Refusal> {
        self.settle(taking, imported)?;
        match taking.flow {
            Some(flow) => self.moves.adopt(flow, taking.charge),
            None => self.moves.discharge(taking.charge),
        }
        Ok(())
    }

    /// A connection that waits to be accepted was taken, or not. Gives whether another member was asked to take it; else it
    /// is reset.
    pub(in crate::sessions) fn end_hand(
        &mut self,
        (from, listener): (StackId, u32),
        (taking, own): (&Taking, Vec<u8>),
        imported: Result<Option<ConnectionId>, ImportError>,
    ) -> Result<bool, Refusal> {
        let connection = self.settle(taking, imported)?;
        let parked = Parked { own, connection, flow: taking.flow, charge: taking.charge };
        let Some(flow) = taking.flow else {
            self.reset(parked);
            return Ok(false);
        };
        // A server's clients are not for everybody to invent.
        let may = self.steering.may_hand(listener, from, &flow);
        let Some(to) = self.steering.successor(listener, from, &flow).filter(|_| may) else {
            self.reset(parked);
            return Ok(false);
        };
        // Who only keeps the listener open, as the master of a server whose workers change, would not accept it.
        let accepts = self.steering.accepts(listener, to);
        let kind = Kind::Offer { listener, to, asked: u8::from(accepts), is_told: false };
        match self.moves.name(taking.charge.uid, kind, Place::Gone) {
            Ok(id) => {
                if let Some(named) = self.moves.named.get_mut(&id) {
                    named.place = Place::Parked(parked);
                    named.since = Instant::now();
                }
                if accepts {
                    self.offer(id, to, listener);
                }
                Ok(true)
            }
            Err(_) => {
                self.reset(parked);
                Ok(false)
            }
        }
    }

    /// Asks a stack to take a connection that waits to be accepted, for as long as it may take.
    pub(super) fn offer(&mut self, id: CarrierId, to: StackId, listener: ListenerId) {
        if let Some(named) = self.moves.named.get_mut(&id) {
            named.since = Instant::now();
        }
        self.tell_offered(id, to, listener);
    }

    /// Tells its process so. One that has no room for news at the moment is to be told when there is some.
    pub(super) fn tell_offered(&mut self, id: CarrierId, to: StackId, listener: ListenerId) {
        let event = Event::Offered(Offered { stack: to.number(), listener, id });
        let process = self.owner(to).map(|(process, _, _)| process);
        let told = process.is_none_or(|process| self.tell(process, event));
        let named = self.moves.named.get_mut(&id);
        if let Some(Named { kind: Kind::Offer { is_told, .. }, .. }) = named {
            *is_told = told;
        }
    }

    /// Closes a connection that the daemon keeps: it ends when all is sent.
    pub(super) fn finish(&mut self, parked: Parked) {
        self.let_go(parked, Parking::close);
    }

    /// Resets it.
    pub(super) fn reset(&mut self, parked: Parked) {
        self.let_go(parked, Parking::abort);
    }

    fn let_go(&mut self, parked: Parked, end: impl FnOnce(&Parking, ConnectionId)) {
        let Some((parking, own_stack)) = self.moves.own() else {
            return self.moves.discharge(parked.charge);
        };
        if let Some(connection) = parked.connection {
            end(&parking, connection);
        }
        match parked.flow.filter(|flow| self.steering.redirected(flow) == Some(own_stack)) {
            Some(flow) => self.moves.adopt(flow, parked.charge),
            None => self.moves.discharge(parked.charge),
        }
    }

    /// Connections that the daemon's own stack had are over. It answers what comes again for a while; the next connection between
    /// the same ends does not wait for that.
    pub(in crate::sessions) fn connections_over(&mut self, flows: &[Flow]) {
        let Some(own) = self.moves.parking.as_ref().map(|own| own.id) else { return };
        for flow in flows {
            if self.steering.redirected(flow) == Some(own) {
                // There is a place for it: it was there before.
                let _ = self.steering.redirect(own, flow);
            }
        }
    }

    /// That while has passed: their flows are free, but for FINs that come again.
    pub(in crate::sessions) fn flows_ended(&mut self, flows: &[EndedFlow], now: Instant) {
        let own_stack = self.moves.own().map(|(_, id)| id);
        let mut unwanted = Vec::new();
        for EndedFlow { flow, left } in flows {
            // The next connection between the same ends has come, and this one made way for it.
            if self.steering.is_parked(flow) {
                continue;
            }
            if own_stack.is_some() && self.steering.redirected(flow) == own_stack {
                self.steering.end_redirect(flow);
            }
            let Some(charge) = self.moves.disown(flow) else { continue };
            if left.is_some_and(|left| !self.wait_out(*flow, charge.uid, now + left)) {
                unwanted.push(*flow);
            }
        }
        self.forget_waits(&unwanted);
    }
}
