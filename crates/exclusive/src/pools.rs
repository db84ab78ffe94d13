//! Buffer pools. DPDK never takes one down, so one whose devices are closed serves the next ones.

use std::sync::{Arc, Mutex, PoisonError};

use dpdk::{BufferPool, PoolError};

use crate::sizes::CACHE;

/// Those that were made, each with what shows that queues use it.
static POOLS: Mutex<Vec<Arc<BufferPool>>> = Mutex::new(Vec::new());

/// A pool of at least `buffers` for packets of `capacity` bytes. It is in use as long as there are clones.
pub(crate) fn take(buffers: u32, capacity: u16) -> Result<Arc<BufferPool>, PoolError> {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let fits = |pool: &&Arc<BufferPool>| {
        let unused = Arc::strong_count(pool) == 1 && pool.data_room() == capacity;
        // Packets outlive their queues; and some drivers keep buffers when they close.
        unused && pool.available() >= buffers
    };
    if let Some(pool) = pools.iter().find(fits) {
        return Ok(Arc::clone(pool));
    }
    let name = format!("exclusive-{}", pools.len());
    let pool = Arc::new(BufferPool::new(&name, buffers, capacity, CACHE, None)?);
    pools.push(Arc::clone(&pool));
    Ok(pool)
}
