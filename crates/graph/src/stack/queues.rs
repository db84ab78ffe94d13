//! The queues of all stacks on one worker.

use std::os::fd::BorrowedFd;

use dpdk::BufferPool;

use super::{StackQueue, StackSetup};
use crate::deliveries::{Packet, Refusal};
use crate::{Entry, Exits, Graph, Reason, StackId, Vector};

/// Slots that stacks may send in a round besides what they were given: what they send is what the machine is there for.
const SPARE: i32 = 32;
/// Stacks that are looked at in one round: each look may wait for a line from another core.
const LOOKS: usize = 16;

/// The stacks of a worker.
#[derive(Default)]
pub struct Stacks {
    /// By place.
    list: Vec<Option<Box<StackQueue>>>,
    /// Places of those that are there.
    present: Vec<u16>,
    /// Places of those for which packets wait.
    waiting: Vec<u16>,
    /// Places of those that were asked for what they have to send.
    looked: Vec<u16>,
    /// What they have sent.
    sent: Vec<Entry>,
    /// The stack that may send first, by its place in `present`.
    first: usize,
    /// The worker is about to sleep.
    looks_at_all: bool,
    /// Where packets get their buffers that are too long for those of a stack's pool.
    long: Option<BufferPool>,
}

impl Stacks {
    /// A stack comes. Gives back what had its place before.
    pub fn add(&mut self, id: StackId, setup: StackSetup) -> Option<Box<StackQueue>> {
        let at = usize::from(id.place());
        if self.list.len() <= at {
            self.list.resize_with(at + 1, || None);
        }
        let before = self.list[at].replace(Box::new(StackQueue::new(id, setup)));
        if before.is_none() {
            self.present.push(id.place());
        }
        before
    }

    /// Packets that are too long for a buffer of a stack's pool get theirs here.
    pub fn lend_long(&mut self, pool: BufferPool) {
        self.long = Some(pool);
    }

    /// A stack goes; gives its queues back.
    pub fn remove(&mut self, id: StackId) -> Option<Box<StackQueue>> {
        let place = self.list.get_mut(usize::from(id.place()))?;
        let removed = place.take_if(|queue| queue.id == id)?;
        self.present.retain(|present| *present != id.place());
        Some(removed)
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.present.is_empty()
    }

    /// Puts what nodes have given to stacks into the stacks' rings. To be called after each run of the graph.
    #[inline]
    pub fn deliver(&mut self, exits: &mut Exits, now: u64) {
        if !exits.deliveries.is_empty() {
            self.deliver_all(exits, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn deliver_all(&mut self, exits: &mut Exits, now: u64) {
        for Refusal { from, reason, bytes } in exits.deliveries.refusals.drain(..) {
            if let Some(queue) = find(&mut self.list, from) {
                queue.refuse(reason, bytes);
            }
        }
        let mut list = std::mem::take(&mut exits.deliveries.list);
        for delivery in list.drain(..) {
            match find(&mut self.list, delivery.to) {
                Some(queue) => {
                    if queue.put(delivery.packet, delivery.flags) {
                        self.waiting.push(delivery.to.place());
                    }
                }
                None => match delivery.packet {
                    Packet::Buffer(buffer, _) => exits.drop(buffer, Reason::StackGone),
                    Packet::Long(_) => exits.counters.drops[Reason::StackGone as usize].add(1),
                },
            }
        }
        exits.deliveries.list = list;
        for at in self.waiting.drain(..) {
            if let Some(queue) = self.list.get_mut(usize::from(at)).and_then(Option::as_deref_mut) {
                queue.deliver(exits, now);
            }
        }
        exits.free_dropped();
    }

    /// Lets what stacks have sent enter the graph, as much as each one's share allows. Gives how much there was.
    pub fn send(
        &mut self,
        graph: &mut Graph,
        vector: &mut Vector,
        exits: &mut Exits,
        now: u64,
    ) -> usize {
        let found = self.collect((now, exits.busy));
        let mut sent = std::mem::take(&mut self.sent);
        let mut entering = sent.drain(..);
        while graph.admit(vector, exits, |_| entering.next()) > 0 {
            graph.run(vector, exits, now);
            self.deliver(exits, now);
        }
        drop(entering);
        self.sent = sent;
        for at in self.looked.drain(..) {
            if let Some(queue) = self.list.get_mut(usize::from(at)).and_then(Option::as_deref_mut) {
                queue.settle();
            }
        }
        found
    }

    /// Collects what stacks have sent. Gives how much there was. `moment`: TSC cycles, and whether the worker is busy.
    fn collect(&mut self, moment: (u64, bool)) -> usize {
        let Self { list, present, looked, sent, first, looks_at_all, long, .. } = self;
        let count = present.len();
        let looks = if std::mem::take(looks_at_all) { count } else { count.min(LOOKS) };
        let (mut found, mut spare, mut served) = (0, SPARE, None);
        for turn in 0..looks {
            let Some(at) = present.get((*first + turn) % count.max(1)) else { break };
            looked.push(*at);
            if let Some(queue) = list.get_mut(usize::from(*at)).and_then(Option::as_deref_mut) {
                found += queue.send(sent, &mut spare, moment, *long);
            }
            if spare == 0 && served.is_none() {
                served = Some(turn + 1);
            }
        }
        // Who got nothing of what all share gets it first.
        let turns = served.unwrap_or(if looks < count { looks } else { 1 });
        *first = (*first + turns) % count.max(1);
        found
    }

    pub(crate) fn arm(&mut self) -> bool {
        self.looks_at_all = true;
        self.list.iter_mut().flatten().fold(true, |armed, queue| queue.arm() & armed)
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.list.iter().flatten().filter_map(|queue| queue.event())
    }

    pub(crate) fn disarm(&mut self) {
        self.list.iter_mut().flatten().for_each(|queue| queue.disarm());
    }
}

fn find(list: &mut [Option<Box<StackQueue>>], id: StackId) -> Option<&mut StackQueue> {
    let queue = list.get_mut(usize::from(id.place()))?.as_deref_mut()?;
    (queue.id == id).then_some(queue)
}
