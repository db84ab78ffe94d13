//! Local ports for what a stack opens itself.

use graph::StackId;
use shm::session::TransportProtocol;

use super::super::SteeringError;
use super::super::listener::Group;
use super::Steering;

const PROTOCOLS: [TransportProtocol; 2] = [TransportProtocol::Tcp, TransportProtocol::Udp];

impl Steering {
    /// The local ports `first..first + count` of both protocols are for what the stack opens itself.
    ///
    /// # Errors
    /// [`SteeringError::NoStack`], [`SteeringError::NoPort`] also when there are no such ports, [`SteeringError::Leased`],
    /// [`SteeringError::Served`] by another process.
    pub fn lease(&mut self, id: StackId, first: u16, count: u16) -> Result<(), SteeringError> {
        let process = self.stack(id)?.claimant.process;
        let last = count.checked_sub(1).and_then(|more| first.checked_add(more));
        let last = last.filter(|_| first != 0).ok_or(SteeringError::NoPort)?;
        for port in first..=last {
            if let Some(by) = self.lessee(port) {
                return Err(SteeringError::Leased { port, by });
            }
            if self.is_served_by_another(port, process) {
                return Err(SteeringError::Served(port));
            }
        }
        self.stack_mut(id)?.leases.insert(first, count);
        self.set_leases(first, count, Some(id));
        Ok(())
    }

    /// Takes a lease back.
    ///
    /// # Errors
    /// [`SteeringError::NoStack`]; [`SteeringError::NoLease`] when it was not given from `first` on.
    pub fn release(&mut self, id: StackId, first: u16) -> Result<(), SteeringError> {
        let count = self.stack_mut(id)?.leases.remove(&first);
        let count = count.ok_or(SteeringError::NoLease { stack: id, first })?;
        self.set_leases(first, count, None);
        Ok(())
    }

    /// Whether any of the ports `first..=last` is served.
    #[must_use]
    pub fn serves_within(&self, first: u16, last: u16) -> bool {
        let within = |group: &Group| (first..=last).contains(&group.bind.port);
        self.groups.values().any(|group| within(group) && group.has_members())
    }

    /// Whether another process serves a port.
    fn is_served_by_another(&self, port: u16, process: u32) -> bool {
        let served = PROTOCOLS.iter().any(|one| self.shared.ports(*one).listeners(port).is_some());
        let mut all = self.groups.values();
        served && all.any(|group| group.bind.port == port && !group.is_of(process))
    }

    /// Who leases a port.
    #[must_use]
    pub fn lessee(&self, port: u16) -> Option<StackId> {
        self.shared.ports(TransportProtocol::Tcp).lease(port)
    }

    pub(super) fn set_leases(&self, first: u16, count: u16, id: Option<StackId>) {
        for protocol in PROTOCOLS {
            let ports = self.shared.ports(protocol);
            let leased = (first..=u16::MAX).take(usize::from(count));
            leased.for_each(|port| ports.set_lease(port, id));
        }
    }
}
