//! A process comes to a stack worker, and leaves: on its user's thread.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use client::session::{Queues, STACK};
use host::Plan;
use shm::Segment;
use shm::attach::Refusal;
use shm::session::{OpenShared, OpenStack, SharedOpened};

use super::guest::Attached;
use super::shared::{Arrival, Held, Most, Neighbourhood, state_bytes};
use super::{Host, Lent, own_addresses};
use crate::processes::{Debit, Theirs, grow, invalid, no_resources};

/// Connections that are shown, and reset when the process dies.
const SHOWN: u32 = 1 << 14;

/// The queues of a process with so many sessions: as large as those of a stack in the process.
pub(super) fn queues(sessions: u32) -> OpenStack {
    OpenStack { claims: 2 * sessions, connections: SHOWN, ..STACK }
}

impl<H: Host> Attached<H> {
    /// Opens sessions on a stack of a worker: packet queues as for any stack, whose other ends the worker has; and the memory of
    /// the sessions, which the process has.
    pub(super) async fn open_shared(
        &mut self,
        id: u32,
        asked: OpenShared,
    ) -> Result<(SharedOpened, Arc<Segment>, Theirs), Refusal> {
        let OpenShared { sessions, chunks } = asked;
        let plan = Plan::new(sessions, chunks).ok_or_else(|| {
            invalid("sessions: a power of two from 64 to 65,536; chunks: 16 to 262,144")
        })?;
        let (bytes, state) = (plan.bytes(), state_bytes(&plan));
        let charge = move |lent: Lent<'_>| {
            Ok((lent.sessions.charge(id, bytes)?, lent.sessions.charge(id, state)?))
        };
        let debits = self.charge(charge).await?;
        let (opened, rings, theirs) = self.open_with(id, queues(sessions), bytes + state).await?;
        let stack = opened.stack;
        let lodged = self.lodge((id, stack), (plan, debits), (opened, rings, theirs)).await;
        if lodged.is_err() {
            let _ = self.close(id, stack).await;
        }
        let (segment, theirs) = lodged?;
        Ok((SharedOpened { stack, sessions, chunks }, segment, theirs))
    }

    async fn lodge(
        &mut self,
        (id, stack): (u32, u32),
        (plan, (debit, state)): (Plan, (Debit, Debit)),
        (opened, rings, theirs): (shm::session::StackOpened, Arc<Segment>, Theirs),
    ) -> Result<(Arc<Segment>, Theirs), Refusal> {
        let file = rings.as_fd().try_clone_to_owned().map_err(no_resources)?;
        let files: Vec<OwnedFd> = std::iter::once(file).chain(theirs).collect();
        let queues = Queues::map(opened, files).map_err(no_resources)?;
        let segment = grow(&format!("millrace-sessions-{stack}"), debit, &self.holders).await?;
        let end = plan.worker(&segment).ok_or_else(|| invalid("a segment too short"))?;
        // Answers and events come by bells of their own: who waits for an answer takes no event from who sleeps.
        let (made, theirs) = self.make_bells(stack, 2, 1).map_err(no_resources)?;
        let (mut channels, mut wakes) = (made.channels.into_iter(), made.wakes.into_iter());
        let (Some(answers), Some(events), Some(wake)) =
            (channels.next(), channels.next(), wakes.next())
        else {
            return Err(no_resources("a doorbell"));
        };
        self.start(id, stack).await?;
        let config = self.config.load();
        let bytes = |mebibytes: u32| (mebibytes as usize) << 20;
        let most = Most {
            of_process: bytes(config.buffers),
            of_user: bytes(config.memory.max(config.buffers)),
        };
        let uid = self.process.credentials.uid;
        let held = Held::new(self.stack_workers.held_by(uid), most);
        let dismissal = self.dismissal.clone();
        let sections = Arc::clone(&self.config);
        let neighbourhood = self
            .ask(move |lent| {
                let id = lent.sessions.stack(id, stack)?.id;
                let steering = lent.sessions.steering.reader();
                let addresses = own_addresses(&lent.routing.interfaces());
                Ok(Neighbourhood { id, steering, addresses, config: sections })
            })
            .await?;
        let arrival =
            Arrival { queues, end, wake, answers, events, uid, held, dismissal, neighbourhood };
        let workers = &self.stack_workers;
        let lodging =
            workers.take_in(config.workers, (stack, Arc::clone(&segment), state), arrival);
        let lodging = lodging.map_err(no_resources)?;
        let worker = lodging.worker();
        self.lodgings.push(lodging);
        self.ask(move |lent| lent.sessions.note_worker((id, stack), worker)).await?;
        Ok((segment, theirs))
    }
}
