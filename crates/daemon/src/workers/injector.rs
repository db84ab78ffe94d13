//! Packets that the control thread sends: frames of its own, and packets that it held for a neighbour.

use dpdk::BufferPool;
use forward::nodes;
use graph::{Entry, Handoff, HandoffSender, InterfaceId, Reason};
use wire::EtherType;
use wire::ethernet::HEADER_LENGTH;

use super::Entries;

/// Shortest Ethernet frame without its check sequence: bytes (IEEE 802.3 3.2.8).
const SHORTEST_FRAME: usize = 60;

/// Workers that are tried for one packet at most: however many there are, a packet costs the control thread no more.
const TRIES: usize = 4;

/// The control thread's way into the workers' graphs, and what it dropped on that way.
pub(crate) struct Injector {
    senders: Vec<HandoffSender<Entry>>,
    entries: Entries,
    pool: BufferPool,
    next: usize,
    dropped: [u64; Reason::COUNT],
}

impl Injector {
    pub(super) fn new(
        senders: Vec<HandoffSender<Entry>>,
        entries: Entries,
        pool: BufferPool,
    ) -> Self {
        Self { senders, entries, pool, next: 0, dropped: [0; Reason::COUNT] }
    }

    /// Sends a frame out of an interface; a short one is padded.
    pub(crate) fn send(&mut self, interface: InterfaceId, frame: &[u8]) {
        let Some(node) = self.entries.node("interface-output") else { return };
        let length = frame.len().max(SHORTEST_FRAME);
        let buffer = self.pool.alloc().and_then(|mut buffer| {
            let room = buffer.append(length)?;
            let (head, padding) = room.split_at_mut_checked(frame.len())?;
            head.copy_from_slice(frame);
            padding.fill(0);
            Some(buffer)
        });
        let Some(buffer) = buffer else { return self.count_drop(Reason::NoBuffer) };
        let packet = Handoff { interface, egress: interface, ..Handoff::of(buffer) };
        self.inject(Entry { node, packet });
    }

    /// Sends an IP packet by the routes, as what the router itself sends.
    pub(crate) fn send_routed(&mut self, packet: &[u8]) {
        let six = packet.first().is_some_and(|byte| byte >> 4 == 6);
        let (name, kind) =
            if six { ("ip6-output", EtherType::IPV6) } else { ("ip4-output", EtherType::IPV4) };
        let Some(node) = self.entries.node(name) else { return };
        let buffer = self.pool.alloc().and_then(|mut buffer| {
            let room = buffer.append(HEADER_LENGTH + packet.len())?;
            let (link, rest) = room.split_at_mut_checked(HEADER_LENGTH)?;
            // Filters of traces and captures understand it by its EtherType.
            let (addresses, label) = link.split_at_mut_checked(HEADER_LENGTH - 2)?;
            addresses.fill(0);
            label.copy_from_slice(&kind.0.to_be_bytes());
            rest.copy_from_slice(packet);
            Some(buffer)
        });
        let Some(buffer) = buffer else { return self.count_drop(Reason::NoBuffer) };
        let (interface, network) = (InterfaceId::NONE, HEADER_LENGTH as u16);
        let packet = Handoff { interface, network, ..Handoff::of(buffer) };
        self.inject(Entry { node, packet });
    }

    /// Lets a packet that waited for a neighbour go on at the worker that it came from, where the later packets of its
    /// flow are: so they keep their order.
    pub(crate) fn release(&mut self, worker: usize, packet: Handoff) {
        let Some(node) = self.entries.node(nodes::RELEASED) else { return };
        let Some(sender) = self.senders.get_mut(worker) else { return };
        if let Err(Entry { packet, .. }) = sender.push(Entry { node, packet }) {
            self.drop(packet, Reason::HandoffFull);
        }
    }

    /// Drops a packet, counted.
    pub(crate) fn drop(&mut self, packet: Handoff, reason: Reason) {
        self.count_drop(reason);
        drop(packet);
    }

    /// Packets dropped here for this reason.
    pub(crate) fn dropped(&self, reason: Reason) -> u64 {
        self.dropped.get(reason as usize).copied().unwrap_or(0)
    }

    /// Wakes the workers that packets were sent through.
    pub(crate) fn notify(&mut self) {
        self.senders.iter_mut().for_each(HandoffSender::notify);
    }

    /// The workers take turns; a packet is dropped when the rings of those that are tried are full.
    fn inject(&mut self, mut entry: Entry) {
        for _ in 0..self.senders.len().min(TRIES) {
            self.next = (self.next + 1) % self.senders.len().max(1);
            let Some(sender) = self.senders.get_mut(self.next) else { break };
            match sender.push(entry) {
                Ok(()) => return,
                Err(back) => entry = back,
            }
        }
        self.drop(entry.packet, Reason::HandoffFull);
    }

    fn count_drop(&mut self, reason: Reason) {
        if let Some(count) = self.dropped.get_mut(reason as usize) {
            *count += 1;
        }
    }
}

#[cfg(test)]
impl Injector {
    /// The node where released packets enter, in tests.
    pub(crate) const RELEASED: graph::NodeId = graph::NodeId(7);

    /// An injector for so many workers that do not run, and what each would get.
    pub(crate) fn bench(workers: usize, room: usize) -> (Self, Vec<graph::HandoffReceiver<Entry>>) {
        let ring = |_| graph::ring(room, graph::Doorbell::new().unwrap().into());
        let (senders, receivers) = (0..workers).map(ring).unzip();
        let entries = [(nodes::RELEASED, Self::RELEASED)].into_iter().collect();
        (Self::new(senders, Entries(entries), crate::testing::pool()), receivers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_costs_no_more_with_more_workers() {
        const WORKERS: usize = 64;
        let (mut injector, mut rings) = Injector::bench(WORKERS, 1);
        let send = |injector: &mut Injector| {
            let buffer = injector.pool.alloc().unwrap();
            injector.inject(Entry::of(buffer, Injector::RELEASED));
        };
        (0..WORKERS).for_each(|_| send(&mut injector));
        assert!(rings.iter().all(|ring| ring.slots() == 1), "they take turns");
        // The next ones have no room; one further on has.
        let emptied = (injector.next + TRIES + 1) % WORKERS;
        rings[emptied].pop().unwrap();
        send(&mut injector);
        assert_eq!(injector.dropped(Reason::HandoffFull), 1);
        send(&mut injector);
        assert_eq!(injector.dropped(Reason::HandoffFull), 1, "it is tried the next time");
        assert_eq!(rings[emptied].slots(), 1);
    }
}
