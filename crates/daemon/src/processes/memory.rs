//! Memory that is shared with a process: made by its user's thread.

use std::sync::{Arc, Once};

use graph::{ClientChannel, Errand};
use shm::attach::Refusal;
use shm::{Consumer, Growing, Grown, Layout, Producer, Segment, SegmentError};
use tokio::task::yield_now;

use super::bells::QueueBells;
use super::holders::{Debit, Holders};
use super::refusal::{invalid, no_resources};

/// Where regions of a segment begin: a page, so that no two share one.
pub(crate) const PAGE: usize = 4096;
/// That memory cannot be made immutable was said.
static SAID: Once = Once::new();

/// What a user's thread has made for a request.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) segment: Arc<Segment>,
    pub(crate) bells: QueueBells,
}

/// Makes memory, and lets others of the same user have their turns meanwhile. It counts until nobody holds it any more. Where the
/// system allows it, whoever gets the file can take no pages out of it, so that nobody has to seal it later and wait for the process.
pub(crate) async fn grow(
    name: &str,
    debit: Debit,
    holders: &Holders,
) -> Result<Arc<Segment>, Refusal> {
    let mut growing = Growing::new(name, debit.bytes()).map_err(no_resources)?;
    let segment = loop {
        match growing.step().map_err(no_resources)? {
            Grown::Partly(rest) => growing = rest,
            Grown::Whole(segment) => break segment,
        }
        yield_now().await;
    };
    if let Err(error) = segment.make_immutable() {
        SAID.call_once(|| say(&error));
    }
    holders.watch(&segment, debit)?;
    Ok(Arc::new(segment))
}

fn say(error: &SegmentError) {
    tracing::info!(
        "memory that processes have cannot be made immutable ({error}), so it is sealed later, and one of them can keep the daemon \
         from ending (docs/security.md, known limits); it takes CAP_LINUX_IMMUTABLE and Linux 6.0"
    );
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
