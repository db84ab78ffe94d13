//! Stacks: made, handed to the workers, taken back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use forward::nodes;
use forward::steering::Claims;
use graph::{StackCounters, StackQueue, StackSetup};
use shm::attach::{ChannelPlace, FILES, Refusal, RingPlace};
use shm::claims::{self, ClaimsReader};
use shm::connections::{self, ConnectionsReader};
use shm::session::{ClaimsPlace, ConnectionsPlace, OpenStack, StackOpened};
use shm::{Layout, Segment};

use super::bounds::Usage;
use super::{Lent, Sessions, Stack};
use crate::processes::{Debit, Made, PAGE, channel, invalid, no_resources, unknown};
use crate::workers::{Answer, Answers, Member, Workers};

/// A stack more.
const ONE: Usage = Usage { stacks: 1, listeners: 0, leases: 0 };

/// What a stack will have on the workers, in order, once its process has mapped its memory.
pub(super) type Start = Vec<StackSetup>;

/// Workers that were told to begin.
pub(super) struct Starting(Vec<Answer<Option<Box<StackQueue>>>>);

impl Starting {
    /// When they have.
    pub(super) async fn done(self) -> Result<(), Refusal> {
        for answer in self.0 {
            drop(answer.get().await.map_err(no_resources)?);
        }
        Ok(())
    }
}

/// What is left of a stack that was taken back, until the workers have given back theirs.
pub(super) struct Left {
    taken: Answers<Option<Box<StackQueue>>>,
    start: Option<Start>,
    segment: Arc<Segment>,
}

impl Left {
    /// When no worker takes from it or gives to it any more. Gives its memory.
    pub(super) async fn taken(self) -> Arc<Segment> {
        drop(self.taken.all().await);
        drop(self.start);
        self.segment
    }
}

/// How much memory a stack takes, and in which pieces.
struct Size {
    layout: Layout,
    workers: usize,
    /// Bytes of a ring, up to the next page.
    each: usize,
    /// Bytes of the claims, up to the next page.
    claims: usize,
    bytes: usize,
}

impl Size {
    fn of(asked: &OpenStack, workers: usize) -> Result<Self, Refusal> {
        let layout =
            Layout::new(asked.slots, asked.capacity).map_err(|e| invalid(e.to_string()))?;
        let claims = claims::bytes(asked.claims).map_err(|e| invalid(e.to_string()))?;
        let claims = claims.next_multiple_of(PAGE);
        let table = connections::bytes(asked.connections).map_err(|e| invalid(e.to_string()))?;
        if 2 + workers > FILES {
            return Err(no_resources(format!("{workers} workers are too many for stacks")));
        }
        let each = layout.bytes().next_multiple_of(PAGE);
        let bytes = each * 2 * workers + claims + table.next_multiple_of(PAGE);
        Ok(Self { layout, workers, each, claims, bytes })
    }

    /// Where the ring from a worker lies; the one to it follows.
    fn ring(&self, worker: usize) -> usize {
        2 * worker * self.each
    }

    fn claims(&self) -> usize {
        2 * self.workers * self.each
    }

    fn connections(&self) -> usize {
        self.claims() + self.claims
    }
}

impl Lent<'_> {
    /// The memory that a stack's queues take and the workers that serve it, if it can be granted.
    pub(super) fn charge_stack(
        &mut self,
        id: u32,
        asked: &OpenStack,
    ) -> Result<(Debit, usize), Refusal> {
        let size = Size::of(asked, self.workers.crew().len())?;
        self.sessions.admit(id, &ONE)?;
        Ok((self.sessions.charge(id, size.bytes)?, size.workers))
    }

    /// Sets a stack up in memory and with bells that were made for it, with `more` bytes that will belong to it. It begins when its
    /// process has mapped it.
    pub(super) fn open_stack(
        &mut self,
        id: u32,
        asked: OpenStack,
        more: usize,
        made: Made,
    ) -> Result<StackOpened, Refusal> {
        // It was checked before the memory was made; much may have changed since.
        self.sessions.admit(id, &ONE)?;
        let Made { segment, bells } = made;
        let size = Size::of(&asked, bells.wakes.len())?;
        let entry = self.workers.entry(nodes::FROM_STACK);
        let entry = entry.ok_or_else(|| no_resources("the workers take no packets of stacks"))?;
        let uid = self.sessions.session(id)?.uid();
        let bell = bells.channels.first().ok_or_else(|| invalid("a stack without a bell"))?;
        let (mut setups, mut rings) = (Vec::new(), Vec::new());
        let crew = self.workers.crew();
        for ((worker, member), wake) in crew.iter().enumerate().zip(bells.wakes) {
            let at = size.ring(worker);
            setups.push(StackSetup {
                channel: channel(&segment, at, size.layout, bell.clone())?,
                wake,
                pace: self.sessions.paces.of(uid, worker),
                pool: member.buffers.packets,
                entry,
                counters: Arc::new(StackCounters::default()),
            });
            let (slots, capacity) = (asked.slots, asked.capacity);
            let place = |offset: usize| RingPlace { offset: offset as u64, slots, capacity };
            rings.push([place(at), place(at + size.each)]);
        }
        let places = asked.claims;
        let bytes = claims::bytes(places).map_err(|e| invalid(e.to_string()))?;
        let region = segment.region(size.claims(), bytes);
        let region = region.ok_or_else(|| invalid("a segment too short"))?;
        let reader = ClaimsReader::new(region, places).map_err(|e| invalid(e.to_string()))?;
        let connections = connections_at(&segment, size.connections(), asked.connections)?;
        let Sessions { steering, secret, list, .. } = &mut *self.sessions;
        let number = steering.next_number();
        let key = secret.claims_key(number);
        let stack_id = steering
            .add_stack(Claims { user: uid, process: id, reader, key })
            .map_err(no_resources)?;
        let stack = Stack {
            id: stack_id,
            asked,
            more,
            worker: None,
            since: Instant::now(),
            segment,
            connections: Arc::new(connections),
            counters: setups.iter().map(|setup| Arc::clone(&setup.counters)).collect(),
            start: Some(setups),
            listeners: BTreeMap::new(),
            leases: BTreeSet::new(),
        };
        if let Some(session) = list.get_mut(&id) {
            session.stacks.insert(number, stack);
        }
        let claims = ClaimsPlace { offset: size.claims() as u64, places, key };
        let (offset, places) = (size.connections() as u64, asked.connections);
        Ok(StackOpened {
            stack: number,
            rings: ChannelPlace { rings },
            claims,
            connections: ConnectionsPlace { offset, places },
            seed: secret.seed(uid),
        })
    }

    /// The memory of a stack that was opened and not started.
    pub(super) fn memory_to_start(
        &mut self,
        id: u32,
        number: u32,
    ) -> Result<Arc<Segment>, Refusal> {
        let stack = self.sessions.stack(id, number)?;
        if stack.is_started() {
            return Err(invalid("the stack was started already"));
        }
        Ok(Arc::clone(&stack.segment))
    }

    /// Gives the workers what a process has opened: it has mapped its memory, which is [closed](Segment::close) by now.
    pub(super) fn start_stack(&mut self, id: u32, number: u32) -> Result<Starting, Refusal> {
        let stack = self.sessions.stack(id, number)?;
        let setups = stack.start.take().ok_or_else(|| invalid("the stack was started already"))?;
        let stack = stack.id;
        let crew = self.workers.crew();
        let add = |(worker, setup): (&Member, StackSetup)| {
            worker.ask(move |state| state.add_stack(stack, setup))
        };
        Ok(Starting(crew.iter().zip(setups).map(add).collect()))
    }

    /// Takes a stack back. Gives what is left, to be waited for by whoever asked.
    pub(super) fn close_stack(&mut self, id: u32, number: u32) -> Result<Left, Refusal> {
        let stack = self.sessions.session(id)?.stacks.remove(&number);
        let stack = stack.ok_or_else(|| unknown(format!("there is no stack {number}")))?;
        self.sessions.unlink_all(|end| (end.process, end.stack) == (id, number));
        Ok(self.sessions.take_back(stack, self.workers))
    }
}

fn connections_at(
    segment: &Arc<Segment>,
    offset: usize,
    places: u32,
) -> Result<ConnectionsReader, Refusal> {
    let bytes = connections::bytes(places).map_err(|e| invalid(e.to_string()))?;
    let region = segment.region(offset, bytes);
    let region = region.ok_or_else(|| invalid("a segment too short"))?;
    ConnectionsReader::new(region, places).map_err(|e| invalid(e.to_string()))
}

impl Sessions {
    /// A stack worker runs a stack from now on.
    pub(super) fn note_worker(
        &mut self,
        (id, number): (u32, u32),
        worker: u16,
    ) -> Result<(), Refusal> {
        self.stack(id, number)?.worker = Some(worker);
        Ok(())
    }

    /// A stack's ports and listeners are the others' from now on, and the workers give its rings back.
    pub(super) fn take_back(&mut self, stack: Stack, workers: &Workers) -> Left {
        let Stack { id, segment, start, leases, .. } = stack;
        leases.iter().for_each(|first| self.links.note(*first, 0));
        if let Err(error) = self.steering.remove_stack(id) {
            tracing::error!("{error}");
        }
        let taken = workers.crew().owe_all(move |state| state.remove_stack(id));
        Left { taken, start, segment }
    }
}

#[cfg(test)]
mod tests {
    use client::session::SHARED;
    use host::Plan;

    use super::super::lodging::queues;
    use super::super::shared::state_bytes;
    use super::*;
    use crate::testing;

    #[test]
    fn a_server_with_four_processes_on_stack_workers_can_be_reloaded() {
        // As programs ask for them, with four workers of the daemon's; a reload has four more processes for a while.
        let plan = Plan::new(SHARED.sessions, SHARED.chunks).unwrap();
        let size = Size::of(&queues(plan.sessions()), 4).unwrap();
        let each = size.bytes + plan.bytes() + state_bytes(&plan);
        let most = (testing::config("").sessions.memory as usize) << 20;
        assert!(8 * each <= most, "{each} bytes each, {most} for all");
    }
}
