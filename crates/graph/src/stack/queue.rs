//! The pair of rings of one stack on one worker.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use dpdk::{Buffer, BufferPool};
use shm::Meta;
use wire::EtherType;

use super::backpressure::{Backpressure, NEARLY_FULL, ROOMY, after_vain};
use super::bounds;
use crate::client::{Bells, Delivery, Share};
use crate::deliveries::Packet;
use crate::{
    ClientChannel, ClientPace, ClientWake, Entry, Exits, Handoff, InterfaceId, NodeId, Reason,
    StackCounters, StackId,
};

/// Room for an Ethernet header ahead of what a stack sends, so that it looks as any packet does: bytes.
const LINK: usize = 14;

/// Bytes of a buffer at most: DPDK counts them in 16 bits.
const LONGEST: usize = u16::MAX as usize;

/// What a stack needs on a worker.
#[derive(Debug)]
pub struct StackSetup {
    /// Its rings.
    pub channel: ClientChannel,
    /// Rung by the stack's process when this worker sleeps.
    pub wake: ClientWake,
    /// How often its user is rung by this worker, and which user that is.
    pub pace: ClientPace,
    /// Where what it sends gets its buffers.
    pub pool: BufferPool,
    /// Where what it sends enters the graph: a node that reads in `Vector::stack` who sent it, and judges.
    pub entry: NodeId,
    /// Counted for it, on this worker.
    pub counters: Arc<StackCounters>,
}

/// A packet on its way to a stack.
#[derive(Debug, Clone, Copy)]
struct About {
    /// Bytes ahead of the IP header.
    front: u16,
    flags: u8,
}

/// A stack's queues on one worker. Given back when the stack is removed, to be dropped by another thread.
#[derive(Debug)]
pub struct StackQueue {
    pub(super) id: StackId,
    setup: StackSetup,
    share: Share,
    bells: Bells,
    /// Packets to be delivered together, and what is to be known of each.
    waiting: Vec<Option<Buffer>>,
    about: Vec<About>,
    /// Their places, in order.
    places: Vec<u16>,
    /// Packets longer than a buffer.
    long: Vec<(Vec<u8>, u8)>,
    /// Stacks that have sent some of them.
    sources: Vec<StackId>,
    /// Nobody waits for this one until then: TSC cycles.
    unawaited_until: u64,
    /// Whom it waits for.
    pub(super) pressure: Backpressure,
    /// Packets that were delivered, to be freed together.
    taken: Vec<Option<Buffer>>,
    scratch: Vec<u8>,
    /// Packets and bytes that it sent and that are being judged.
    sent: (u64, u64),
    /// What its user owes for those that must not be sent, and for marks that make no sense: slots.
    fine: i32,
    /// Packets that it has to send rightly before it is like others again.
    probation: i32,
}

impl StackQueue {
    pub(super) fn new(id: StackId, setup: StackSetup) -> Self {
        let bells = Bells::new(setup.pace.clone());
        Self {
            id,
            setup,
            share: Share::default(),
            bells,
            waiting: Vec::new(),
            about: Vec::new(),
            places: Vec::new(),
            long: Vec::new(),
            sources: Vec::new(),
            unawaited_until: 0,
            pressure: Backpressure::new(dpdk::tsc_hz()),
            taken: Vec::new(),
            scratch: Vec::new(),
            sent: (0, 0),
            fine: 0,
            probation: 0,
        }
    }

    /// Its user's pace.
    pub(super) fn pace(&self) -> &ClientPace {
        &self.setup.pace
    }

    /// Whether it has sent what it must not, and not enough since that it may.
    pub(super) fn is_fined(&self) -> bool {
        self.probation > 0
    }

    /// The packet waits for others; `from` has sent it. Gives whether it is the first one.
    pub(super) fn put(&mut self, from: Option<StackId>, packet: Packet, flags: u8) -> bool {
        let first = self.is_idle();
        if from.is_some() && self.sources.last() != from.as_ref() {
            self.sources.extend(from);
        }
        match packet {
            Packet::Buffer(buffer, front) => {
                self.places.push(self.waiting.len() as u16);
                self.waiting.push(Some(buffer));
                self.about.push(About { front, flags });
            }
            Packet::Long(packet) => self.long.push((packet, flags)),
        }
        first
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.long.is_empty()
    }

    /// Puts what waits into the ring.
    pub(super) fn deliver(&mut self, exits: &mut Exits, now: u64) {
        let Self { setup, waiting, about, places, taken, scratch, .. } = self;
        let counters = &setup.counters.queues;
        let of = |at: u16| {
            let About { front, flags } = about[usize::from(at)];
            (usize::from(front), Meta { port: 0, flags })
        };
        let full = Reason::StackFull;
        let mut delivery = Delivery { counters, full, taken: Some(taken), exits, scratch };
        delivery.run(&mut setup.channel, waiting, places, of);
        for (packet, flags) in self.long.drain(..) {
            if setup.channel.push(&packet, Meta { port: 0, flags }) {
                counters.delivered.add(1);
                counters.delivered_bytes.add(packet.len() as u64);
            } else {
                counters.full.add(1);
                exits.counters.drops[Reason::StackFull as usize].add(1);
            }
        }
        self.share.earn(taken.len());
        dpdk::free_bulk(taken);
        taken.clear();
        waiting.clear();
        about.clear();
        places.clear();
        self.ring(now, exits.busy);
    }

    /// Those that have sent what was delivered last and nearly fills the ring, each with this one.
    pub(super) fn press(&mut self, pressed: &mut Vec<(StackId, StackId)>, now: u64) {
        if self.sources.is_empty() {
            return;
        }
        let is_awaited = now >= self.unawaited_until && !self.setup.channel.has_free(NEARLY_FULL);
        let (id, sources) = (self.id, self.sources.drain(..));
        pressed.extend(sources.filter(|_| is_awaited).map(|from| (from, id)));
    }

    /// Whether there is room again for who has waited for that.
    pub(super) fn has_room(&self) -> bool {
        self.setup.channel.has_free(ROOMY)
    }

    /// It was waited for in vain: nobody does so again for a while.
    pub(super) fn was_awaited_in_vain(&mut self, now: u64) {
        self.unawaited_until = after_vain(now, dpdk::tsc_hz());
    }

    fn ring(&mut self, now: u64, busy: bool) {
        self.bells.ring_due(std::slice::from_mut(&mut self.setup.channel), now, busy);
    }

    /// Takes what the stack has sent, as much as its share allows. Gives how much there was.
    pub(super) fn send(
        &mut self,
        all: &mut Vec<Entry>,
        spare: &mut i32,
        (now, busy): (u64, bool),
        long: Option<BufferPool>,
    ) -> usize {
        let Self { id, setup, share, sent, fine, .. } = self;
        let StackSetup { channel, pool, entry, counters, .. } = setup;
        let (found, used) = channel.drain(share.allowance(spare), |channel, taken| {
            let length = LINK + taken.length();
            let long = long.filter(|_| length > usize::from(pool.data_room()));
            // The longest packets leave no room for what goes ahead of others.
            let link: &[u8] = if length > LONGEST { &[] } else { &[0; LINK] };
            let buffer = match &long {
                Some(long) => channel.copy_long(link, taken, long, &counters.queues),
                None => channel.copy_behind(&[0; LINK], taken, pool, &counters.queues),
            };
            let Some(buffer) = buffer else { return };
            let (interface, network) = (InterfaceId::NONE, link.len() as u16);
            let buffer = labelled(buffer, network);
            let stack = Some(*id);
            let packet = Handoff { interface, network, stack, ..Handoff::of(buffer) };
            sent.0 += 1;
            sent.1 += taken.length() as u64;
            all.push(Entry { node: *entry, packet });
        });
        share.spend(used, spare);
        if channel.settle(&counters.queues) > 0 {
            // Who writes such marks pays for all that was looked at.
            *fine = fine.saturating_add(used.saturating_mul(bounds::FINE));
        }
        self.ring(now, busy);
        // The worker does not sleep before all is paid.
        found + usize::from(self.share.is_in_debt())
    }

    /// One of the packets that it sent must not be sent.
    pub(super) fn refuse(&mut self, reason: Reason, bytes: usize) {
        self.setup.counters.refuse(reason);
        self.sent.0 = self.sent.0.saturating_sub(1);
        self.sent.1 = self.sent.1.saturating_sub(bytes as u64);
        self.fine = self.fine.saturating_add(bounds::fine(bytes));
    }

    /// What it sent was judged. Gives what its user owes for it: slots.
    pub(super) fn settle(&mut self) -> i32 {
        let (packets, bytes) = std::mem::take(&mut self.sent);
        let fine = std::mem::take(&mut self.fine);
        if packets > 0 {
            self.setup.counters.queues.sent.add(packets);
            self.setup.counters.queues.sent_bytes.add(bytes);
        }
        let probation = self.probation.saturating_add(fine);
        self.probation = probation.saturating_sub_unsigned(packets as u32).clamp(0, bounds::MOST);
        self.share.forfeit(fine);
        fine
    }

    pub(super) fn arm(&mut self) -> bool {
        self.setup.channel.arm();
        self.setup.wake.arm(dpdk::tsc())
    }

    pub(super) fn event(&self) -> Option<BorrowedFd<'_>> {
        self.setup.wake.event()
    }

    pub(super) fn disarm(&mut self) {
        self.setup.channel.disarm();
        self.setup.wake.clear(dpdk::tsc());
    }
}

/// Writes the EtherType that the packet's version asks for, so that filters of traces and captures understand it.
fn labelled(mut buffer: Buffer, network: u16) -> Buffer {
    if usize::from(network) < LINK {
        return buffer;
    }
    let frame = buffer.data_mut();
    let six = frame.get(LINK).is_some_and(|byte| byte >> 4 == 6);
    let kind = if six { EtherType::IPV6 } else { EtherType::IPV4 };
    if let Some(label) = frame.get_mut(LINK - 2..LINK) {
        label.copy_from_slice(&kind.0.to_be_bytes());
    }
    buffer
}
