//! What a process and a stack worker share of each session: where its two byte FIFOs are, what can be done with it, and who
//! has to look at it.

use crate::fifo::{CHUNKS, Place};
use crate::segment::Region;
use crate::sleep::SleepWord;
use crate::sync::{AtomicU32, Ordering};

/// Bytes of a record: six cache lines. Each line is written by one side, but for words that both change in one step.
pub const RECORD: usize = size_of::<Record>();

/// A session's record. All zeros: there is none.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Record {
    /// Bytes for the process that were written.
    inward_tail: AtomicU32,
    /// Bytes for the peer that were read.
    outward_head: AtomicU32,
    /// What the worker says of the session.
    status: AtomicU32,
    /// What happened since the process has looked: bits of readiness.
    woken: AtomicU32,
    /// The worker waits for room for what has come.
    inward_waits: AtomicU32,
    /// The number of the beginning that the worker has come to last, of those that the process has numbered.
    epoch: AtomicU32,
    _worker: [AtomicU32; 10],
    /// Bytes for the process that were read.
    inward_head: AtomicU32,
    /// Bytes for the peer that were written.
    outward_tail: AtomicU32,
    /// What the process has done since the worker has looked.
    done: AtomicU32,
    /// The process waits for room for what it sends.
    outward_waits: AtomicU32,
    _process: [AtomicU32; 12],
    inward_table: [AtomicU32; CHUNKS],
    outward_table: [AtomicU32; CHUNKS],
}

impl Record {
    /// The FIFO from the worker to the process.
    #[must_use]
    pub fn inward(&self) -> Place<'_> {
        let Self { inward_head, inward_tail, inward_table, .. } = self;
        Place { head: inward_head, tail: inward_tail, table: inward_table }
    }

    /// The FIFO from the process to the worker.
    #[must_use]
    pub fn outward(&self) -> Place<'_> {
        let Self { outward_head, outward_tail, outward_table, .. } = self;
        Place { head: outward_head, tail: outward_tail, table: outward_table }
    }

    /// What the worker says of the session.
    #[inline]
    #[must_use]
    pub fn status(&self) -> u32 {
        self.status.load(Ordering::Acquire)
    }

    /// The worker says this from now on.
    pub fn say(&self, status: u32) {
        // Release: what was written to the FIFO before is seen.
        self.status.store(status, Ordering::Release);
    }

    /// Something has happened to the session. Gives whether the process is to be told: it has looked since it was told last.
    #[must_use]
    pub fn wake(&self, bits: u32) -> bool {
        self.woken.fetch_or(bits, Ordering::AcqRel) == 0
    }

    /// What has happened since this was asked last.
    #[must_use]
    pub fn woken(&self) -> u32 {
        self.woken.swap(0, Ordering::AcqRel)
    }

    /// The process has read or written. Gives whether the worker is to be told: it has looked since it was told last.
    #[inline]
    #[must_use]
    pub fn note(&self) -> bool {
        // One step always: a look at the word beforehand might miss that the worker has begun to look.
        self.done.swap(1, Ordering::AcqRel) == 0
    }

    /// The worker looks, whatever the process has done so far.
    pub fn look(&self) {
        let _ = self.done.swap(0, Ordering::AcqRel);
    }

    /// Whether the worker waits for room for what has come.
    #[must_use]
    pub fn inward_waits(&self) -> SleepWord<'_> {
        SleepWord(&self.inward_waits)
    }

    /// Whether the process waits for room for what it sends.
    #[must_use]
    pub fn outward_waits(&self) -> SleepWord<'_> {
        SleepWord(&self.outward_waits)
    }

    /// The number of the beginning that the worker has come to last, of those that the process has numbered.
    #[inline]
    #[must_use]
    pub fn epoch(&self) -> u32 {
        // Acquire: all else is of the session that has begun.
        self.epoch.load(Ordering::Acquire)
    }

    /// The worker has come to the beginning of this number.
    pub fn enter(&self, epoch: u32) {
        // Release: with the number comes what was cleared and said before.
        self.epoch.store(epoch, Ordering::Release);
    }

    /// Nothing has been read or written yet: done by the worker, before the process looks at the record.
    pub fn clear(&self) {
        let Self { inward_tail, outward_head, status, woken, inward_waits, .. } = self;
        let Self { inward_head, outward_tail, done, outward_waits, .. } = self;
        for word in [inward_tail, outward_head, status, woken, inward_waits] {
            word.store(0, Ordering::Relaxed);
        }
        for word in [inward_head, outward_tail, done, outward_waits] {
            word.store(0, Ordering::Relaxed);
        }
    }
}

/// All of a process's records.
#[derive(Debug, Clone)]
pub struct Records {
    region: Region,
    count: u32,
}

impl Records {
    /// `None`: the region is shorter than so many records.
    #[must_use]
    pub fn new(region: Region, count: u32) -> Option<Self> {
        let fits = region.length() >= Self::bytes(count);
        fits.then_some(Self { region, count })
    }

    /// Bytes of so many records.
    #[must_use]
    pub const fn bytes(count: u32) -> usize {
        count as usize * RECORD
    }

    /// Records.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// That of a session.
    #[inline]
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Record> {
        // SAFETY: within the region, for which `new` saw room; aligned as the region is, to a cache line; seen as atomics only.
        (number < self.count).then(|| unsafe {
            self.region.base().add(number as usize * RECORD).cast::<Record>().as_ref()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Segment;

    #[test]
    fn each_side_is_told_once_until_it_looks() {
        let segment = Arc::new(Segment::create("test", Records::bytes(4)).unwrap());
        let region = segment.region(0, segment.length()).unwrap();
        assert!(Records::new(region.clone(), 5).is_none());
        let records = Records::new(region, 4).unwrap();
        assert!(records.get(4).is_none() && RECORD == 384);
        let record = records.get(3).unwrap();
        assert!(record.wake(1) && !record.wake(4));
        assert_eq!((record.woken(), record.woken()), (5, 0));
        assert!(record.wake(2) && record.note() && !record.note());
        record.look();
        assert!(record.note());
        record.say(7);
        assert_eq!(record.status(), 7);
        record.clear();
        assert!(record.status() == 0 && record.woken() == 0 && record.note());
        record.enter(9);
        record.clear();
        assert_eq!(record.epoch(), 9, "of a beginning without a number");
        assert_eq!(records.get(2).unwrap().woken(), 0);
    }
}
