//! Receive queues that can be a client's own: given, served, taken back.

use dpdk::{BufferPool, DeviceMemory, NoPlace, SharedPool};

use super::{RxAssignment, count, mark, pass};
use crate::client::LaneContext;
use crate::function::Functions;
use crate::{Exits, Lane, LaneClient, Vector};

/// Why a receive queue did not become a client's own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaneError {
    /// It was opened without a pool whose memory can be lent.
    #[error("the queue is not kept for clients")]
    None,
    /// It is somebody's.
    #[error("another client has the queue")]
    Taken,
    /// The client's memory is too short.
    #[error(transparent)]
    Memory(#[from] NoPlace),
}

/// What belongs to a queue that can be a client's own, while it has no device.
#[derive(Debug)]
pub struct KeptLane {
    /// Its buffers.
    pub pool: SharedPool,
    /// Who has it, and which buffers.
    pub lane: Box<Lane>,
}

impl KeptLane {
    /// Nobody's yet. Copies get their buffers from `copies`.
    #[must_use]
    pub fn new(pool: SharedPool, copies: BufferPool) -> Self {
        Self { pool, lane: Box::new(Lane::new(copies)) }
    }

    /// As [`RxAssignment::take_client`].
    pub fn take_client(&mut self, token: u64) -> Option<LaneClient> {
        self.lane.take_client(token, &mut self.pool)
    }

    /// Whether a client has it.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.lane.client().is_some()
    }
}

impl RxAssignment {
    /// Lets a client have the queue, if it was opened with a pool for that. What a queue before has left in the lane
    /// goes on.
    #[must_use]
    pub fn with_lane(mut self, lane: Box<Lane>) -> Self {
        self.lane = self.queue.shared().map(|_| lane);
        self
    }

    /// Gives the queue to a client in whose segment `memory` lies: from now on its packets go there. Gives the client
    /// back when that cannot be.
    ///
    /// # Errors
    /// The queue has no pool for that, another client has it, or the memory is too short.
    pub fn give(&mut self, client: LaneClient, memory: &DeviceMemory) -> Result<(), LaneError> {
        let (Some(lane), Some(pool)) = (&mut self.lane, self.queue.shared()) else {
            return Err(LaneError::None);
        };
        if lane.client().is_some() {
            return Err(LaneError::Taken);
        }
        Ok(lane.give(client, memory, pool)?)
    }

    /// Takes the queue back from the client of that token; gives back what it had.
    pub fn take_client(&mut self, token: u64) -> Option<LaneClient> {
        self.lane.as_mut()?.take_client(token, self.queue.shared()?)
    }

    /// Ends the queue; gives what another one can go on with when the device is open again.
    #[must_use]
    pub fn into_lane(self) -> Option<KeptLane> {
        Some(KeptLane { pool: *self.queue.into_shared()?, lane: self.lane? })
    }

    /// As [`Self::poll`], for a queue that can be a client's own.
    #[cold]
    #[inline(never)]
    pub(super) fn poll_lane(
        &mut self,
        limit: usize,
        vector: &mut Vector,
        exits: &mut Exits,
        functions: &mut Functions,
        now: u64,
    ) -> usize {
        let (Some(lane), Some(pool)) = (&mut self.lane, self.queue.shared()) else { return 0 };
        let port = self.port;
        let mut found = usize::from(lane.tend(pool));
        found += lane.send(vector, &mut LaneContext { port, pool, exits, now });
        let free = vector.free_slots();
        let room = free.len().min(limit);
        let free = &mut free[..room];
        let got = self.queue.burst(free);
        count(port, &free[..got], exits);
        let Some(pool) = self.queue.shared() else { return found };
        let all = got + pool.received().len();
        exits.counters.burst(all);
        if all > 0 {
            let mut context = LaneContext { port, pool, exits, now };
            lane.count(&mut context);
            let left = lane.receive(free, got, &mut context);
            let burst = &mut free[..left];
            mark(port, burst);
            let own = pass(port, &mut self.spread, burst, exits, functions, now);
            vector.fill(own);
        }
        found + all
    }
}
