//! The daemon run anew: by another process that takes over while this one still forwards, or in place.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use control::Config;
use dpdk::{Device, DeviceKind, Eal};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;

use crate::daemon::Rights;
use crate::ports::{Numa, eal_options};
use crate::service::{Lineage, Successor, TakeoverError, notify};

/// A successor that is ready, and the rights to change anything, which nobody has any more: it has read the state.
pub(crate) struct Handover {
    pub(crate) successor: Successor,
    pub(crate) rights: Rights,
}

/// Restarts: those that were, and how to ask for another.
#[derive(Clone)]
pub(crate) struct Restarts {
    pub(crate) lineage: Arc<Lineage>,
    program: PathBuf,
    ready: Arc<Mutex<Option<Handover>>>,
    asked: Arc<Notify>,
}

impl Restarts {
    pub(crate) fn new(program: PathBuf, lineage: Arc<Lineage>) -> Self {
        Self { lineage, program, ready: Arc::default(), asked: Arc::default() }
    }

    /// Begins a restart. What is to survive has been written, and nothing changes any more.
    ///
    /// Errors: [`TakeoverError`]; everything goes on as before.
    pub(crate) async fn begin(&self, rights: Rights) -> Result<(), TakeoverError> {
        let config = rights.0.lock().config.clone();
        let alone = spawn_blocking(move || why_alone(&config)).await.unwrap_or_default();
        if let Some(why) = alone {
            tracing::info!("restarting in place: {why}");
        } else {
            let (program, lineage) = (self.program.clone(), Arc::clone(&self.lineage));
            let start = move || Successor::start(&program, &lineage);
            let started = spawn_blocking(start).await;
            let failed = |error| Err(TakeoverError::Start(io::Error::other(error)));
            let successor = started.unwrap_or_else(failed)?;
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            *ready = Some(Handover { successor, rights });
        }
        self.asked.notify_one();
        Ok(())
    }

    /// Waits until a restart has begun. `None`: in place.
    pub(crate) async fn asked(&self) -> Option<Handover> {
        self.asked.notified().await;
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Why no other process can take over, if none can.
fn why_alone(config: &Config) -> Option<&'static str> {
    let devices = config.ports.iter().filter_map(|port| port.device.as_str().parse().ok());
    let devices: Vec<Device> = devices.collect();
    if !notify::is_heard() {
        // Whoever waits for this process would take its end for the daemon's.
        return Some("no service manager is told that the process is another");
    }
    if devices.iter().any(|device| device.kind() == DeviceKind::Pci) {
        return Some("DPDK takes PCI devices when it starts");
    }
    let options = eal_options(config, &Numa::of_machine(), devices, 4);
    let room = Eal::get().is_some_and(|eal| eal.has_room_beside(&options));
    (!room).then_some("there is too little memory for two processes")
}
