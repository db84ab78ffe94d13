//! Stacks and listeners for people and metrics.

use std::collections::HashMap;

use control::api::{self, StackCounters, StackTcp, Transport};
use control::config::LeasedPorts;
use forward::steering::ListenerView;
use graph::StackId;
use shm::session::TransportProtocol;

use super::links::End;
use super::{Session, Sessions, Stack, connections};

impl Sessions {
    /// Every stack.
    pub(crate) fn show_stacks(&self) -> Vec<api::Stack> {
        self.all()
            .map(|(client, session, number, stack)| {
                let end = End { process: client, stack: number };
                let links = self.links.of(end).map(|(_, other)| other.stack).collect();
                api::Stack { links, ..show(client, session, number, stack) }
            })
            .collect()
    }

    /// Every listener, without what waits at them: a [`Look`](super::Look) sees that.
    pub(crate) fn show_listeners(&self) -> Vec<api::Listener> {
        // Thousands of places in listeners, each of one of thousands of stacks: they are not searched for one by one.
        let all: HashMap<StackId, Known<'_>> = self.all().map(|one| (one.3.id, one)).collect();
        self.steering.listeners().map(|listener| show_listener(&listener, &all)).collect()
    }

    fn all(&self) -> impl Iterator<Item = Known<'_>> {
        self.list.iter().flat_map(|(client, session)| {
            session.stacks.iter().map(move |(number, stack)| (*client, session, *number, stack))
        })
    }
}

/// A process, its number before it; and its stack, with that number.
type Known<'a> = (u32, &'a Session, u32, &'a Stack);

fn show_listener(listener: &ListenerView, all: &HashMap<StackId, Known<'_>>) -> api::Listener {
    let members = listener.members.iter().filter_map(|member| {
        let (client, session, number, stack) = *all.get(&member.stack)?;
        Some(api::ListenerMember {
            stack: number,
            client,
            name: session.name.clone(),
            pid: session.process.credentials.pid,
            uid: session.uid(),
            weight: member.weight,
            share: member.buckets as u16,
            waiting: 0,
            backlog: stack.listeners.get(&listener.id).and_then(|has| has.backlog),
        })
    });
    let bind = &listener.bind;
    let earlier = listener.earlier.iter().filter_map(|id| all.get(id));
    api::Listener {
        number: listener.id,
        protocol: match bind.protocol {
            TransportProtocol::Tcp => Transport::Tcp,
            TransportProtocol::Udp => Transport::Udp,
        },
        address: (bind.address, bind.port).into(),
        only_v6: bind.only_v6,
        members: members.collect(),
        earlier: earlier.map(|(_, _, number, _)| *number).collect(),
    }
}

fn show(client: u32, session: &Session, number: u32, stack: &Stack) -> api::Stack {
    let credentials = &session.process.credentials;
    let last = |first: u16| first.saturating_add(LeasedPorts::LEASE - 1);
    api::Stack {
        number,
        client,
        name: session.name.clone(),
        library: session.library.clone(),
        pid: credentials.pid,
        uid: credentials.uid,
        age: stack.since.elapsed().as_secs(),
        started: stack.is_started(),
        worker: stack.worker,
        memory: (stack.segment.length() + stack.more) as u64,
        rings: stack.counters.len() as u16,
        slots: stack.asked.slots,
        capacity: stack.asked.capacity,
        claims: stack.asked.claims,
        listeners: stack.listeners.keys().copied().collect(),
        leases: stack.leases.iter().map(|first| format!("{first}-{}", last(*first))).collect(),
        links: Vec::new(),
        counters: stack.counted(),
        tcp: match stack.is_started() {
            true => connections::tcp(&stack.connections),
            false => StackTcp::default(),
        },
    }
}

impl Stack {
    /// On all workers.
    fn counted(&self) -> StackCounters {
        let mut sum = StackCounters::default();
        for one in &self.counters {
            let queues = &one.queues;
            sum.delivered += queues.delivered.get();
            sum.delivered_bytes += queues.delivered_bytes.get();
            sum.full += queues.full.get();
            sum.sent += queues.sent.get();
            sum.sent_bytes += queues.sent_bytes.get();
            sum.no_buffer += queues.no_buffer.get();
            sum.malformed += queues.malformed.get();
            for (reason, packets) in one.refused() {
                *sum.refused.entry(reason.name().to_owned()).or_default() += packets;
            }
        }
        sum
    }
}
