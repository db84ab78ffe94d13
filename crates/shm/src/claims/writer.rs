//! The side whose flows they are: a stack.

use super::Memory;
use super::memory::{EMPTY, lines_of, written};
use crate::sync::{AtomicU64, Ordering};

/// Says which flows a stack has.
#[derive(Debug)]
pub struct ClaimsWriter {
    memory: Memory,
    /// Tags that are there.
    count: u32,
}

impl ClaimsWriter {
    /// Of an empty table with `places` places in this region, whose only writer it is.
    ///
    /// # Errors
    /// [`ClaimsError`](super::ClaimsError) when that is no size for a table, or more than the region holds.
    #[cfg(not(loom))]
    pub fn new(region: crate::Region, places: u32) -> Result<Self, super::ClaimsError> {
        Ok(Self { memory: Memory::new(region, places)?, count: 0 })
    }

    #[cfg(loom)]
    pub(super) fn with(memory: Memory) -> Self {
        Self { memory, count: 0 }
    }

    /// Claims the flow of that tag, before the flow's first answer leaves. `false`: both lines where it may lie are full,
    /// and nothing has changed; the flow is lost only if the listener's members change while it lives.
    pub fn insert(&mut self, tag: u64) -> bool {
        let Self { memory, count } = self;
        let tag = written(tag);
        let lines = lines_of(tag, memory.lines());
        if find(memory, lines, tag).is_some() {
            return true;
        }
        let [line, other] = lines;
        let emptier = if room(memory, line) >= room(memory, other) { line } else { other };
        let Some(place) = find(memory, [emptier], EMPTY) else { return false };
        // The number first: who sees the tag sees that there is one.
        *count += 1;
        memory.count().store(*count, Ordering::Relaxed);
        place.store(tag, Ordering::Release);
        true
    }

    /// Claims it no more: when the flow's end needs nothing of what else comes. A connection that waits in TIME-WAIT
    /// is claimed no more once its listener has gone, or else a new one between the same ends would find two stacks.
    pub fn remove(&mut self, tag: u64) {
        let Self { memory, count } = self;
        if *count == 0 {
            return;
        }
        let tag = written(tag);
        let Some(place) = find(memory, lines_of(tag, memory.lines()), tag) else { return };
        place.store(EMPTY, Ordering::Release);
        *count = count.saturating_sub(1);
        memory.count().store(*count, Ordering::Release);
    }

    /// Flows that are claimed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The place in these lines that holds `content`.
fn find<const N: usize>(memory: &Memory, lines: [usize; N], content: u64) -> Option<&AtomicU64> {
    let mut places = lines.into_iter().flat_map(|line| memory.line(line));
    places.find(|place| place.load(Ordering::Relaxed) == content)
}

/// Empty places of a line.
fn room(memory: &Memory, line: usize) -> usize {
    memory.line(line).iter().filter(|place| place.load(Ordering::Relaxed) == EMPTY).count()
}
