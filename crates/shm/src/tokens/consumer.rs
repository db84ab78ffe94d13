//! The side that empties slots.

use super::{HOLDS, Message, Queue, TAKING, TokenProducer, WORDS};
use crate::sync::{Arc, Ordering};

/// What the consumer finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A message.
    Message(Message),
    /// The next message is being written by this producer, or one that the producer may stand for.
    Waits(usize),
    /// No token is taken that was not taken out.
    Empty,
}

/// The queue's one reader.
#[derive(Debug)]
pub struct TokenConsumer {
    queue: Arc<Queue>,
    /// The next token to be taken out.
    head: u32,
    skipped: u64,
}

impl TokenConsumer {
    pub(super) fn new(queue: Arc<Queue>) -> Self {
        Self { queue, head: 0, skipped: 0 }
    }

    /// A producer for one thread. `None`: all desks are taken.
    #[must_use]
    pub fn producer(&self) -> Option<TokenProducer> {
        let desk = self.queue.take_desk()?;
        Some(TokenProducer::new(Arc::clone(&self.queue), desk))
    }

    /// Forgets a producer whose thread ended without dropping it; its desk is given out again. Skip its gap first: until
    /// [`next`](Self::next) says [`Next::Empty`] or gives a later message.
    pub fn bury(&self, producer: usize) {
        if producer < self.queue.desks.len() {
            self.queue.clear_desk(producer);
        }
    }

    /// Gaps of dead producers that were skipped.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Takes the next message out. `lives` says whether a producer's thread can still run: it is asked only about those
    /// that may owe the next message, and only while that is missing.
    pub fn next(&mut self, lives: impl Fn(usize) -> bool) -> Next {
        loop {
            if let Some(message) = self.take() {
                return Next::Message(message);
            }
            // Acquire: the desk of whoever took the token is seen as it was before, or later.
            if self.queue.tail.0.load(Ordering::Acquire) == self.head {
                return Next::Empty;
            }
            let wanted = HOLDS | u64::from(self.head);
            for desk in 0..self.queue.desks.len() {
                // Acquire: if it is idle again, the mark is there.
                let word = self.queue.desk(desk).load(Ordering::Acquire);
                if (word == wanted || word == TAKING) && lives(desk) {
                    // It may have published meanwhile.
                    return self.take().map_or(Next::Waits(desk), Next::Message);
                }
            }
            if let Some(message) = self.take() {
                return Next::Message(message);
            }
            // Whoever took this token announced it before, and was not among the living.
            self.skipped += 1;
            self.advance();
        }
    }

    /// The message of the next token, if it is there.
    fn take(&mut self) -> Option<Message> {
        let slot = self.queue.slot(self.head);
        // Acquire: with the mark comes the message.
        if slot.mark.load(Ordering::Acquire) != self.head {
            return None;
        }
        let mut message = [0; WORDS];
        for (target, word) in message.iter_mut().zip(&slot.words) {
            *target = word.load(Ordering::Relaxed);
        }
        self.advance();
        Some(message)
    }

    fn advance(&mut self) {
        self.head = self.head.wrapping_add(1);
        // Release: this slot was read.
        self.queue.head.0.store(self.head, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
impl TokenConsumer {
    /// As if so many messages had gone through.
    pub(super) fn start_at(&mut self, token: u32) {
        self.head = token;
        self.queue.head.0.store(token, Ordering::Relaxed);
        self.queue.tail.0.store(token, Ordering::Relaxed);
        let slots = self.queue.slots.len() as u32;
        for ahead in 0..slots {
            let token = token.wrapping_add(ahead);
            self.queue.slot(token).mark.store(token.wrapping_sub(slots), Ordering::Relaxed);
        }
    }
}
