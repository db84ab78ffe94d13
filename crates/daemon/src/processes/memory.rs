//! Memory that is shared with a process: made by its user's thread.

use std::sync::Arc;

use shm::attach::Refusal;
use shm::{Growing, Grown, Segment};
use tokio::task::yield_now;

use super::bells::QueueBells;
use super::refusal::no_resources;

/// Where regions of a segment begin: a page, so that no two share one.
pub(crate) const PAGE: usize = 4096;

/// What a user's thread has made for a request.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) segment: Arc<Segment>,
    pub(crate) bells: QueueBells,
}

/// Makes memory, and lets others of the same user have their turns meanwhile.
pub(crate) async fn grow(name: &str, bytes: usize) -> Result<Arc<Segment>, Refusal> {
    let mut growing = Growing::new(name, bytes).map_err(no_resources)?;
    loop {
        match growing.step().map_err(no_resources)? {
            Grown::Partly(rest) => growing = rest,
            Grown::Whole(segment) => return Ok(Arc::new(segment)),
        }
        yield_now().await;
    }
}
