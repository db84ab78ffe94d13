//! The queues of all stacks on one worker.

use std::os::fd::BorrowedFd;

use dpdk::BufferPool;

use super::backpressure::Look;
use super::users::Users;
use super::{StackQueue, StackSetup};
use crate::deliveries::{Packet, Refusal};
use crate::{Entry, Exits, Graph, Reason, StackId, Vector};

/// The stacks of a worker.
#[derive(Default)]
pub struct Stacks {
    /// By place.
    list: Vec<Option<Box<StackQueue>>>,
    /// Whose turn it is.
    users: Users,
    /// Places of those for which packets wait.
    waiting: Vec<u16>,
    /// Those that were asked for what they have to send: places of their users, and their own.
    looked: Vec<(usize, u16)>,
    /// What they have sent.
    sent: Vec<Entry>,
    /// Who has nearly filled whose ring.
    pressed: Vec<(StackId, StackId)>,
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
        let pace = setup.pace.clone();
        let before = self.list[at].replace(Box::new(StackQueue::new(id, setup)));
        if let Some(queue) = &before {
            self.users.remove(queue.pace(), id.place());
        }
        self.users.add(&pace, id.place());
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
        self.users.remove(removed.pace(), id.place());
        Some(removed)
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.users.is_empty()
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
                    if queue.put(delivery.from, delivery.packet, delivery.flags) {
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
        for place in self.waiting.drain(..) {
            if let Some(queue) = at(&mut self.list, place) {
                queue.deliver(exits, now);
                queue.press(&mut self.pressed, now);
            }
        }
        self.hold_back(now);
        exits.free_dropped();
    }

    /// Those that have nearly filled the rings of others wait for them.
    fn hold_back(&mut self, now: u64) {
        for (from, to) in self.pressed.drain(..) {
            let pace = find(&mut self.list, to).map(|queue| queue.pace().clone());
            if let (Some(queue), Some(pace)) = (find(&mut self.list, from), pace) {
                let foreign = !queue.pace().is_same(&pace);
                queue.pressure.begin(to, foreign, now);
            }
        }
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
        exits.deliveries.of_stacks = true;
        let mut entering = sent.drain(..);
        while graph.admit(vector, exits, |_| entering.next()) > 0 {
            graph.run(vector, exits, now);
            self.deliver(exits, now);
        }
        exits.deliveries.of_stacks = false;
        drop(entering);
        self.sent = sent;
        for (user, place) in self.looked.drain(..) {
            if let Some(queue) = at(&mut self.list, place) {
                let was_fined = queue.is_fined();
                self.users.charge(user, queue.settle());
                if queue.is_fined() != was_fined {
                    self.users.judge(user, place, !was_fined);
                }
            }
        }
        found
    }

    /// Collects what stacks have sent. Gives how much there was. `moment`: TSC cycles, and whether the worker is busy.
    fn collect(&mut self, moment: (u64, bool)) -> usize {
        let Self { list, users, looked, sent, looks_at_all, long, .. } = self;
        users.visit(std::mem::take(looks_at_all), |user, place, spare| {
            looked.push((user, place));
            let is_waiting = at(list, place).is_some_and(|queue| queue.pressure.whom().is_some());
            if is_waiting && waits(list, place, moment.0) {
                return 0;
            }
            match at(list, place) {
                Some(queue) => queue.send(sent, spare, moment, *long),
                None => 0,
            }
        })
    }

    /// Gives whether all that happens to them wakes the worker: who waits for room in another one's ring is not told of it.
    pub(crate) fn arm(&mut self) -> bool {
        self.looks_at_all = true;
        let arm = |queue: &mut Box<StackQueue>| queue.arm() && queue.pressure.whom().is_none();
        self.list.iter_mut().flatten().fold(true, |armed, queue| arm(queue) & armed)
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.list.iter().flatten().filter_map(|queue| queue.event())
    }

    pub(crate) fn disarm(&mut self) {
        self.list.iter_mut().flatten().for_each(|queue| queue.disarm());
    }
}

/// Whether a stack that waits for another one goes on waiting.
#[cold]
fn waits(list: &mut [Option<Box<StackQueue>>], place: u16, now: u64) -> bool {
    let Some(to) = at(list, place).and_then(|queue| queue.pressure.whom()) else { return false };
    // One that has gone keeps nobody waiting.
    let room = find(list, to).is_none_or(|queue| queue.has_room());
    let look = at(list, place).map_or(Look::Over, |queue| queue.pressure.look(room, now));
    if look == Look::InVain {
        find(list, to).into_iter().for_each(|queue| queue.was_awaited_in_vain(now));
    }
    look == Look::Waits
}

#[inline]
fn at(list: &mut [Option<Box<StackQueue>>], place: u16) -> Option<&mut StackQueue> {
    list.get_mut(usize::from(place))?.as_deref_mut()
}

fn find(list: &mut [Option<Box<StackQueue>>], id: StackId) -> Option<&mut StackQueue> {
    at(list, id.place()).filter(|queue| queue.id == id)
}
