//! `ip4-rewrite`, `ip6-rewrite`: hop count, MTU, new Ethernet header, and off to the egress port.
//! Their twins `ip4-send` and `ip6-send` leave the hop count of packets made here alone.
//!
//! Needs `interface`, `network` and `next_hop`. What has no address to send to is disposed of. Most packets go straight to a
//! port; those whose next hop names another node, or whose egress interface has features, get `egress` and go there.

use dpdk::Buffer;
use graph::{Context, Edge as _, Exits, InterfaceId, Node, Reason, Slot, Vector};

use super::disposal::{Edges, dispose, refuse};
use super::family::Family;
use crate::state::{Kind, NextHop, NextNode, State, Words};

graph::edges! {
    /// Next nodes of a rewrite.
    pub(crate) Next {
        Fragment => "ip4-fragment",
        Error => "icmp-error",
        Bridge => "bridge-output",
        Local => "ip-local",
        Reflect => "reflect",
        Port => "port-output",
        Features => "output-features",
    }
}

/// Length of an untagged Ethernet header, and of a VLAN tag: bytes.
const HEADER: usize = 14;
const TAG: usize = 4;

const EDGES: Edges<Next> = Edges { local: Next::Local, error: Next::Error, reflect: Next::Reflect };

/// The node.
pub(crate) struct Rewrite<F: Family> {
    state: State,
    made_here: bool,
    family: std::marker::PhantomData<F>,
}

impl<F: Family> Rewrite<F> {
    /// The node for packets on their way through.
    #[must_use]
    pub(crate) fn forwarding(state: State) -> Self {
        Self { state, made_here: false, family: std::marker::PhantomData }
    }

    /// The node for packets that were made here.
    #[must_use]
    pub(crate) fn output(state: State) -> Self {
        Self { made_here: true, ..Self::forwarding(state) }
    }

    /// Sends the first slots up to one that is not as most packets are, and returns how many it sent.
    /// Most are as long as the egress takes, have hops left, and a next hop by a port. `TAGS`: with VLAN tags, in or out, for
    /// which the header's length has to be changed.
    #[inline(never)]
    fn send_plain<const MADE_HERE: bool, const TAGS: bool>(
        &self,
        slots: &[Slot],
        vector: &mut Vector,
        exits: &mut Exits,
        now: u64,
    ) -> usize {
        let next_hops = self.state.next_hops.reader();
        for (sent, &slot) in slots.iter().enumerate() {
            let at = usize::from(slot);
            let index = vector.next_hop[at];
            let hop = next_hops.words(index);
            let network = usize::from(vector.network[at]);
            let Some(buffer) = vector.buffers[at].as_mut() else { continue };
            let fits = TAGS || network == HEADER;
            if !(fits && write::<F, MADE_HERE, TAGS>(hop, buffer, network)) {
                return sent;
            }
            if hop.is_stale() {
                self.state.next_hops.mark_used(index);
            }
            if let Some(buffer) = vector.buffers[at].take() {
                exits.transmit(buffer, hop.port(), now);
            }
        }
        slots.len()
    }

    /// One packet, whatever it is.
    fn general(&self, slot: Slot, cx: &mut Context<'_, Next>) {
        let at = usize::from(slot);
        let index = cx.vector.next_hop[at];
        let hop = self.state.next_hops.get(index);
        if !hop.kind.has_address() {
            dispose::<F, Next>(cx, slot, hop.kind, EDGES);
            return;
        }
        let network = usize::from(cx.vector.network[at]);
        let Some(buffer) = cx.vector.buffers[at].as_mut() else { return };
        let too_long = buffer.len() > network + usize::from(hop.mtu);
        let Some(packet) = buffer.data_mut().get_mut(network..) else { return };
        // RFC 1812 5.2.1.2: the hop count comes before the length. What is too long is left as it came.
        let lives = match (self.made_here, too_long) {
            (true, _) => true,
            (false, true) => !F::is_last_hop(packet),
            (false, false) => F::decrement(packet),
        };
        if !lives {
            refuse(cx, slot, F::EXPIRED, Next::Error);
            return;
        }
        if too_long {
            self.too_big(cx, slot, hop.mtu);
            return;
        }
        if !write_header(buffer, network, &hop, F::ETHER_TYPE) {
            cx.drop(slot, Reason::NoBuffer);
            return;
        }
        if hop.kind == Kind::ForwardStale {
            self.state.next_hops.mark_used(index);
        }
        cx.vector.egress[at] = hop.interface;
        cx.vector.network[at] = length(hop.vlan) as u16;
        match hop.next {
            next if hop.features => cx.detour(slot, Next::Features, edge(next)),
            // As `port-output` does.
            NextNode::Port => cx.transmit(slot, hop.port),
            next => cx.send(slot, edge(next)),
        }
    }

    #[cold]
    fn too_big(&self, cx: &mut Context<'_, Next>, slot: Slot, mtu: u16) {
        match F::too_big(cx.vector.network(slot), mtu) {
            None => cx.send(slot, Next::Fragment),
            // A stack wants to know; the router itself has nobody to tell.
            Some(refusal) if self.made_here && !is_of_stack(cx.vector, slot) => {
                cx.drop(slot, refusal.reason);
            }
            Some(refusal) => refuse(cx, slot, refusal, Next::Error),
        }
    }
}

impl<F: Family> Node for Rewrite<F> {
    type Next = Next;

    fn name(&self) -> &'static str {
        F::NAMES.rewrite[usize::from(self.made_here)]
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let mut rest = slots;
        let mut tags = false;
        while let [slot, after @ ..] = rest {
            let plain = match (self.made_here, tags) {
                (true, true) => Self::send_plain::<true, true>,
                (true, false) => Self::send_plain::<true, false>,
                (false, true) => Self::send_plain::<false, true>,
                (false, false) => Self::send_plain::<false, false>,
            };
            let sent = plain(self, rest, cx.vector, cx.exits, cx.now);
            rest = rest.get(sent..).unwrap_or(&[]);
            if sent > 0 {
                continue;
            }
            if tags {
                self.general(*slot, cx);
                rest = after;
            }
            tags = !tags;
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        let hop = self.state.next_hops.get(vector.next_hop[usize::from(slot)]);
        if !hop.kind.has_address() {
            return format!("not to be sent: {:?}", hop.kind);
        }
        let tag = hop.vlan.map(|tag| format!(", VLAN {}", tag & 0xfff)).unwrap_or_default();
        format!(
            "to {} from {}{tag} on port {}, interface {}, MTU {}",
            hop.destination, hop.source, hop.port, hop.interface, hop.mtu
        )
    }
}

impl NextHop {
    /// Name of the node that gets a packet when its new Ethernet header is written.
    #[must_use]
    pub fn node(&self) -> &'static str {
        let next = if self.features { Next::Features } else { edge(self.next) };
        next.target().unwrap_or_default()
    }
}

/// Makes the frame for its egress port of a packet whose next hop is by a port: one hop less, the new Ethernet header.
/// `false`, and no change, when the packet is not as most are: longer than the egress takes, on its last hop, or with another
/// next hop. `TAGS`: with VLAN tags, in or out, for which the header's length has to be changed; without them `network` is the
/// length of a header without tag.
#[inline(always)]
pub(super) fn write<F: Family, const MADE_HERE: bool, const TAGS: bool>(
    hop: Words,
    buffer: &mut Buffer,
    network: usize,
) -> bool {
    let leaves = if TAGS { hop.leaves() } else { hop.is_plain() };
    leaves && write_leaving::<F, MADE_HERE, TAGS>(hop, buffer, network)
}

/// As [`write`], with a next hop that is known to be by a port.
#[inline(always)]
pub(super) fn write_leaving<F: Family, const MADE_HERE: bool, const TAGS: bool>(
    hop: Words,
    buffer: &mut Buffer,
    network: usize,
) -> bool {
    if buffer.len() > network + usize::from(hop.mtu()) {
        return false;
    }
    let tag = if TAGS { hop.tag() } else { None };
    let length = length(tag);
    if TAGS && network != length {
        // What is refused below must not have been moved.
        let refused = |packet| !MADE_HERE && F::is_last_hop(packet);
        if buffer.data().get(network..).is_none_or(refused) || !shift(buffer, network, length) {
            return false;
        }
    }
    // One comparison for both headers.
    let Some(headers) = buffer.data_mut().get_mut(..length + F::HEADER_LENGTH) else {
        return false;
    };
    let Some((header, packet)) = headers.split_at_mut_checked(length) else { return false };
    if !MADE_HERE && !F::decrement(packet) {
        return false;
    }
    let (front, rest) = hop.addresses();
    put_header(header, front, rest, tag, F::ETHER_TYPE);
    true
}

/// The edge to the node that a next hop names.
fn edge(next: NextNode) -> Next {
    match next {
        NextNode::Port => Next::Port,
        NextNode::Bridge => Next::Bridge,
    }
}

/// Length of a header with this VLAN tag: bytes.
#[inline(always)]
fn length(tag: Option<u16>) -> usize {
    if tag.is_some() { HEADER + TAG } else { HEADER }
}

fn is_of_stack(vector: &Vector, slot: Slot) -> bool {
    vector.interface[usize::from(slot)] == InterfaceId::NONE
}

/// Puts the next hop's Ethernet header (and tag) right before the network header. `false` when the
/// headroom is too small.
#[inline(always)]
fn write_header(
    buffer: &mut Buffer,
    network: usize,
    hop: &NextHop,
    ether_type: wire::EtherType,
) -> bool {
    let length = length(hop.vlan);
    if network != length && !shift(buffer, network, length) {
        return false;
    }
    let Some(header) = buffer.data_mut().get_mut(..length) else { return false };
    let [d0, d1, d2, d3, d4, d5] = hop.destination.octets();
    let [s0, s1, s2, s3, s4, s5] = hop.source.octets();
    let (front, rest) = ([d0, d1, d2, d3, d4, d5, s0, s1], [s2, s3, s4, s5]);
    put_header(header, front, rest, hop.vlan, ether_type);
    true
}

/// Writes a header of the right length: both addresses, a tag and the EtherType.
#[inline(always)]
fn put_header(
    header: &mut [u8],
    front: [u8; 8],
    rest: [u8; 4],
    tag: Option<u16>,
    ether_type: wire::EtherType,
) {
    let [t0, t1] = ether_type.0.to_be_bytes();
    let [a, b, c, d] = rest;
    if let Some((start, end)) = header.split_first_chunk_mut::<8>() {
        *start = front;
        if let Some(tag) = tag {
            let [v0, v1] = tag.to_be_bytes();
            if let Some(end) = end.first_chunk_mut() {
                *end = [a, b, c, d, 0x81, 0x00, v0, v1, t0, t1];
            }
        } else if let Some(end) = end.first_chunk_mut() {
            *end = [a, b, c, d, t0, t1];
        }
    }
}

/// Makes `length` bytes before the network header out of `network`. `false`, and no change, when there is no headroom.
fn shift(buffer: &mut Buffer, network: usize, length: usize) -> bool {
    if network > length {
        buffer.adjust(network - length)
    } else {
        buffer.prepend(length - network).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_next_hop_names_the_node_that_its_packets_go_to() {
        let hop = NextHop::of_kind(Kind::Forward);
        let node = |next, features| NextHop { next, features, ..hop }.node();
        assert_eq!(node(NextNode::Port, false), "port-output");
        assert_eq!(node(NextNode::Bridge, false), "bridge-output");
        assert_eq!(node(NextNode::Bridge, true), "output-features");
    }
}
