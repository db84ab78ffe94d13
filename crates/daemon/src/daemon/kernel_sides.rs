//! The kernel's sides of ports, which follow configuration and ports.

use super::Changing;

impl Changing {
    /// Gives the workers the kernel's sides as configuration and ports are now. One that does not answer changes its own when
    /// it answers again.
    pub(super) async fn renew_kernel_sides(&self) {
        let (renewal, crew) = {
            let mut daemon = self.lock();
            let daemon = &mut *daemon;
            let crew = daemon.workers.crew();
            (daemon.kernel_sides.renew(&daemon.config, &daemon.ports, &crew), crew)
        };
        let Some(renewal) = renewal else { return };
        for number in renewal.gone {
            drop(crew.owe_all(move |state| state.remove_function(number)).all().await);
        }
        for (port, tap) in renewal.pairs {
            self.share_mac(&port, &tap).await;
        }
        for (number, functions) in renewal.new {
            for (member, function) in crew.iter().zip(functions) {
                let function = Box::new(function);
                // After what it owes: the numbers are the same.
                let added = member.owe(move |state| state.add_function(number, function));
                if let Err(error) = added.get().await {
                    tracing::error!("{error}");
                }
            }
        }
    }

    /// On the wire the kernel is the same station as the port.
    async fn share_mac(&self, port: &str, tap: &str) {
        let (mac, device, devices) = {
            let mut daemon = self.lock();
            let Some(mac) = daemon.ports.get(port).map(|port| port.mac) else { return };
            let device = daemon.ports.get_mut(tap).and_then(|port| port.lend());
            (mac, device, daemon.devices.clone())
        };
        let Some(device) = device else { return };
        let set = move |device: &mut dpdk::Port| device.set_mac(wire::MacAddr::from(mac).octets());
        let back = devices.with(device, set).await;
        let (device, set) = back.map_or((None, Ok(())), |(device, set)| (Some(device), set));
        if let Some(port) = self.lock().ports.get_mut(tap) {
            port.restore(device);
        }
        if let Err(error) = set {
            tracing::warn!("{error}; frames for the kernel need the port's address {mac} on {tap}");
        }
    }
}
