//! What a user's clients may have, all together: a bound that held for one connection only would hold for nobody.

use control::config;
use graph::Filter;
use shm::attach::{Open, Refusal};

use super::{Client, Clients};
use crate::processes::{Debit, MemoryBound, UserBound};

/// What all clients of a user have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Usage {
    /// Requests that were granted: each is a packet function and a descriptor to be waited for on every worker.
    queues: usize,
    channels: usize,
    /// Comparisons with each packet.
    filters: usize,
}

/// Comparisons that a filter takes: an address of either end takes two.
pub(super) fn comparisons(filter: &Filter) -> usize {
    match (filter == &Filter::default(), filter.host) {
        (true, _) => 0,
        (false, None) => 1,
        (false, Some(_)) => 2,
    }
}

impl Usage {
    fn add(&mut self, client: &Client) {
        for queues in client.queues.values() {
            self.queues += 1;
            self.channels += usize::from(queues.asked.channels);
            self.filters += queues.comparisons;
        }
    }

    /// Whether a request more is within the bounds.
    pub(super) fn admit(
        &self,
        uid: u32,
        asked: &Open,
        filters: usize,
        bounds: &config::Clients,
    ) -> Result<(), Refusal> {
        let channels = usize::from(asked.channels);
        let bound = |key, what, has, more, most| UserBound { key, what, has, more, most };
        let checks = [
            bound("queues", "requests for queues", self.queues, 1, bounds.queues.into()),
            bound("channels", "channels", self.channels, channels, bounds.channels.into()),
            bound("filters", "filters", self.filters, filters, bounds.filters.into()),
        ];
        checks.iter().try_for_each(|check| check.check("clients", uid))
    }
}

impl Clients {
    /// What the clients of a user have.
    pub(super) fn usage(&self, uid: u32) -> Usage {
        let mut usage = Usage::default();
        let own = self.list.values().filter(|client| client.uid() == uid);
        own.for_each(|client| usage.add(client));
        usage
    }

    /// So many bytes of memory more, if a user may have them.
    pub(super) fn charge(
        &mut self,
        uid: u32,
        bytes: usize,
        bounds: &config::Clients,
    ) -> Result<Debit, Refusal> {
        let pieces = 2 * usize::from(bounds.queues);
        let bound = MemoryBound { section: "clients", mebibytes: bounds.memory, pieces };
        self.accounts.charge([uid; 2], bytes, bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::attach::{FilterText, Spread, Take};

    fn asked(channels: u16) -> Open {
        Open {
            ports: Vec::new(),
            take: Take::Copy,
            spread: Spread::Flow,
            filter: FilterText::default(),
            channels,
            slots: 64,
            capacity: 2048,
            queue: None,
        }
    }

    #[test]
    fn each_bound_is_named_when_it_is_reached() {
        let bounds = config::Clients {
            socket: None,
            most: 4,
            connections: 4,
            queues: 3,
            channels: 8,
            filters: 2,
            memory: 1,
            requests: 10,
        };
        let has = Usage { queues: 2, channels: 6, filters: 1 };
        assert!(has.admit(7, &asked(2), 1, &bounds).is_ok());
        let refused = |usage: Usage, channels, filters| {
            usage.admit(7, &asked(channels), filters, &bounds).unwrap_err().message
        };
        let (mut clients, half) = (Clients::default(), 1 << 19);
        let _first = clients.charge(7, half, &bounds).unwrap();
        let second = clients.charge(7, half, &bounds).unwrap();
        let all = [
            (refused(Usage { queues: 3, ..has }, 1, 1), "clients.queues allows one user 3"),
            (refused(has, 3, 1), "clients.channels allows one user 8"),
            (refused(has, 2, 2), "clients.filters allows one user 2"),
            (
                clients.charge(7, 1, &bounds).unwrap_err().message,
                "clients.memory allows one user 1",
            ),
        ];
        for (message, part) in all {
            assert!(message.contains(part) && message.contains("user 7"), "{message}");
        }
        drop(second);
        assert!(clients.charge(7, half, &bounds).is_ok());
    }

    #[test]
    fn an_address_of_either_end_is_compared_twice() {
        let host = Some("192.0.2.1".parse().unwrap());
        assert_eq!(comparisons(&Filter::default()), 0);
        assert_eq!(comparisons(&Filter { destination_port: Some(1), ..Filter::default() }), 1);
        assert_eq!(comparisons(&Filter { host, ..Filter::default() }), 2);
    }
}
