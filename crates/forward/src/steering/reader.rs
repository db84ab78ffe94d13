//! What workers see.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use graph::StackId;
use shm::session::TransportProtocol;

use super::Flow;
use super::bind::Place;
use super::listener::Listener;

/// Ports of a protocol.
const PORTS: usize = 1 << 16;

/// The listeners of one port, in order; replaced as a whole.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) listeners: Box<[(Place, Arc<Listener>)]>,
}

impl Port {
    fn at(&self, place: Place) -> Option<&Listener> {
        let at = self.listeners.binary_search_by_key(&place, |(known, _)| *known).ok()?;
        self.listeners.get(at).map(|(_, listener)| &**listener)
    }

    /// Those that serve an address, the most particular one first.
    fn serving(&self, address: IpAddr) -> impl Iterator<Item = &Listener> {
        Place::serving(address).into_iter().filter_map(|place| self.at(place))
    }
}

/// The ports of one protocol.
#[derive(Debug)]
pub(super) struct Ports {
    /// Who leases each: [`StackId::bits`], or 0.
    leases: Box<[AtomicU64]>,
    listeners: Box<[ArcSwapOption<Port>]>,
}

impl Ports {
    fn new() -> Self {
        Self {
            leases: (0..PORTS).map(|_| AtomicU64::new(0)).collect(),
            listeners: (0..PORTS).map(|_| ArcSwapOption::empty()).collect(),
        }
    }

    #[inline]
    pub(super) fn lease(&self, port: u16) -> Option<StackId> {
        StackId::from_bits(self.leases.get(usize::from(port))?.load(Ordering::Relaxed))
    }

    pub(super) fn set_lease(&self, port: u16, id: Option<StackId>) {
        if let Some(lease) = self.leases.get(usize::from(port)) {
            lease.store(id.map_or(0, StackId::bits), Ordering::Relaxed);
        }
    }

    pub(super) fn listeners(&self, port: u16) -> Option<Arc<Port>> {
        self.listeners.get(usize::from(port))?.load_full()
    }

    /// Gives what stood there before.
    pub(super) fn set_listeners(&self, port: u16, new: Option<Arc<Port>>) -> Option<Arc<Port>> {
        self.listeners.get(usize::from(port))?.swap(new)
    }
}

/// What all workers look at.
#[derive(Debug)]
pub(super) struct Shared {
    tcp: Ports,
    udp: Ports,
    seed: u64,
}

impl Shared {
    pub(super) fn new(seed: u64) -> Self {
        Self { tcp: Ports::new(), udp: Ports::new(), seed }
    }

    #[inline]
    pub(super) fn ports(&self, protocol: TransportProtocol) -> &Ports {
        match protocol {
            TransportProtocol::Tcp => &self.tcp,
            TransportProtocol::Udp => &self.udp,
        }
    }
}

/// A worker's view. Clones see the same.
#[derive(Debug, Clone)]
pub struct SteeringReader {
    pub(super) shared: Arc<Shared>,
}

impl SteeringReader {
    /// The stack that a packet of this flow belongs to. `opens`: the packet opens a flow (a SYN without ACK).
    #[inline]
    #[must_use]
    pub fn find(&self, flow: &Flow, opens: bool) -> Option<StackId> {
        let ports = self.shared.ports(flow.protocol);
        let port = flow.local.port();
        if let Some(id) = ports.lease(port) {
            return Some(id);
        }
        let loaded = ports.listeners.get(usize::from(port))?.load();
        let listeners = loaded.as_deref()?;
        let hash = flow.hash(self.shared.seed);
        let address = flow.local.ip();
        if !opens {
            // A flow stays where it is, also when a more particular listener has come.
            let mut serving = listeners.serving(address).enumerate();
            let found = serving.find_map(|(at, listener)| listener.claimant(hash, flow, at > 0));
            if found.is_some() {
                return found;
            }
        }
        listeners.serving(address).find_map(|listener| listener.member(hash))
    }

    /// Whether a stack may send from this end: it leases the port, or is or has been a member of a listener there.
    #[inline]
    #[must_use]
    pub fn lets_send(
        &self,
        id: StackId,
        protocol: TransportProtocol,
        address: IpAddr,
        port: u16,
    ) -> bool {
        let ports = self.shared.ports(protocol);
        if ports.lease(port) == Some(id) {
            return true;
        }
        let Some(entry) = ports.listeners.get(usize::from(port)) else { return false };
        let loaded = entry.load();
        let Some(listeners) = loaded.as_deref() else { return false };
        listeners.serving(address).any(|listener| listener.lets_send(id))
    }
}
