//! Memory that is shared with a process: made by its user's thread.

use std::sync::Arc;

use graph::{ClientChannel, Errand};
use shm::attach::Refusal;
use shm::{Consumer, Growing, Grown, Layout, Producer, Segment};
use tokio::task::yield_now;

use super::bells::QueueBells;
use super::refusal::{invalid, no_resources};

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

/// The rings of a channel on one worker: that to the client at `offset` of the segment, the other on the pages behind it.
pub(crate) fn channel(
    segment: &Arc<Segment>,
    offset: usize,
    layout: Layout,
    bell: Errand,
) -> Result<ClientChannel, Refusal> {
    let each = layout.bytes().next_multiple_of(PAGE);
    let region = |offset| {
        let region = segment.region(offset, layout.bytes());
        region.ok_or_else(|| invalid("a segment too short"))
    };
    let to = Producer::new(region(offset)?, layout).map_err(|e| invalid(e.to_string()))?;
    let from = Consumer::new(region(offset + each)?, layout).map_err(|e| invalid(e.to_string()))?;
    Ok(ClientChannel::new(to, from, bell))
}
