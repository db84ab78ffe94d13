//! Memory of a table for the model checker.

use loom::sync::Arc;

use super::memory::LINE;
use crate::sync::{AtomicU32, AtomicU64};

#[derive(Debug, Clone)]
pub(super) struct Memory {
    count: Arc<AtomicU32>,
    lines: Arc<Vec<[AtomicU64; LINE]>>,
}

impl Memory {
    pub(super) fn new(lines: usize) -> Self {
        let line = |_| std::array::from_fn(|_| AtomicU64::new(0));
        Self { count: Arc::new(AtomicU32::new(0)), lines: Arc::new((0..lines).map(line).collect()) }
    }

    pub(super) fn lines(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn count(&self) -> &AtomicU32 {
        &self.count
    }

    pub(super) fn line(&self, number: usize) -> &[AtomicU64; LINE] {
        &self.lines[number & (self.lines.len() - 1)]
    }
}
