//! The kernel's sides of ports, which follow configuration and ports.

use super::Changing;
use crate::ports::OpenDevice;

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
        let (mac, jobs) = {
            let daemon = self.lock();
            let Some(mac) = daemon.ports.get(port).map(|port| port.mac) else { return };
            let device = daemon.ports.get(tap).and_then(|port| port.open.as_ref());
            (mac, device.map(OpenDevice::jobs))
        };
        let Some(jobs) = jobs else { return };
        let octets = wire::MacAddr::from(mac).octets();
        // It may come late: the address is wanted then, too.
        let set = jobs.ask(move |device| device.set_mac(octets)).await;
        let problem = match set {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::warn!("{problem}; frames for the kernel need the port's address {mac} on {tap}");
    }
}
