//! The two rings of one channel of a client on one worker.

use dpdk::{Buffer, BufferPool};
use shm::attach::flag;
use shm::{Consumer, Meta, Producer, Taken};

use super::runt::padded;
use super::{ClientCounters, ClientPorts, Errand};
use crate::PortId;

/// A ring to the client and one from it.
#[derive(Debug)]
pub struct ClientChannel {
    to: Producer,
    from: Consumer,
    bell: Errand,
    /// Something was pushed since it was last rung, for a client that waits for packets.
    pushed: bool,
    /// Something was taken since, for one that waits for room.
    released: bool,
    malformed: u64,
}

impl ClientChannel {
    /// The rings; `bell` rings the channel's client, for every worker.
    #[must_use]
    pub fn new(to: Producer, from: Consumer, bell: Errand) -> Self {
        Self { to, from, bell, pushed: false, released: false, malformed: 0 }
    }

    /// Gives whether there was room.
    #[inline]
    pub(crate) fn push(&mut self, packet: &[u8], meta: Meta) -> bool {
        let sent = self.to.push(packet, meta).is_ok();
        self.pushed |= sent;
        sent
    }

    /// Puts packets into the ring, as many as find room; one without bytes ends the burst. Gives how many went.
    #[inline]
    pub(crate) fn push_burst<'p>(
        &mut self,
        count: usize,
        packet: impl Fn(usize) -> (&'p [u8], Meta),
    ) -> usize {
        let sent = self.to.push_burst(count, packet);
        self.pushed |= sent > 0;
        sent
    }

    /// Whether a packet finds room.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.to.has_room()
    }

    /// Whether one part in so many of the ring to the client is free.
    #[inline]
    pub(crate) fn has_free(&self, part: u32) -> bool {
        self.to.has_free(self.to.slots() / part)
    }

    /// Rings if the client waits for what was done since. Gives whether that took a system call.
    #[inline]
    pub(crate) fn ring(&mut self) -> bool {
        let pushed = std::mem::take(&mut self.pushed) && self.bell.ring(self.to.consumer_sleeps());
        let released =
            std::mem::take(&mut self.released) && self.bell.ring(self.from.producer_sleeps());
        pushed | released
    }

    /// Slots that the client has filled and that were passed, so far.
    #[inline]
    pub(crate) fn passed(&self) -> u32 {
        self.from.passed()
    }

    /// The next slot of the ring from the client, to be given back by [`finish`](Self::finish).
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Taken> {
        self.from.next()
    }

    /// Its bytes, as many as fit; gives how many.
    #[inline]
    pub(crate) fn read(&self, taken: &Taken, target: &mut [u8]) -> usize {
        self.from.copy(taken, target)
    }

    /// The packet in a buffer of ours and the port that it names, counted as sent; `None`, and counted, when the client
    /// may not send it, or there is no buffer for it.
    #[inline]
    pub(crate) fn admit(
        &self,
        taken: &Taken,
        sends: &ClientPorts,
        pool: &BufferPool,
        counters: &ClientCounters,
    ) -> Option<(Buffer, PortId)> {
        // Before it is copied.
        let Some(port) = sends.admit(taken.meta().port, taken.length()) else {
            counters.refused.add(1);
            return None;
        };
        let buffer = self.copy(taken, pool, counters)?;
        counters.sent.add(1);
        counters.sent_bytes.add(buffer.len() as u64);
        let enters = taken.meta().flags & flag::GRAPH != 0;
        if enters { Some((buffer, port)) } else { Some((padded(buffer)?, port)) }
    }

    /// Its bytes in a buffer of ours. `None`: there was none, or they are too many for one.
    #[inline]
    fn copy(&self, taken: &Taken, pool: &BufferPool, counters: &ClientCounters) -> Option<Buffer> {
        self.copy_behind(&[], taken, pool, counters)
    }

    /// The same, behind a header.
    #[inline]
    pub(crate) fn copy_behind(
        &self,
        header: &[u8],
        taken: &Taken,
        pool: &BufferPool,
        counters: &ClientCounters,
    ) -> Option<Buffer> {
        let buffer = pool.alloc().and_then(|mut buffer| {
            if !header.is_empty() {
                buffer.append(header.len())?.copy_from_slice(header);
            }
            let room = buffer.append(taken.length())?;
            (self.from.copy(taken, room) == room.len()).then_some(buffer)
        });
        if buffer.is_none() {
            counters.no_buffer.add(1);
        }
        buffer
    }

    /// The same of a packet that is longer than most, in a buffer whose headroom it may need too.
    #[cold]
    pub(crate) fn copy_long(
        &self,
        header: &[u8],
        taken: &Taken,
        pool: &BufferPool,
        counters: &ClientCounters,
    ) -> Option<Buffer> {
        let whole = header.len() + taken.length();
        let ahead = whole.saturating_sub(pool.data_room().into());
        let buffer = pool.alloc().and_then(|mut buffer| {
            if ahead > 0 {
                buffer.prepend(ahead)?;
            }
            buffer.append(whole - ahead)?;
            let (front, room) = buffer.data_mut().split_at_mut_checked(header.len())?;
            front.copy_from_slice(header);
            (self.from.copy(taken, room) == room.len()).then_some(buffer)
        });
        if buffer.is_none() {
            counters.no_buffer.add(1);
        }
        buffer
    }

    /// Takes packets out and gives their slots back, up to a number of slots; one packet may take more. Gives how many
    /// packets and slots it took.
    #[inline]
    pub(crate) fn drain(
        &mut self,
        slots: i32,
        mut each: impl FnMut(&Self, &Taken),
    ) -> (usize, i32) {
        let before = self.passed();
        let (mut found, mut used) = (0, 0);
        while used < slots {
            let taken = self.next();
            used = self.passed().wrapping_sub(before) as i32;
            let Some(taken) = taken else { break };
            found += 1;
            each(self, &taken);
            self.finish(taken);
        }
        (found, used)
    }

    /// Gives the slot back to the client.
    #[inline]
    pub(crate) fn finish(&mut self, taken: Taken) {
        self.from.release(taken);
        self.released = true;
    }

    /// After a burst was taken. Gives how many of its packets made no sense.
    #[inline]
    pub(crate) fn settle(&mut self, counters: &ClientCounters) -> u64 {
        let more = self.from.malformed() - self.malformed;
        if more > 0 {
            counters.malformed.add(more);
            self.malformed += more;
        }
        more
    }

    pub(crate) fn arm(&mut self) {
        self.ring();
        self.from.sleeps().announce();
    }

    pub(crate) fn disarm(&mut self) {
        self.from.sleeps().withdraw();
    }
}
