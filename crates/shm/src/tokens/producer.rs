//! The side that fills slots.

use super::{HOLDS, IDLE, Message, Queue, TAKING};
use crate::sync::{Arc, Ordering};

/// The consumer has not emptied enough slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the queue is full: its consumer has not kept up")]
pub struct Full;

/// One thread's way into the queue.
#[derive(Debug)]
pub struct TokenProducer {
    queue: Arc<Queue>,
    desk: usize,
}

impl TokenProducer {
    pub(super) fn new(queue: Arc<Queue>, desk: usize) -> Self {
        Self { queue, desk }
    }

    /// Its number, by which the consumer asks whether it lives.
    #[must_use]
    pub fn number(&self) -> usize {
        self.desk
    }

    /// Puts a message into the queue: behind those whose producers took their tokens before.
    ///
    /// # Errors
    /// [`Full`]: try again later.
    #[inline]
    pub fn push(&mut self, message: &Message) -> Result<(), Full> {
        let token = self.take()?;
        self.publish(token, message);
        Ok(())
    }

    /// Takes a token, and with it its slot.
    #[inline]
    pub(super) fn take(&mut self) -> Result<u32, Full> {
        let queue = &*self.queue;
        let desk = queue.desk(self.desk);
        // Before the token: release on the exchange below shows it to whoever sees the token taken. Release itself: who
        // sees it sees what was published before.
        desk.store(TAKING, Ordering::Release);
        let mut token = queue.tail.0.load(Ordering::Relaxed);
        loop {
            // Acquire: what the consumer read in the slot is over.
            let head = queue.head.0.load(Ordering::Acquire);
            if token.wrapping_sub(head) as usize >= queue.slots.len() {
                // The tail may be an old one.
                let tail = queue.tail.0.load(Ordering::Relaxed);
                if tail == token {
                    desk.store(IDLE, Ordering::Release);
                    return Err(Full);
                }
                token = tail;
                continue;
            }
            let next = token.wrapping_add(1);
            let order = (Ordering::AcqRel, Ordering::Relaxed);
            match queue.tail.0.compare_exchange_weak(token, next, order.0, order.1) {
                Ok(_) => break,
                Err(tail) => token = tail,
            }
        }
        desk.store(HOLDS | u64::from(token), Ordering::Release);
        Ok(token)
    }

    /// Fills its slot and shows it.
    #[inline]
    pub(super) fn publish(&mut self, token: u32, message: &Message) {
        let slot = self.queue.slot(token);
        for (place, word) in slot.words.iter().zip(message) {
            place.store(*word, Ordering::Relaxed);
        }
        // Release: who sees the mark sees the message.
        slot.mark.store(token, Ordering::Release);
        // Release: who sees this desk idle sees the mark.
        self.queue.desk(self.desk).store(IDLE, Ordering::Release);
    }
}

impl Drop for TokenProducer {
    fn drop(&mut self) {
        self.queue.clear_desk(self.desk);
    }
}
