//! Connections in TIME-WAIT that processes leave, and those that the daemon has ended: its own stack answers FINs that come
//! again.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use forward::steering::Flow;
use shm::attach::Refusal;
use transport::{Ends, TimeWait};

use super::super::parking::flow_of;
use super::super::routes::own;
use super::super::{Lent, Sessions};
use crate::clock;

/// Of one user. A quarter of what there is room for in the own stack, so that none takes all of it.
pub(super) const OF_USER: usize = 1 << 14;
/// So many end at a time at most, so that nobody waits for that.
const ENDING: usize = 2_048;

/// Those that the own stack has.
#[derive(Default)]
pub(super) struct Waits {
    flows: HashMap<Flow, Wait>,
    /// How many each user has.
    of_user: BTreeMap<u32, usize>,
}

/// One of them.
struct Wait {
    /// Whom it counts for.
    uid: u32,
    until: Instant,
}

impl Waits {
    fn has_room(&self, uid: u32) -> bool {
        self.of_user.get(&uid).is_none_or(|count| *count < OF_USER)
    }

    fn add(&mut self, flow: Flow, wait: Wait) {
        *self.of_user.entry(wait.uid).or_default() += 1;
        if let Some(before) = self.flows.insert(flow, wait) {
            self.uncount(before.uid);
        }
    }

    fn remove(&mut self, flow: &Flow) {
        if let Some(wait) = self.flows.remove(flow) {
            self.uncount(wait.uid);
        }
    }

    fn uncount(&mut self, uid: u32) {
        if let Some(count) = self.of_user.get_mut(&uid) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.of_user.remove(&uid);
            }
        }
    }

    /// Some of those whose time is over.
    fn over(&self, now: Instant) -> Vec<Flow> {
        let over = self.flows.iter().filter(|(_, wait)| wait.until <= now);
        over.map(|(flow, _)| *flow).take(ENDING).collect()
    }
}

impl Lent<'_> {
    /// A stack of a process leaves connections in TIME-WAIT. Gives how many were taken: those that are its to leave, as long
    /// as there is room.
    pub(in crate::sessions) fn take_waits(
        &mut self,
        process: u32,
        number: u32,
        mut waits: Vec<TimeWait>,
    ) -> Result<u32, Refusal> {
        let interfaces = self.routing.interfaces();
        let sessions = &mut *self.sessions;
        let (parking, _) = sessions.own_stack()?;
        let uid = sessions.session(process)?.uid();
        let id = sessions.started(process, number)?;
        let (clock, now) = (clock::now(), Instant::now());
        waits.retain(|one| {
            let (flow, left) = (flow_of(&one.ends()), one.left(clock));
            left > 0
                && own(&interfaces, flow.local.ip()).is_some()
                && sessions.steering.check_owner(id, &flow).is_ok()
                && sessions.wait_out(flow, uid, now + Duration::from_nanos(left))
        });
        let taken = waits.len() as u32;
        parking.wait_out(waits);
        Ok(taken)
    }
}

impl Sessions {
    /// The own stack has a connection in TIME-WAIT until then. `false`: there is no room.
    pub(super) fn wait_out(&mut self, flow: Flow, uid: u32, until: Instant) -> bool {
        let Some(own) = self.moves.parking.as_ref().map(|own| own.id) else { return false };
        if !self.moves.waits.has_room(uid) || self.steering.wait_out(own, &flow).is_err() {
            return false;
        }
        self.moves.waits.add(flow, Wait { uid, until });
        true
    }

    /// Ends those whose time is over. One whose peer has repeated its FIN would wait longer in the own stack, and not count.
    pub(super) fn end_waits(&mut self, now: Instant) {
        let over = self.moves.waits.over(now);
        over.iter().for_each(|flow| self.end_wait(flow));
        self.forget_waits(&over);
    }

    /// A flow has no TIME-WAIT any more.
    pub(super) fn end_wait(&mut self, flow: &Flow) {
        self.steering.end_wait(flow);
        self.moves.waits.remove(flow);
    }

    /// Has the own stack forget TIME-WAITs that count for nobody.
    pub(super) fn forget_waits(&self, flows: &[Flow]) {
        let Some(own) = self.moves.parking.as_ref().filter(|_| !flows.is_empty()) else { return };
        let ends = flows.iter().map(|flow| Ends { local: flow.local, remote: flow.remote });
        own.parking.forget_waits(ends.collect());
    }
}
