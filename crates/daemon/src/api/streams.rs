//! A bound on answers that go on for a long time: trace and capture.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answer::Refusal;

/// Streams of each kind at a time. A worker has one tracer and one tap.
const STREAMS: usize = 1;

/// Places for streams.
#[derive(Debug, Clone)]
pub(crate) struct Streams {
    traces: Arc<Semaphore>,
    captures: Arc<Semaphore>,
}

impl Default for Streams {
    fn default() -> Self {
        let places = || Arc::new(Semaphore::new(STREAMS));
        Self { traces: places(), captures: places() }
    }
}

impl Streams {
    /// A place for a trace, until it is dropped.
    pub(crate) fn trace(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        place(&self.traces, "trace")
    }

    /// A place for a capture, until it is dropped.
    pub(crate) fn capture(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        place(&self.captures, "capture")
    }
}

fn place(places: &Arc<Semaphore>, what: &str) -> Result<OwnedSemaphorePermit, Refusal> {
    Arc::clone(places)
        .try_acquire_owned()
        .map_err(|_| Refusal::busy(format!("another {what} is running"), "end that one first"))
}
