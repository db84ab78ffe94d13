//! `stack-input`: packets that stacks have sent, from their IP header on. Each is judged here, after it was copied out of
//! the stack's memory; what may go on is routed as what the router itself sends.
//!
//! Needs `network`, and in `stack` who has sent the packet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use graph::{CAPACITY, Context, Node, Picked, Reason, Slot, Vector};
use shm::session::TransportProtocol;
use wire::{Protocol, ipv4, ipv6, special, tcp, udp};

use super::family::{self, Family, V4, V6};
use super::ip6_fragment;
use crate::state::{State, reserved};
use crate::steering::{Flow, SteeringReader};

graph::edges! {
    /// Next nodes of `stack-input`.
    pub(crate) Next {
        Output4 => "ip4-output",
        Output6 => "ip6-output",
        Fragment6 => "ip6-fragment",
    }
}

/// The node.
pub(crate) struct StackInput {
    judge: Judge,
    four: Sound<V4>,
    six: Sound<V6>,
}

impl StackInput {
    /// The node; the routes say which addresses are the router's own.
    #[must_use]
    pub(crate) fn new(state: State, steering: SteeringReader) -> Self {
        Self { judge: Judge { state, steering }, four: Sound::new(), six: Sound::new() }
    }
}

/// Whose addresses and ports are whose.
struct Judge {
    state: State,
    steering: SteeringReader,
}

/// Packets of one version whose headers are sound, and what these say. It is kept from vector to vector: to clear arrays for a
/// whole one takes longer than to judge the few packets that a round mostly brings.
struct Sound<F: Family> {
    slots: Vec<Slot>,
    sources: Vec<F::Key>,
    flows: Vec<Flow>,
    /// What the routes say of the sources.
    values: Vec<u32>,
}

impl<F: Family> Sound<F> {
    fn new() -> Self {
        Self {
            slots: Vec::with_capacity(CAPACITY),
            sources: Vec::with_capacity(CAPACITY),
            flows: Vec::with_capacity(CAPACITY),
            values: Vec::with_capacity(CAPACITY),
        }
    }

    fn clear(&mut self) {
        self.slots.clear();
        self.sources.clear();
        self.flows.clear();
        self.values.clear();
    }

    fn push(&mut self, slot: Slot, source: F::Key, flow: Flow) {
        self.slots.push(slot);
        self.sources.push(source);
        self.flows.push(flow);
    }

    /// Judges them, and lets those go on that may.
    fn pass(&mut self, judge: &Judge, cx: &mut Context<'_, Next>, next: Next) {
        let Self { slots, sources, flows, values } = self;
        if slots.is_empty() {
            return;
        }
        values.resize(sources.len(), 0);
        F::look_up(&judge.state, sources, values);
        let (mut good, mut long) = (Picked::new(), Picked::new());
        for ((&slot, flow), &value) in slots.iter().zip(flows.iter()).zip(values.iter()) {
            let Some(id) = cx.vector.stack[usize::from(slot)] else { continue };
            if value != reserved::LOCAL {
                cx.refuse_of(slot, id, Reason::StackSource);
            } else if !judge.steering.lets_send(id, flow) {
                cx.refuse_of(slot, id, Reason::StackPort);
            } else if is_to_be_cut(cx.vector.network(slot)) {
                long.push(slot);
            } else {
                good.push(slot);
            }
        }
        cx.send_all(good.of(slots), next);
        cx.send_all(long.of(slots), Next::Fragment6);
    }
}

impl Node for StackInput {
    type Next = Next;

    fn name(&self) -> &'static str {
        super::FROM_STACK
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let Self { judge, four, six } = self;
        four.clear();
        six.clear();
        for &slot in slots {
            let Some(id) = cx.vector.stack[usize::from(slot)] else {
                cx.drop(slot, Reason::StackGone);
                continue;
            };
            match flow_of(cx.vector.network(slot)) {
                Ok(flow) => match flow.local.ip() {
                    IpAddr::V4(source) => four.push(slot, source.to_bits(), flow),
                    IpAddr::V6(source) => six.push(slot, source.to_bits(), flow),
                },
                Err(reason) => cx.refuse_of(slot, id, reason),
            }
        }
        four.pass(judge, cx, Next::Output4);
        six.pass(judge, cx, Next::Output6);
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        let packet = family::describe(vector.network(slot));
        match vector.stack[usize::from(slot)] {
            Some(id) => format!("from stack {id}: {packet}"),
            None => packet,
        }
    }
}

/// The flow that a whole packet says it is of, whatever it holds.
fn flow_of(packet: &[u8]) -> Result<Flow, Reason> {
    let Parts { source, destination, protocol, upper } = match packet.first().map(|byte| byte >> 4)
    {
        Some(4) => of4(packet)?,
        Some(6) => of6(packet)?,
        _ => return Err(Reason::StackMalformed),
    };
    let (protocol, shortest) = match protocol {
        Protocol::TCP => (TransportProtocol::Tcp, tcp::HEADER_LENGTH),
        Protocol::UDP => (TransportProtocol::Udp, udp::HEADER_LENGTH),
        _ => return Err(Reason::StackProtocol),
    };
    match upper {
        [a, b, c, d, ..] if upper.len() >= shortest => Ok(Flow {
            protocol,
            local: SocketAddr::new(source, u16::from_be_bytes([*a, *b])),
            remote: SocketAddr::new(destination, u16::from_be_bytes([*c, *d])),
        }),
        _ => Err(Reason::StackMalformed),
    }
}

/// What the IP header says, and what follows it.
struct Parts<'a> {
    source: IpAddr,
    destination: IpAddr,
    protocol: Protocol,
    upper: &'a [u8],
}

fn of4(packet: &[u8]) -> Result<Parts<'_>, Reason> {
    let header = ipv4::Header::parse(packet).map_err(|_| Reason::StackMalformed)?;
    let whole = usize::from(header.total_length()) == packet.len();
    // A source route would lead the answer elsewhere; no stack needs an option.
    if !whole || header.has_options() || header.ttl() == 0 {
        return Err(Reason::StackMalformed);
    }
    if header.is_fragment() {
        return Err(Reason::StackFragment);
    }
    if !is_routed4(header.destination()) {
        return Err(Reason::StackDestination);
    }
    let upper = packet.get(header.header_length()..).ok_or(Reason::StackMalformed)?;
    Ok(Parts {
        source: header.source().into(),
        destination: header.destination().into(),
        protocol: header.protocol(),
        upper,
    })
}

fn of6(packet: &[u8]) -> Result<Parts<'_>, Reason> {
    let header = ipv6::Header::parse(packet).map_err(|_| Reason::StackMalformed)?;
    if header.total_length() != packet.len() || header.hop_limit() == 0 {
        return Err(Reason::StackMalformed);
    }
    if !is_routed6(header.destination()) {
        return Err(Reason::StackDestination);
    }
    let (protocol, upper) = if header.next_header() == Protocol::FRAGMENT {
        // A datagram that is whole says in this way that it is to be cut; segments never have to be.
        ip6_fragment::whole(packet)
            .map(|(fragment, upper)| (fragment.next_header, upper))
            .filter(|(protocol, _)| *protocol == Protocol::UDP)
            .ok_or(Reason::StackFragment)?
    } else {
        // Other extension headers are a protocol that stacks do not send.
        let upper = packet.get(ipv6::HEADER_LENGTH..).ok_or(Reason::StackMalformed)?;
        (header.next_header(), upper)
    };
    let (source, destination) = (header.source().into(), header.destination().into());
    Ok(Parts { source, destination, protocol, upper })
}

/// Whether a packet that was found good has a fragment header.
fn is_to_be_cut(packet: &[u8]) -> bool {
    ipv6::Header::peek(packet).is_some_and(|header| header.next_header() == Protocol::FRAGMENT)
}

/// A packet to anything but one host does not leave by the routes.
fn is_routed4(address: Ipv4Addr) -> bool {
    special::classify_v4(address).is_none()
}

fn is_routed6(address: Ipv6Addr) -> bool {
    special::classify_v6(address).is_none()
}
