//! Changes, one at a time: of what is open, and of what tables hold.

use std::sync::{Arc, MutexGuard};

use tokio::sync::OwnedMutexGuard;

use super::{Daemon, Shared};

/// The right to change what is open: ports, queues, functions, the configuration. One task has it at a time. It
/// waits for workers and for devices; the others go on meanwhile, because they do not need it.
pub(crate) struct Changing {
    shared: Shared,
    _turn: OwnedMutexGuard<()>,
}

/// The right to change what people have given (routes, neighbours, flows), or what it names: interfaces and VRFs. One task has
/// it at a time, and waits for no device and no worker meanwhile. Who needs [`Changing`] as well asks for that one first.
pub(crate) struct Entering {
    shared: Shared,
    _turn: OwnedMutexGuard<()>,
}

/// The rights to change anything: nothing changes but what packets and devices change.
pub(crate) type Rights = (Changing, Entering);

impl Shared {
    /// Waits until nobody else changes what is open.
    pub(crate) async fn change(&self) -> Changing {
        let turn = Arc::clone(&self.changes).lock_owned().await;
        Changing { shared: self.clone(), _turn: turn }
    }

    /// Waits until nobody else changes what tables hold.
    pub(crate) async fn enter(&self) -> Entering {
        let turn = Arc::clone(&self.entries).lock_owned().await;
        Entering { shared: self.clone(), _turn: turn }
    }

    /// Waits until nobody else changes anything.
    pub(crate) async fn stand_still(&self) -> Rights {
        let changing = self.change().await;
        let entering = changing.enter().await;
        (changing, entering)
    }
}

impl Entering {
    /// The daemon, for one step.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Daemon> {
        self.shared.lock()
    }
}

impl Changing {
    /// The daemon, for one step.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Daemon> {
        self.shared.lock()
    }

    /// Waits until nobody else changes what tables hold.
    pub(crate) async fn enter(&self) -> Entering {
        self.shared.enter().await
    }

    /// Shows interfaces as they are now, and lets what is bound to ports follow them.
    pub(crate) async fn publish(&self) {
        self.lock().publish();
        self.follow_ports().await;
    }

    /// Lets what is bound to ports follow them. It waits for workers, for devices and for functions' own code.
    pub(crate) async fn follow_ports(&self) {
        self.rebind_functions().await;
        self.renew_kernel_sides().await;
    }
}
