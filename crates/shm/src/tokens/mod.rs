//! The token queue: control messages of many threads for one, in the order in which they took their places.
//!
//! A producer takes a token and, with it, a slot, in one atomic step; producers then fill their slots in parallel, and the
//! consumer takes them out in the order of the tokens. Nobody holds a lock, and no producer waits for another. Why the
//! order matters: with slots and order taken in two steps, as in a ring of slots with a queue of their numbers, messages
//! can be queued in another order than that of their slots, and a slot is used again while it is read.
//!
//! A producer that dies between taking its token and publishing its slot leaves a gap. It has announced before that it is
//! about to take one, so the consumer knows whose gap it may be: it skips it when none of those lives, and otherwise does
//! something else meanwhile ([`Next::Waits`]).
//!
//! It is for threads of one process, and lies in its memory: they share the tokens and the slots, so each could withhold or change
//! what the others say. Processes that do not trust each other have a [queue](crate::queue) with one producer for each pair, as a
//! process and its stack worker do. Where threads share more than the queue, and so take turns at a lock anyway, such a queue
//! behind that lock is enough: `docs/architecture.md`, 'Control messages'.

mod consumer;
mod producer;

use crate::sync::{Arc, AtomicU32, AtomicU64, Ordering};

pub use consumer::{Next, TokenConsumer};
pub use producer::{Full, TokenProducer};

/// Words of a message: with its mark a slot fills one cache line. A model looks at every word's every order.
pub const WORDS: usize = if cfg!(loom) { 2 } else { 15 };
/// A message.
pub type Message = [u32; WORDS];

/// What a producer's desk says: nothing is going on.
const IDLE: u64 = 0;
/// It may have taken a token that it has not written down.
const TAKING: u64 = 1;
/// It has taken the token in the lower half.
const HOLDS: u64 = 1 << 32;

#[derive(Debug)]
#[repr(align(64))]
struct Slot {
    /// The token whose message is here.
    mark: AtomicU32,
    words: [AtomicU32; WORDS],
}

/// On a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Line<T>(T);

#[derive(Debug)]
struct Queue {
    /// The next token.
    tail: Line<AtomicU32>,
    /// The next token to be taken out.
    head: Line<AtomicU32>,
    slots: Box<[Slot]>,
    /// What each producer is doing.
    desks: Box<[Line<AtomicU64>]>,
    /// Whether each desk has a producer.
    taken: Box<[AtomicU32]>,
}

impl Queue {
    fn slot(&self, token: u32) -> &Slot {
        let mask = self.slots.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "masked by a length that is a power of two")]
        &self.slots[token as usize & mask]
    }

    fn desk(&self, desk: usize) -> &AtomicU64 {
        #[expect(clippy::indexing_slicing, reason = "desks are numbered when they are given out")]
        &self.desks[desk].0
    }
}

/// Makes a queue of `slots` (rounded up to a power of two) for at most `producers` at a time; gives its consumer, which
/// gives out producers.
#[must_use]
pub fn queue(slots: usize, producers: usize) -> TokenConsumer {
    let slots = slots.clamp(1, 1 << 20).next_power_of_two() as u32;
    let slot = |place: u32| Slot {
        // A token that comes a lap before the first.
        mark: AtomicU32::new(place.wrapping_sub(slots)),
        words: std::array::from_fn(|_| AtomicU32::new(0)),
    };
    TokenConsumer::new(Arc::new(Queue {
        tail: Line(AtomicU32::new(0)),
        head: Line(AtomicU32::new(0)),
        slots: (0..slots).map(slot).collect(),
        desks: (0..producers).map(|_| Line(AtomicU64::new(IDLE))).collect(),
        taken: (0..producers).map(|_| AtomicU32::new(0)).collect(),
    }))
}

impl Queue {
    /// A desk for a producer.
    fn take_desk(&self) -> Option<usize> {
        let free = |taken: &AtomicU32| {
            taken.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        self.taken.iter().position(free)
    }

    /// Its producer is gone.
    fn clear_desk(&self, desk: usize) {
        // Release: who sees this desk idle sees the marks of all that its producer has published.
        self.desk(desk).store(IDLE, Ordering::Release);
        if let Some(taken) = self.taken.get(desk) {
            taken.store(0, Ordering::Release);
        }
    }
}

#[cfg(all(test, loom))]
mod model_tests;
#[cfg(all(test, not(loom)))]
mod tests;
