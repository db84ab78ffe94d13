//! What client processes need of the daemon.

use super::Daemon;
use crate::clients::{Host, Lent};

impl Host for Daemon {
    fn lend_to_clients(&mut self) -> Lent<'_> {
        let Self { clients, config, ports, workers, devices, .. } = self;
        Lent { clients, config, ports, workers, devices }
    }
}
