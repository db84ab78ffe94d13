//! Local ports of outgoing connections.

use control::config::LeasedPorts;
use forward::steering::SteeringError;
use shm::attach::Refusal;
use shm::session::PortRange;

use super::Sessions;
use super::bounds::Usage;
use crate::processes::no_resources;

impl Sessions {
    /// A range of ports for a stack. Ranges are gone round, so that one that was given back is not used again at once: its
    /// ports' earlier peers may remember connections (RFC 9293 3.4.1).
    pub(super) fn lease(&mut self, id: u32, number: u32) -> Result<PortRange, Refusal> {
        let stack = self.stack(id, number)?.id;
        self.admit(id, &Usage { leases: 1, ..Usage::default() })?;
        let ports = self.config.load().ports;
        let count = LeasedPorts::LEASE;
        let all: Vec<u16> = ports.leases().collect();
        let next = all.partition_point(|first| *first <= self.last_lease);
        let turn = all.get(next..).into_iter().chain(all.get(..next)).flatten();
        for first in turn {
            match self.steering.lease(stack, *first, count) {
                Ok(()) => {
                    self.last_lease = *first;
                    self.stack(id, number)?.leases.insert(*first);
                    return Ok(PortRange { first: *first, count });
                }
                Err(SteeringError::Leased { .. } | SteeringError::Served(_)) => {}
                Err(error) => return Err(no_resources(error.to_string())),
            }
        }
        Err(no_resources(format!(
            "every range of {count} ports in {ports} is leased, or a port of it is served; give \
             sessions.ports more"
        )))
    }
}
