//! Connections that move between processes: who has each, and what the daemon keeps meanwhile.
//!
//! | module | job |
//! | --- | --- |
//! | `cargo` | what a process brings: read, looked at |
//! | `carriers` | names of connections, and their end |
//! | `deposit` | a process gives a connection: to be kept, to be ended, or for another member of a listener |
//! | `withdraw` | a process asks for a connection, from the daemon or from another process |
//! | `earlier` | processes that had a connection before, and may wait for it still |
//! | `waits` | connections in TIME-WAIT |
//! | `tend` | what is overdue |

mod cargo;
mod carriers;
mod deposit;
mod earlier;
mod tend;
#[cfg(test)]
mod tests;
mod waits;
mod withdraw;

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use control::config;
use forward::steering::{Flow, ListenerId};
use graph::StackId;
use shm::attach::Refusal;
use shm::session::{CarrierId, Event, Reply};
use transport::ConnectionId;

use super::Sessions;
use super::parking::Parking;
use crate::processes::{UserBound, no_resources};

use waits::Waits;

pub(super) use cargo::{Cargo, read, read_waits, written};
pub(super) use deposit::Taking;
pub(super) use withdraw::Answered;

/// How long a process may take to give a connection that another asks for.
const RECALL: Duration = Duration::from_secs(1);
/// How long a listener's member may take to withdraw a connection that waits to be accepted.
const OFFER: Duration = Duration::from_secs(5);
/// Members that are asked one after the other.
const OFFERS: u8 = 3;
/// How long a stack may take to claim a connection that it has withdrawn.
const CLAIM: Duration = Duration::from_secs(3);
/// Processes that wait for one connection.
const WAITING: usize = 64;

/// Who has which connection.
#[derive(Default)]
pub(super) struct Moves {
    parking: Option<Own>,
    named: HashMap<CarrierId, Named>,
    /// Connections that the daemon ends, and whom they count for.
    orphans: HashMap<Flow, Charge>,
    waits: Waits,
    held: BTreeMap<u32, Held>,
    /// Connections that were withdrawn of late.
    withdrawn: HashMap<Flow, Instant>,
    swept: Option<Instant>,
}

/// The daemon's own stack.
struct Own {
    parking: Parking,
    client: u32,
    id: StackId,
}

/// A connection that has a name.
struct Named {
    /// Whose it is: the user that its name counts for.
    uid: u32,
    kind: Kind,
    place: Place,
    /// Processes that have asked for it, and since when it is expected, or with the daemon.
    waiting: Vec<u32>,
    since: Instant,
    /// Whoever has it is asked for it.
    is_recalled: bool,
    /// Processes that were asked for it and have given it: they may wait for it still.
    earlier: Vec<u32>,
}

/// What a name is for.
enum Kind {
    /// A carrier; whether nobody holds it any more.
    Carrier { is_closed: bool },
    /// A connection that waits to be accepted, whom it is for, and how many were asked to take it. 0: none yet, because nobody
    /// accepts there at the moment. Its process may have had no room for that yet.
    Offer { listener: ListenerId, to: StackId, asked: u8, is_told: bool },
}

/// Where a connection is.
enum Place {
    /// At a stack of a process.
    At { process: u32, stack: u32 },
    /// On its way to the daemon's own stack, or from there.
    Moving,
    /// With the daemon.
    Parked(Parked),
    /// Nowhere any more.
    Gone,
}

/// A connection that the daemon keeps.
struct Parked {
    /// What belongs to the socket, as its process has written it.
    own: Vec<u8>,
    /// `None`: a socket without one.
    connection: Option<ConnectionId>,
    /// `None`: no packets come for it.
    flow: Option<Flow>,
    charge: Charge,
}

/// What counts for a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Charge {
    uid: u32,
    bytes: usize,
}

/// What a user has here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Held {
    carriers: usize,
    connections: usize,
    bytes: usize,
}

impl Moves {
    fn admit_carrier(&self, uid: u32, bounds: &config::Sessions) -> Result<(), Refusal> {
        let held = self.held.get(&uid).copied().unwrap_or_default();
        let (key, what, has, more) = ("carriers", "carriers of connections", held.carriers, 1);
        UserBound { key, what, has, more, most: bounds.carriers as usize }.check("sessions", uid)
    }

    fn admit(&self, charge: Charge, bounds: &config::Sessions) -> Result<(), Refusal> {
        let Charge { uid, bytes } = charge;
        let held = self.held.get(&uid).copied().unwrap_or_default();
        let (key, what) = ("parked", "connections that the daemon keeps");
        let most = bounds.parked as usize;
        let connections = UserBound { key, what, has: held.connections, more: 1, most };
        connections.check("sessions", uid)?;
        let most = (bounds.parked_memory as usize) << 20;
        if held.bytes.saturating_add(bytes) <= most {
            return Ok(());
        }
        Err(no_resources(format!(
            "user {uid} has {} bytes in connections that the daemon keeps, and {bytes} more exceed \
             sessions.parked-memory, {} MiB; raise it",
            held.bytes, bounds.parked_memory
        )))
    }

    fn charge(&mut self, Charge { uid, bytes }: Charge) {
        let held = self.held.entry(uid).or_default();
        held.connections += 1;
        held.bytes += bytes;
    }

    fn discharge(&mut self, Charge { uid, bytes }: Charge) {
        self.change_held(uid, |held| {
            held.connections = held.connections.saturating_sub(1);
            held.bytes = held.bytes.saturating_sub(bytes);
        });
    }

    /// The daemon ends a connection. One that it was to end between the same ends has ended already: a connection that is kept can
    /// be over before its name is closed, and its flow have another one by then.
    fn adopt(&mut self, flow: Flow, charge: Charge) {
        if let Some(earlier) = self.orphans.insert(flow, charge) {
            self.discharge(earlier);
        }
    }

    /// None is to be ended there any more. Gives whom it counted for.
    fn disown(&mut self, flow: &Flow) -> Option<Charge> {
        let charge = self.orphans.remove(flow)?;
        self.discharge(charge);
        Some(charge)
    }

    fn change_held(&mut self, uid: u32, change: impl FnOnce(&mut Held)) {
        if let Some(held) = self.held.get_mut(&uid) {
            change(held);
            if *held == Held::default() {
                self.held.remove(&uid);
            }
        }
    }

    fn own(&self) -> Option<(Parking, StackId)> {
        self.parking.as_ref().map(|own| (own.parking.clone(), own.id))
    }
}

impl Sessions {
    /// Whether a process is the daemon's own stack.
    pub(super) fn is_parking(&self, process: u32) -> bool {
        self.moves.parking.as_ref().is_some_and(|own| own.client == process)
    }

    /// Whether the daemon's own stack is there.
    pub(super) fn has_parking(&self) -> bool {
        self.moves.parking.is_some()
    }

    /// The daemon's own stack is there: a connection to the sessions socket, and a stack of it.
    pub(super) fn set_parking(
        &mut self,
        parking: Parking,
        (client, stack): (u32, u32),
    ) -> Result<(), Refusal> {
        let id = self.stack(client, stack)?.id;
        self.moves.parking = Some(Own { parking, client, id });
        Ok(())
    }

    /// Tells a process something. One that does not listen is not waited for. Gives whether there was room for it.
    pub(in crate::sessions) fn tell(&self, process: u32, event: Event) -> bool {
        let session = self.list.get(&process);
        session.is_some_and(|session| session.news.try_send(Reply::Event(event).into()).is_ok())
    }

    /// Processes that wait for a connection are told what became of it.
    fn tell_waiting(&mut self, id: CarrierId, event: Event) {
        let named = self.moves.named.get_mut(&id);
        let waiting = named.map(|named| std::mem::take(&mut named.waiting)).unwrap_or_default();
        for process in waiting {
            self.tell(process, event);
        }
    }
}
