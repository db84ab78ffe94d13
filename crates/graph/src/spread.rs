//! Software RSS: the worker that polls a one-queue device spreads its flows over workers.

use dpdk::Buffer;

use crate::{HandoffSender, flow_hash::flow_hash};

/// The workers that share a receive queue. All packets of a flow go to the same one, in order.
#[derive(Debug)]
pub struct Spread {
    workers: Vec<Option<HandoffSender<Buffer>>>,
}

impl Spread {
    /// Rings to the workers that share the queue; `None` stands for the polling worker itself,
    /// once. Their order decides which flow goes where, so it should not change with the poller.
    #[must_use]
    pub fn new(workers: Vec<Option<HandoffSender<Buffer>>>) -> Self {
        Self { workers }
    }

    /// Moves the packets that belong to other workers into their rings. Those of this worker move to the front of `burst`, and those whose ring is full come next.
    /// Returns how many there are of each.
    pub(crate) fn sort(&mut self, burst: &mut [Option<Buffer>]) -> (usize, usize) {
        let (mut own, mut refused) = (0, 0);
        for at in 0..burst.len() {
            let Some(buffer) = burst[at].take() else { continue };
            let to = place(flow_hash(&buffer), self.workers.len());
            match self.workers.get_mut(to) {
                Some(Some(ring)) => {
                    if let Err(buffer) = ring.push(buffer) {
                        burst[own + refused] = Some(buffer);
                        refused += 1;
                    }
                }
                _ => {
                    burst[own + refused] = Some(buffer);
                    burst.swap(own, own + refused);
                    own += 1;
                }
            }
        }
        for ring in self.workers.iter_mut().flatten() {
            ring.notify();
        }
        (own, refused)
    }
}

/// Which of `count` workers a hash belongs to, without a division.
fn place(hash: u32, count: usize) -> usize {
    ((u64::from(hash) * count as u64) >> 32) as usize
}

#[cfg(test)]
mod tests;
