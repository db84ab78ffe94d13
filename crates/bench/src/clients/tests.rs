//! What is counted for a client is what it did, step by step and without clocks.

use std::sync::Arc;

use dpdk::{BufferPool, Eal, EalOptions, Memory};
use graph::{ClientCounters, ClientQueues, Function as _, Outgoing, PortId};

use super::conduct::Conduct;
use super::deeds::{self, Means};
use crate::client_ends::{self as ends, Ends, User};

struct Client {
    conduct: Conduct,
    queues: ClientQueues,
    ends: Ends,
    counters: Arc<ClientCounters>,
    means: Means,
}

fn client(conduct: Conduct, channels: u16, pool: BufferPool) -> Client {
    let mut user = User::new().unwrap();
    let ends::Client { queues, ends, counters } =
        ends::make(conduct.request(0), channels, &mut user, ([PortId::new(0); 2], pool)).unwrap();
    Client { conduct, queues, ends, counters, means: Means::new(conduct) }
}

impl Client {
    fn act(&mut self) -> u64 {
        deeds::step(self.conduct, &mut self.ends, &mut self.means).unwrap()
    }

    /// One round of the worker.
    fn round(&mut self, now: u64) -> usize {
        self.queues.send(&mut Outgoing::default(), now)
    }
}

/// One test: there is one EAL and its pools have names.
#[test]
fn a_flood_is_refused_packet_for_packet_and_garbage_ends_nothing() {
    let memory = Memory::Plain;
    Eal::init(&EalOptions { megabytes: 64, memory, ..EalOptions::default() }).unwrap();
    let pool = BufferPool::new("clients-test", 255, 2048, 0, None).unwrap();
    for conduct in [Conduct::Refused, Conduct::RefusedLong, Conduct::Absurd] {
        let mut client = client(conduct, 3, pool);
        let sent = client.act();
        assert!(sent > 0, "{}", conduct.name());
        // A round may look at some channels, and take some packets, only.
        (0..2000).for_each(|now| _ = client.round(now));
        let ClientCounters { refused, no_buffer, sent: went, .. } = &*client.counters;
        assert_eq!(refused.get() + no_buffer.get(), sent, "{}", conduct.name());
        assert_eq!((went.get(), pool.available()), (0, 255));
        // All slots came back.
        assert_eq!(client.act(), sent);
    }
    let mut client = client(Conduct::Garbage, 2, pool);
    for now in 0..500 {
        assert_eq!(client.act(), client.ends.segment.length() as u64);
        client.round(now);
        assert_eq!(pool.available(), 255);
    }
    let ClientCounters { refused, malformed, .. } = &*client.counters;
    assert!(refused.get() > 0 && malformed.get() > 0);
}

#[test]
fn every_conduct_has_a_name_of_its_own_and_nobody_comes_first() {
    let names: std::collections::HashSet<_> =
        Conduct::ALL.iter().map(|conduct| conduct.name()).collect();
    assert_eq!((names.len(), Conduct::ALL[0]), (Conduct::ALL.len(), Conduct::Nobody));
}
