//! What the control thread replaces as a whole while workers read it.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};

/// A value of which workers see the newest one, or for a moment the one before.
///
/// A worker that lets go of a value when it looks for the newest one may be the last that had it. Values are large (tables of
/// interfaces, readers of whole route tables) and would be freed between two packets then. So a value that was replaced stays
/// here until nobody else has it: what is freed is freed by [`Self::store`] and [`Self::reclaim`].
#[derive(Debug, Default)]
pub struct Published<T> {
    newest: ArcSwap<T>,
    /// Values that were replaced and that somebody may have still: as many as there are workers at most, and those of the time
    /// since the last call.
    before: Mutex<Vec<Arc<T>>>,
}

impl<T> Published<T> {
    /// The first value.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self { newest: ArcSwap::from_pointee(value), before: Mutex::default() }
    }

    /// The newest value, for a short time.
    #[inline]
    pub fn load(&self) -> Guard<Arc<T>> {
        self.newest.load()
    }

    /// The newest value, to keep.
    #[must_use]
    pub fn load_full(&self) -> Arc<T> {
        self.newest.load_full()
    }

    /// Replaces the value. Not for workers.
    pub fn store(&self, value: Arc<T>) {
        let old = self.newest.swap(value);
        self.keep_used(Some(old));
    }

    /// Frees values that were replaced and that nobody has any more. Not for workers.
    pub fn reclaim(&self) {
        self.keep_used(None);
    }

    /// For views that follow it.
    #[inline]
    pub(crate) fn newest(&self) -> &ArcSwap<T> {
        &self.newest
    }

    fn keep_used(&self, one_more: Option<Arc<T>>) {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        before.extend(one_more);
        // Nobody gets one of these again: who has the only owner is the only one that ever has it.
        before.retain(|old| Arc::strong_count(old) > 1);
    }
}
