//! A node's own view of something that the control thread replaces as a whole.

use std::sync::Arc;

use arc_swap::{ArcSwap, Cache};

/// The newest value, at the price of one atomic load and a comparison per call.
pub(crate) struct Snapshot<T>(Cache<Arc<ArcSwap<T>>, Arc<T>>);

impl<T> Snapshot<T> {
    /// A view of what `shared` holds.
    #[must_use]
    pub(crate) fn of(shared: &Arc<ArcSwap<T>>) -> Self {
        Self(Cache::new(Arc::clone(shared)))
    }

    /// The newest value.
    #[inline]
    pub(crate) fn get(&mut self) -> &T {
        self.0.load()
    }
}
