//! Changes of what is open, one at a time.

use std::sync::{Arc, MutexGuard};

use tokio::sync::OwnedMutexGuard;

use super::{Daemon, Shared};

/// The right to change what is open: ports, queues, functions, the configuration. One task has it at a time. It
/// waits for workers and for devices; the others go on meanwhile, because they do not need it.
pub(crate) struct Changing {
    shared: Shared,
    _turn: OwnedMutexGuard<()>,
}

impl Shared {
    /// Waits until nobody else changes what is open.
    pub(crate) async fn change(&self) -> Changing {
        let turn = Arc::clone(&self.changes).lock_owned().await;
        Changing { shared: self.clone(), _turn: turn }
    }
}

impl Changing {
    /// The daemon, for one step.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Daemon> {
        self.shared.lock()
    }

    /// Shows interfaces as they are now, and lets what is bound to ports follow them.
    pub(crate) async fn publish(&self) {
        self.lock().publish();
        self.rebind_functions().await;
        self.renew_kernel_sides().await;
    }
}
