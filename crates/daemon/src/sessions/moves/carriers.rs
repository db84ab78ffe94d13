//! Names of connections that more than one process may hold.

use std::time::Instant;

use shm::attach::Refusal;
use shm::session::CarrierId;

use super::super::Sessions;
use super::{Kind, Moves, Named, Place, Waits};
use crate::processes::{invalid, no_resources};

impl Moves {
    /// A name that nobody can guess.
    fn new_name(&self) -> Result<CarrierId, Refusal> {
        let mut bytes = [0; 16];
        let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
        match filled {
            Ok(16) => {}
            _ => return Err(no_resources("the system has no random numbers yet")),
        }
        let (first, second) = bytes.split_at(8);
        let word = |half: &[u8]| half.try_into().map(u64::from_ne_bytes).unwrap_or_default();
        Ok(CarrierId([word(first), word(second)]))
    }

    /// Gives a connection a name.
    pub(super) fn name(
        &mut self,
        uid: u32,
        kind: Kind,
        place: Place,
    ) -> Result<CarrierId, Refusal> {
        let id = self.new_name()?;
        let (waiting, earlier, since) = (Vec::new(), Vec::new(), Instant::now());
        let named = Named { uid, kind, place, waiting, since, is_recalled: false, earlier };
        self.named.insert(id, named);
        Ok(id)
    }

    /// Forgets a name. Gives what it stood for.
    pub(super) fn forget(&mut self, id: CarrierId) -> Option<Named> {
        let named = self.named.remove(&id)?;
        if let Kind::Carrier { .. } = named.kind {
            self.change_held(named.uid, |held| held.carriers = held.carriers.saturating_sub(1));
        }
        Some(named)
    }
}

impl Sessions {
    /// A user wants a carrier for a connection that a stack of the same user has.
    pub(in crate::sessions) fn carry(
        &mut self,
        uid: u32,
        stack: u32,
    ) -> Result<CarrierId, Refusal> {
        let mut own = self.list.iter().filter(|(_, session)| session.uid() == uid);
        let found = own.find_map(|(process, session)| {
            session.stacks.get(&stack).map(|known| (*process, known.start.is_none()))
        });
        let process = match found {
            Some((process, true)) => process,
            _ => return Err(invalid(format!("user {uid} has no stack {stack} that was started"))),
        };
        self.moves.admit_carrier(uid, &self.config.load())?;
        let kind = Kind::Carrier { is_closed: false };
        let id = self.moves.name(uid, kind, Place::At { process, stack })?;
        self.moves.held.entry(uid).or_default().carriers += 1;
        Ok(id)
    }

    /// Nobody holds a carrier any more: a connection that the daemon keeps is closed.
    pub(in crate::sessions) fn carrier_closed(&mut self, id: CarrierId) {
        let Some(named) = self.moves.named.get_mut(&id) else { return };
        if let (Kind::Carrier { is_closed }, Place::Moving) = (&mut named.kind, &named.place) {
            // Whoever moves it closes it then.
            *is_closed = true;
            return;
        }
        let named = self.moves.forget(id);
        if let Some(Place::Parked(parked)) = named.map(|named| named.place) {
            self.finish(parked);
        }
    }

    /// A process has ended, with all that it had.
    pub(in crate::sessions) fn forget_process(&mut self, process: u32) {
        let mut lost = Vec::new();
        for (id, named) in &mut self.moves.named {
            named.waiting.retain(|waiting| *waiting != process);
            named.earlier.retain(|earlier| *earlier != process);
            if matches!(named.place, Place::At { process: at, .. } if at == process) {
                named.place = Place::Gone;
                lost.push(*id);
            }
        }
        for id in lost {
            self.tell_lost(id);
        }
        if self.moves.parking.as_ref().is_some_and(|own| own.client == process) {
            self.lose_parking();
        }
    }

    /// The daemon's own stack has ended, and all connections that it kept.
    fn lose_parking(&mut self) {
        tracing::warn!("the daemon's own stack has ended with all connections that it kept");
        self.moves.parking = None;
        self.moves.waits = Waits::default();
        for (_, charge) in std::mem::take(&mut self.moves.orphans) {
            self.moves.discharge(charge);
        }
        let mut discharged = Vec::new();
        self.moves.named.retain(|_, named| {
            let Place::Parked(parked) = &named.place else { return true };
            discharged.push(parked.charge);
            named.place = Place::Gone;
            // Nobody closes what waits to be accepted.
            matches!(named.kind, Kind::Carrier { .. })
        });
        discharged.into_iter().for_each(|charge| self.moves.discharge(charge));
    }
}
