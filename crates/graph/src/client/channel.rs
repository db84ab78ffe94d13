//! The two rings of one channel of a client on one worker.

use std::sync::Arc;

use dpdk::{Buffer, BufferPool};
use shm::{Consumer, Doorbell, Meta, Producer, Taken};

use super::ClientCounters;

/// Shortest time between two rings of a doorbell: 1/50,000 of a second, far below what a wake-up takes.
const GAP: u64 = 50_000;

/// A ring to the client and one from it.
#[derive(Debug)]
pub struct ClientChannel {
    to: Producer,
    from: Consumer,
    bell: Arc<Doorbell>,
    /// TSC cycles between two rings at least.
    gap: u64,
    /// When the bell may be rung again: TSC cycles.
    quiet_until: u64,
    /// Something was pushed since it was last rung, for a client that waits for packets.
    pushed: bool,
    /// Something was taken since, for one that waits for room.
    released: bool,
    malformed: u64,
}

impl ClientChannel {
    /// The rings; `bell` is the channel's, rung by every worker.
    #[must_use]
    pub fn new(to: Producer, from: Consumer, bell: Arc<Doorbell>) -> Self {
        let gap = dpdk::tsc_hz() / GAP;
        Self { to, from, bell, gap, quiet_until: 0, pushed: false, released: false, malformed: 0 }
    }

    /// Gives whether there was room.
    #[inline]
    pub(super) fn push(&mut self, packet: &[u8], meta: Meta) -> bool {
        let sent = self.to.push(packet, meta).is_ok();
        self.pushed |= sent;
        sent
    }

    /// Rings what waits to be rung, if the time has come; else it is tried again in the next round.
    #[inline]
    pub(super) fn ring_due(&mut self, now: u64) {
        if (self.pushed || self.released) && now.wrapping_sub(self.quiet_until) as i64 >= 0 {
            self.ring();
            self.quiet_until = now.wrapping_add(self.gap);
        }
    }

    fn ring(&mut self) {
        if std::mem::take(&mut self.pushed) {
            self.bell.ring(self.to.consumer_sleeps());
        }
        if std::mem::take(&mut self.released) {
            self.bell.ring(self.from.producer_sleeps());
        }
    }

    /// The client's next packet in a buffer of ours. The inner `None`: it found no buffer, or is too long
    /// for one.
    #[inline]
    pub(super) fn take(
        &mut self,
        pool: &BufferPool,
        counters: &ClientCounters,
    ) -> Option<(Option<Buffer>, Meta)> {
        let taken = self.next()?;
        let meta = taken.meta();
        let buffer = self.copy(&taken, pool, counters);
        self.finish(taken);
        Some((buffer, meta))
    }

    /// The next slot of the ring from the client, to be given back by [`finish`](Self::finish).
    #[inline]
    pub(super) fn next(&mut self) -> Option<Taken> {
        self.from.next()
    }

    /// Its bytes, as many as fit; gives how many.
    #[inline]
    pub(super) fn read(&self, taken: &Taken, target: &mut [u8]) -> usize {
        self.from.copy(taken, target)
    }

    /// Its bytes in a buffer of ours. `None`: there was none, or they are too many for one.
    #[inline]
    pub(super) fn copy(
        &self,
        taken: &Taken,
        pool: &BufferPool,
        counters: &ClientCounters,
    ) -> Option<Buffer> {
        let buffer = pool.alloc().and_then(|mut buffer| {
            let room = buffer.append(taken.length())?;
            (self.from.copy(taken, room) == room.len()).then_some(buffer)
        });
        if buffer.is_none() {
            counters.no_buffer.add(1);
        }
        buffer
    }

    /// Gives the slot back to the client.
    #[inline]
    pub(super) fn finish(&mut self, taken: Taken) {
        self.from.release(taken);
        self.released = true;
    }

    /// After a burst was taken.
    #[inline]
    pub(super) fn settle(&mut self, counters: &ClientCounters) {
        let malformed = self.from.malformed();
        if malformed != self.malformed {
            counters.malformed.add(malformed - self.malformed);
            self.malformed = malformed;
        }
    }

    pub(crate) fn arm(&mut self) {
        self.ring();
        self.from.sleeps().announce();
    }

    pub(crate) fn disarm(&mut self) {
        self.from.sleeps().withdraw();
    }
}
