//! Listeners that nobody serves at the moment, and somebody may: the last process that did has gone, and another has the
//! socket still, as when a server puts itself into the background. SYNs wait for whoever serves next.

use shm::session::TransportProtocol;

use super::bind::Place;
use super::listener::Group;
use super::packet::opened;
use super::{Flow, ListenerId, Steering, SteeringReader};

impl Steering {
    /// Whether nobody serves a listener but that process.
    #[must_use]
    pub fn is_alone(&self, listener: ListenerId, process: u32) -> bool {
        self.groups.get(&listener).is_some_and(|group| group.is_alone(process))
    }

    /// Nobody serves a listener, or soon nobody will, and a process has its socket (`true`), or none has any more. It ends by
    /// itself when somebody serves.
    pub fn set_vacant(&mut self, listener: ListenerId, is_vacant: bool) {
        if let Some(group) = self.groups.get_mut(&listener) {
            group.set_vacant(is_vacant);
            self.publish(listener);
        }
    }

    /// Whether a packet that is [early](SteeringReader::is_early) need not wait any more: somebody takes new connections
    /// where it goes to, or nobody will.
    #[must_use]
    pub fn is_settled(&self, packet: &[u8]) -> bool {
        let Some(flow) = opened(packet) else { return true };
        let key = |place| (TransportProtocol::Tcp, flow.local.port(), place);
        let places = Place::serving(flow.local.ip()).into_iter();
        let known = places.filter_map(|place| self.by_bind.get(&key(place)));
        let mut groups = known.filter_map(|id| self.groups.get(id));
        let mut is_vacant = false;
        let served = groups.find(|group| {
            is_vacant |= group.is_vacant();
            group.has_members()
        });
        // Who is on stand-by may leave it to others.
        served.map_or(!is_vacant, Group::takes_flows)
    }
}

impl SteeringReader {
    /// Whether a packet that no stack has opens a connection to a vacant listener.
    #[must_use]
    pub fn is_early(&self, packet: &[u8]) -> bool {
        opened(packet).is_some_and(|flow| self.is_vacant(&flow))
    }

    fn is_vacant(&self, flow: &Flow) -> bool {
        let listeners = self.shared.ports(TransportProtocol::Tcp).listeners(flow.local.port());
        listeners.is_some_and(|port| port.serving(flow.local.ip()).any(|one| one.is_vacant))
    }
}
