//! What workers see.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use graph::StackId;
use shm::session::TransportProtocol;

use super::Flow;
use super::bind::Place;
use super::listener::Listener;
use super::redirects::RedirectReader;

/// Beside the stack that leases a port: a listener has it, too.
const SHARED: u64 = 1 << 63;

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
    pub(super) fn serving(&self, address: IpAddr) -> impl Iterator<Item = &Listener> {
        Place::serving(address).into_iter().filter_map(|place| self.at(place))
    }
}

/// The ports of one protocol.
#[derive(Debug)]
pub(super) struct Ports {
    /// Who leases each: [`StackId::bits`], with [`SHARED`] when it is served, too; or 0.
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
        self.lease_of(port).map(|(id, _)| id)
    }

    /// Who leases a port, and whether it is served, too.
    #[inline]
    fn lease_of(&self, port: u16) -> Option<(StackId, bool)> {
        let bits = self.leases.get(usize::from(port))?.load(Ordering::Relaxed);
        Some((StackId::from_bits(bits & !SHARED)?, bits & SHARED != 0))
    }

    pub(super) fn set_lease(&self, port: u16, id: Option<StackId>) {
        let shared = if self.listeners(port).is_some() { SHARED } else { 0 };
        if let Some(lease) = self.leases.get(usize::from(port)) {
            lease.store(id.map_or(0, |id| id.bits() | shared), Ordering::Relaxed);
        }
    }

    pub(super) fn listeners(&self, port: u16) -> Option<Arc<Port>> {
        self.listeners.get(usize::from(port))?.load_full()
    }

    /// Gives what stood there before.
    pub(super) fn set_listeners(&self, port: u16, new: Option<Arc<Port>>) -> Option<Arc<Port>> {
        let old = self.listeners.get(usize::from(port))?.swap(new);
        self.set_lease(port, self.lease(port));
        old
    }
}

/// What all workers look at.
#[derive(Debug)]
pub(super) struct Shared {
    tcp: Ports,
    udp: Ports,
    seed: u64,
    /// Stacks are expected to come back.
    quiet: AtomicBool,
}

impl Shared {
    pub(super) fn new(seed: u64) -> Self {
        Self { tcp: Ports::new(), udp: Ports::new(), seed, quiet: AtomicBool::new(false) }
    }

    pub(super) fn keep_quiet(&self, quiet: bool) {
        self.quiet.store(quiet, Ordering::Relaxed);
    }

    /// Where a flow falls among the buckets of a listener.
    #[inline]
    pub(super) fn hash(&self, flow: &Flow) -> u32 {
        flow.hash(self.seed)
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
    pub(super) redirects: RedirectReader,
    /// What is left of connections that are over.
    pub(super) time_waits: RedirectReader,
}

impl SteeringReader {
    /// Whether a packet of no stack may be one of a stack that has yet to come back ([`Steering::keep_quiet`]).
    ///
    /// [`Steering::keep_quiet`]: super::Steering::keep_quiet
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.shared.quiet.load(Ordering::Relaxed)
    }

    /// The stack that a packet of this flow belongs to. `opens`: the packet opens a flow (a SYN without ACK).
    #[inline]
    #[must_use]
    pub fn find(&self, flow: &Flow, opens: bool) -> Option<StackId> {
        self.moved(flow, opens).or_else(|| self.find_unmoved(flow, opens))
    }

    /// The same, as if no connection had moved.
    #[inline]
    pub(super) fn find_unmoved(&self, flow: &Flow, opens: bool) -> Option<StackId> {
        let ports = self.shared.ports(flow.protocol);
        let port = flow.local.port();
        let lease = ports.lease_of(port);
        if let Some((id, false)) = lease {
            return Some(id);
        }
        let lessee = lease.map(|(id, _)| id);
        let Some(entry) = ports.listeners.get(usize::from(port)) else { return lessee };
        let loaded = entry.load();
        let Some(listeners) = loaded.as_deref() else { return lessee };
        let hash = self.shared.hash(flow);
        let address = flow.local.ip();
        if !opens {
            // A flow stays where it is, also when a more particular listener has come. What no listener has taken on a leased
            // port was opened from there.
            let all = lessee.is_some();
            let mut serving = listeners.serving(address).enumerate();
            let claimant = serving.find_map(|(at, one)| one.claimant(hash, flow, all || at > 0));
            let leased = lessee.filter(|_| flow.protocol == TransportProtocol::Tcp);
            let found = claimant.or(leased);
            if found.is_some() {
                return found;
            }
        }
        listeners.serving(address).find_map(|listener| listener.member(hash)).or(lessee)
    }

    /// The stack that the flow's connection has moved to. `None`: none has, or that stack has it no longer and the flow is another's: of
    /// whoever serves, when the packet opens it, or of whoever claims it.
    #[inline]
    pub(super) fn moved(&self, flow: &Flow, opens: bool) -> Option<StackId> {
        let (id, has_it) = self.redirects.find_holder(flow)?;
        // Peers use a port again sooner than a redirect ends. One that does not claim the flow yet is about to.
        let is_over = !has_it && (opens || self.is_anothers(id, flow).is_some());
        (!is_over).then_some(id)
    }

    /// Whether a stack may send what the other end of a flow receives: it leases the local port, is or has been a member of a
    /// listener there, or the connection has moved to it, or what is left of that.
    #[inline]
    #[must_use]
    pub fn lets_send(&self, id: StackId, flow: &Flow) -> bool {
        self.may_have(id, flow)
            || self.redirects.find(flow) == Some(id)
            || self.time_waits.find(flow) == Some(id)
    }

    /// The stack of this host that a connection goes to which `id` opens now, if it may open it. `flow`: as `id` sees it.
    #[must_use]
    pub fn meets(&self, id: StackId, flow: &Flow) -> Option<StackId> {
        let (local, remote) = (flow.remote, flow.local);
        let across = Flow { protocol: flow.protocol, local, remote };
        self.find_unmoved(&across, true).filter(|_| self.may_have(id, flow))
    }

    /// The same, as if no connection had moved.
    #[inline]
    pub(super) fn may_have(&self, id: StackId, flow: &Flow) -> bool {
        let (ports, port) = (self.shared.ports(flow.protocol), flow.local.port());
        if ports.lease(port) == Some(id) {
            return true;
        }
        let Some(entry) = ports.listeners.get(usize::from(port)) else { return false };
        let loaded = entry.load();
        let Some(listeners) = loaded.as_deref() else { return false };
        listeners.serving(flow.local.ip()).any(|listener| listener.lets_send(id))
    }

    /// Whether a listener's member has taken a flow, other than `id`.
    pub(super) fn is_anothers(&self, id: StackId, flow: &Flow) -> Option<StackId> {
        let ports = self.shared.ports(flow.protocol);
        let loaded = ports.listeners.get(usize::from(flow.local.port()))?.load();
        let (listeners, hash) = (loaded.as_deref()?, self.shared.hash(flow));
        listeners.serving(flow.local.ip()).find_map(|listener| listener.is_anothers(hash, flow, id))
    }
}
