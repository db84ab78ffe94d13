//! The ways in which packets leave the graph, and where nodes put packets that they made.

use std::collections::VecDeque;
use std::sync::Arc;

use dpdk::{Buffer, BufferPool, SharedBuffer};

use crate::capture::Tap;
use crate::deliveries::{Deliveries, Delivery, Packet, Refusal};
use crate::{
    CAPACITY, Counters, Entry, HandoffSender, Output, PortId, Punt, Reason, Room, StackId,
    TransmitPath,
};

/// Packets made by nodes that wait to enter the graph: a bound, so that a node can't flood itself.
const ORIGINATED_LIMIT: usize = 4096;

/// Transmit buffers, the ring to the control thread, drops and originated packets of one worker.
pub struct Exits {
    /// Per-port transmit buffers.
    pub output: Output,
    /// This worker's counters.
    pub counters: Arc<Counters>,
    /// A receive queue had more than was taken in the last round.
    pub(crate) busy: bool,
    punts: HandoffSender<Punt>,
    last_cause: u16,
    originated: VecDeque<Entry>,
    dropped: Box<Dropped>,
    freed: u64,
    pub(crate) deliveries: Deliveries,
}

/// Dropped packets, to be freed with one call.
struct Dropped {
    buffers: [Option<Buffer>; CAPACITY],
    /// None: counted, and captured, when it was refused.
    reasons: [Option<Reason>; CAPACITY],
    len: usize,
}

impl Exits {
    /// Exits with no transmit path yet; packets for the control thread go to `punts`.
    #[must_use]
    pub fn new(output: Output, counters: Arc<Counters>, punts: HandoffSender<Punt>) -> Self {
        let dropped =
            Dropped { buffers: [const { None }; CAPACITY], reasons: [None; CAPACITY], len: 0 };
        Self {
            output,
            counters,
            busy: false,
            punts,
            last_cause: 0,
            originated: VecDeque::new(),
            dropped: Box::new(dropped),
            freed: 0,
            deliveries: Deliveries::default(),
        }
    }

    /// Gives the port a transmit path, or takes it away (`None`); buffered packets are sent first.
    pub fn set_path(&mut self, port: PortId, path: Option<TransmitPath>) -> Option<TransmitPath> {
        self.output.set_path(port, path, &self.counters)
    }

    /// Puts the packet into the transmit buffer of `port`. `now`: TSC cycles.
    #[inline(always)]
    pub fn transmit(&mut self, buffer: Buffer, port: PortId, now: u64) {
        if let Err(buffer) = self.output.push(port, buffer, now, &self.counters) {
            self.drop(buffer, Reason::PortDown);
        }
    }

    /// Where a packet for `port` can be put without anything else to do. `None`: [`Self::transmit`] has something to do.
    #[inline(always)]
    pub fn room(&mut self, port: PortId) -> Option<Room<'_>> {
        self.output.room(port)
    }

    /// Puts packets into the transmit buffer of `port`, all of them.
    pub fn transmit_all(&mut self, burst: &mut [Option<Buffer>], port: PortId, now: u64) {
        if !self.output.push_all(port, burst, now, &self.counters) {
            self.drop_left(burst);
        }
    }

    /// The same of packets that leave by a port each.
    pub fn transmit_each(&mut self, burst: &mut [Option<Buffer>], ports: &[PortId], now: u64) {
        if !self.output.push_each(ports, burst, now, &self.counters) {
            self.drop_left(burst);
        }
    }

    /// Drops the packets that no port took.
    #[cold]
    fn drop_left(&mut self, burst: &mut [Option<Buffer>]) {
        for buffer in burst.iter_mut().filter_map(Option::take) {
            self.drop(buffer, Reason::PortDown);
        }
    }

    /// Sends packets by `port`, those before them first. Without a copy where this worker has a transmit queue of the
    /// port whose driver can (`mapped`: the memory is mapped for devices) and nobody captures, else in buffers of
    /// `copies`. What is left in `packets` is the caller's.
    pub(crate) fn transmit_shared(
        &mut self,
        packets: &mut [Option<SharedBuffer>],
        (port, mapped): (PortId, bool),
        copies: &BufferPool,
        now: u64,
    ) {
        if self.output.sends_shared(port, mapped) {
            return self.output.push_shared(port, packets, &self.counters);
        }
        for buffer in packets.iter().flatten() {
            match buffer.copy(copies) {
                Some(copy) => self.transmit(copy, port, now),
                None => self.counters.drops[Reason::NoBuffer as usize].add(1),
            }
        }
    }

    /// Frees a packet, later and in bulk, and counts why.
    pub fn drop(&mut self, buffer: Buffer, reason: Reason) {
        self.counters.drops[reason as usize].add(1);
        self.free_later(buffer, Some(reason));
    }

    /// Frees a packet, later and in bulk, that was counted when it was refused.
    pub(crate) fn free(&mut self, buffer: Buffer) {
        self.freed += 1;
        self.free_later(buffer, None);
    }

    fn free_later(&mut self, buffer: Buffer, reason: Option<Reason>) {
        let at = self.dropped.len % CAPACITY;
        self.dropped.reasons[at] = reason;
        // The place is empty. Forgetting the nothing in it spares a look whether to drop it.
        std::mem::forget(self.dropped.buffers[at].replace(buffer));
        self.dropped.len = at + 1;
        if at + 1 == CAPACITY {
            self.free_dropped();
        }
    }

    /// Counts a drop of a packet that lives on as the quotation in an ICMP error.
    pub fn refuse(&mut self, packet: &Option<Buffer>, reason: Reason) {
        self.counters.drops[reason as usize].add(1);
        if let Some(tap) = &mut self.output.tap {
            tap.drops(std::slice::from_ref(packet), &[Some(reason)]);
        }
    }

    /// A packet from its IP header on (`front` bytes into the buffer) for a stack: with others of this vector it goes into
    /// the stack's ring when the vector is done. `flags`: for [`Meta`](shm::Meta).
    pub fn deliver(&mut self, to: StackId, buffer: Buffer, front: u16, flags: u8) {
        self.deliver_of(None, to, Packet::Buffer(buffer, front), flags);
    }

    /// The same for an IP packet that may be longer than a buffer.
    pub fn deliver_long(&mut self, to: StackId, packet: Vec<u8>, flags: u8) {
        self.deliver_of(None, to, Packet::Long(packet), flags);
    }

    /// The same, said of whom it comes: from a stack, or not.
    pub(crate) fn deliver_of(
        &mut self,
        from: Option<StackId>,
        to: StackId,
        packet: Packet,
        flags: u8,
    ) {
        self.deliveries.push(Delivery { from, to, packet, flags });
    }

    /// Drops a packet that a stack has sent and must not send. `bytes`: its length from the IP header on.
    pub fn refuse_of(&mut self, from: StackId, buffer: Buffer, bytes: usize, reason: Reason) {
        self.deliveries.refusals.push(Refusal { from, reason, bytes });
        self.drop(buffer, reason);
    }

    /// Frees what was dropped.
    #[inline]
    pub(crate) fn free_dropped(&mut self) {
        if self.dropped.len > 0 {
            self.free_all_dropped();
        }
    }

    #[inline(never)]
    fn free_all_dropped(&mut self) {
        let Dropped { buffers, reasons, len } = &mut *self.dropped;
        let buffers = &mut buffers[..*len];
        if let Some(tap) = &mut self.output.tap {
            tap.drops(buffers, reasons);
        }
        dpdk::free_bulk(buffers);
        *len = 0;
    }

    pub(crate) fn punt(&mut self, punt: Punt) {
        let cause = punt.cause;
        match self.punts.push(punt) {
            Ok(()) => {
                self.last_cause = cause;
                self.counters.punts.add(1);
            }
            Err(punt) => self.drop(punt.packet.buffer, Reason::PuntFull),
        }
    }

    /// How many were freed by [`free`](Self::free) so far.
    pub(crate) fn freed(&self) -> u64 {
        self.freed
    }

    /// The cause of the latest punt.
    pub(crate) fn last_cause(&self) -> u16 {
        self.last_cause
    }

    /// Wakes the control thread if packets were punted and it sleeps: once per round.
    #[inline]
    pub(crate) fn notify_control(&mut self) {
        self.punts.notify();
    }

    pub(crate) fn originate(&mut self, entry: Entry) {
        if self.originated.len() < ORIGINATED_LIMIT {
            self.originated.push_back(entry);
        } else {
            self.drop(entry.packet.buffer, Reason::NoRoom);
        }
    }

    pub(crate) fn next_originated(&mut self) -> Option<Entry> {
        self.originated.pop_front()
    }

    pub(crate) fn has_originated(&self) -> bool {
        !self.originated.is_empty()
    }

    /// Starts or ends the capture; returns the tap that was there.
    pub(crate) fn set_tap(&mut self, tap: Option<Box<Tap>>) -> Option<Box<Tap>> {
        std::mem::replace(&mut self.output.tap, tap)
    }
}
