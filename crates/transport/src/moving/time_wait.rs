//! What is left of connections in TIME-WAIT, on its way to another stack: 66 bytes each.

use super::VERSION;
use crate::carried::{Carried, ImportError, Reader, Writer};
use crate::ends::Ends;
use crate::fifo::Buffers;
use crate::options::SECOND;
use crate::stack::Stack;
use crate::time_wait::Waiting;

/// One that goes elsewhere waits no longer than 2 MSL, whatever is said: ns (RFC 9293 3.4.2, Linux's `TCP_TIMEWAIT_LEN`).
const LONGEST: u64 = 60 * SECOND;

/// Bytes of each.
const BYTES: usize = 66;

/// A connection in TIME-WAIT that nobody holds any more, outside of any stack.
#[derive(Debug, Clone, Copy)]
pub struct TimeWait {
    pub(crate) waiting: Waiting,
    /// What its time stamps are ahead of the clock.
    pub(crate) offset: u32,
}

carried!(TimeWait { waiting, offset @ stamp });

impl TimeWait {
    /// What so many take as bytes.
    #[must_use]
    pub const fn bytes(count: usize) -> usize {
        size_of::<u16>() + count * BYTES
    }

    /// Its addresses and ports.
    #[must_use]
    pub fn ends(&self) -> Ends {
        self.waiting.ends()
    }

    /// How long it still waits: ns.
    #[must_use]
    pub fn left(&self, now: u64) -> u64 {
        self.waiting.left(now)
    }

    /// The same, but it waits no longer than [`LONGEST`] from `now` on: ns.
    fn bounded(self, now: u64) -> Self {
        Self { waiting: self.waiting.bounded(now, LONGEST), ..self }
    }

    /// All of them as bytes, for a stack with another clock. `now`: ns.
    #[must_use]
    pub fn write(all: &[Self], now: u64) -> Vec<u8> {
        let mut to = Writer::new(now);
        VERSION.put(&mut to);
        all.iter().for_each(|one| one.put(&mut to));
        to.bytes
    }

    /// Reads what [`write`](Self::write) gave. `now`: ns by the reader's clock; `age`: how long ago they were written, ns.
    ///
    /// # Errors
    /// [`ImportError`]. The bytes may come from anybody.
    pub fn read(bytes: &[u8], now: u64, age: u64) -> Result<Vec<Self>, ImportError> {
        let mut from = Reader::new(bytes, now, age);
        match u16::take(&mut from)? {
            VERSION => {}
            other => return Err(ImportError::Version(other)),
        }
        let mut all = Vec::with_capacity(from.left() / BYTES);
        while from.left() > 0 {
            let one = Self::take(&mut from)?;
            let ends = one.ends();
            if !ends.is_possible() || ends.local.is_ipv4() != ends.remote.is_ipv4() {
                return Err(ImportError::Value("ends"));
            }
            all.push(one.bounded(now));
        }
        Ok(all)
    }
}

impl<B: Buffers> Stack<B> {
    /// Takes connections out that are in TIME-WAIT and that nobody holds any more, the oldest first, `most` at most. None waits
    /// longer than 60 s from now on. What comes for them is answered by a reset unless [`hold`](Self::hold) is called.
    pub fn export_time_waits(&mut self, now: u64, most: usize) -> Vec<TimeWait> {
        self.now = self.now.max(now);
        let now = self.now;
        let all = std::iter::from_fn(|| self.take_oldest());
        let left = all.filter(|(waiting, _)| !waiting.is_over(now)).take(most);
        left.map(|(waiting, offset)| TimeWait { waiting, offset }.bounded(now)).collect()
    }

    /// Takes one in that [`export_time_waits`](Self::export_time_waits) gave, of whichever stack, in the place of one between
    /// the same ends. `false`: it is over, a connection between these ends goes on here, or there is no room.
    pub fn import_time_wait(&mut self, now: u64, one: &TimeWait) -> bool {
        self.now = self.now.max(now);
        self.take_in(one.waiting, one.offset)
    }
}
