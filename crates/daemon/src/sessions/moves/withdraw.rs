//! A process asks for a connection.

use std::time::Instant;

use shm::attach::Refusal;
use shm::session::{CarrierId, Event};
use transport::ConnectionId;

use super::super::Sessions;
use super::super::parking::Parking;
use super::{Charge, Kind, Parked, Place, WAITING};
use crate::processes::{Debit, UserBound, invalid, no_resources, unknown};

/// What becomes of a request.
pub(in crate::sessions) enum Answered {
    /// The daemon's own stack gives it.
    Take(Leaving),
    /// It is asked for.
    Recalling,
}

/// A connection that is on its way to a stack: its packets go there already.
pub(in crate::sessions) struct Leaving {
    pub(in crate::sessions) parking: Option<Parking>,
    pub(in crate::sessions) own: Vec<u8>,
    pub(in crate::sessions) connection: Option<ConnectionId>,
    /// For the file that it leaves in.
    pub(in crate::sessions) debit: Debit,
    charge: Charge,
}

impl Sessions {
    /// A stack of a process asks for a named connection.
    pub(in crate::sessions) fn begin_withdraw(
        &mut self,
        id: CarrierId,
        (process, number): (u32, u32),
    ) -> Result<Answered, Refusal> {
        let stack = self.stack(process, number)?;
        if stack.start.is_some() {
            return Err(invalid(format!("stack {number} has not been started")));
        }
        let to = stack.id;
        let there = self.moves.named.get(&id);
        let mut debit = None;
        if there.is_some_and(|named| matches!(named.place, Place::Parked(_))) {
            self.admit_moved(process)?;
            debit = Some(self.charge(process, 0)?);
        }
        let own = self.moves.own();
        let named = self.moves.named.get_mut(&id);
        let named =
            named.ok_or_else(|| unknown("there is no such connection, or it was closed"))?;
        match &named.place {
            Place::Gone => Err(unknown("the connection has ended with the process that had it")),
            Place::At { process: at, stack: of } if (*at, *of) == (process, number) => {
                Err(invalid("that stack has the connection"))
            }
            Place::At { .. } | Place::Moving => self.recall(id, process),
            Place::Parked(_) => {
                let place = std::mem::replace(&mut named.place, Place::Moving);
                let (Place::Parked(parked), Some(debit)) = (place, debit) else {
                    return Err(unknown("the connection has ended"));
                };
                let Parked { own: mine, connection, flow, charge } = parked;
                let (parking, own_stack) = own.unzip();
                // One that has ended gets no packets, and its flow may be another's.
                if let Some(flow) = flow.filter(|flow| self.steering.redirected(flow) == own_stack)
                {
                    self.steering.redirect(to, &flow).map_err(no_resources)?;
                    self.moves.withdrawn.insert(flow, Instant::now());
                    // What the daemon was to end there has ended.
                    self.moves.disown(&flow);
                }
                Ok(Answered::Take(Leaving { parking, own: mine, connection, debit, charge }))
            }
        }
    }

    /// Whether one more connection may move to a process. All users share the room for connections that are neither their stack's
    /// by its ports nor by its listeners.
    fn admit_moved(&mut self, process: u32) -> Result<(), Refusal> {
        let uid = self.session(process)?.uid();
        let own = self.moves.parking.as_ref().map(|own| own.id);
        let users = self.list.values().filter(|session| session.uid() == uid);
        let stacks = users.flat_map(|session| session.stacks.values().map(|stack| stack.id));
        let has = stacks.filter(|id| Some(*id) != own).map(|id| self.steering.moved_to(id)).sum();
        let (key, what) = ("parked", "connections that have moved");
        let most = self.config.load().parked as usize;
        UserBound { key, what, has, more: 1, most }.check("sessions", uid)
    }

    /// Has whoever has it asked for it, and the process told when it is there.
    fn recall(&mut self, id: CarrierId, process: u32) -> Result<Answered, Refusal> {
        let Some(named) = self.moves.named.get_mut(&id) else {
            return Err(unknown("there is no such connection"));
        };
        if !named.waiting.contains(&process) {
            if named.waiting.len() >= WAITING {
                let problem = format!("{WAITING} processes wait for the connection already");
                return Err(no_resources(problem));
            }
            if named.waiting.is_empty() {
                named.since = Instant::now();
            }
            named.waiting.push(process);
        }
        if let Place::At { process: holder, .. } = named.place {
            named.is_recalled = true;
            self.tell(holder, Event::Recall(id));
        }
        Ok(Answered::Recalling)
    }

    /// The connection has left the daemon's own stack, or it is lost.
    pub(in crate::sessions) fn end_withdraw(
        &mut self,
        id: CarrierId,
        (process, stack): (u32, u32),
        charge: Charge,
        given: bool,
    ) {
        self.moves.discharge(charge);
        let there = given && self.list.contains_key(&process);
        let Some(named) = self.moves.named.get_mut(&id) else { return };
        match named.kind {
            Kind::Carrier { is_closed: false } if there => {
                named.place = Place::At { process, stack };
                named.since = Instant::now();
                named.earlier.retain(|earlier| *earlier != process);
                // Others wait for it: it goes on at once.
                named.is_recalled = !named.waiting.is_empty();
                if named.is_recalled {
                    self.tell(process, Event::Recall(id));
                }
            }
            Kind::Carrier { is_closed: false } => {
                named.place = Place::Gone;
                self.tell_lost(id);
            }
            // Nobody asks for it again.
            Kind::Carrier { is_closed: true } | Kind::Offer { .. } => {
                self.tell_waiting(id, Event::Lost(id));
                self.moves.forget(id);
            }
        }
    }

    /// The process does not have a connection that it was asked for.
    pub(in crate::sessions) fn decline(
        &mut self,
        id: CarrierId,
        process: u32,
    ) -> Result<(), Refusal> {
        let named = self.moves.named.get_mut(&id);
        let named = named.ok_or_else(|| unknown("there is no such carrier, or it was closed"))?;
        match named.place {
            Place::At { process: at, .. } if at == process => named.place = Place::Gone,
            _ => return Err(invalid("the connection of that carrier is not with that process")),
        }
        self.tell_lost(id);
        Ok(())
    }
}

impl Leaving {
    /// What counted for its user.
    pub(in crate::sessions) fn charge(&self) -> Charge {
        self.charge
    }
}
