//! `ip-local`: packets to this router itself. What a stack serves, or has sent for, is delivered to it. Of the rest,
//! echo requests are answered, neighbour discovery goes to the control thread, TCP segments are reset, all else is
//! refused as a host without that service refuses it. Fragments are put together first.
//!
//! Needs `interface` and `network`.

mod fragment;
mod judge;
mod reset;

use std::net::IpAddr;

use dpdk::{BufferPool, Checksum};
use graph::{Context, Handoff, InterfaceId, Node, Reason, Slot, StackId, Vector};
use shm::session::GOOD_CHECKSUM;
use wire::{MacAddr, icmpv4, icmpv6, ipv4, ipv6};

use self::judge::{Verdict, judge};
use self::reset::Reset;
use super::bucket::TokenBucket;
use super::disposal::refuse;
use super::family::{Refusal, icmp, kind4, kind6};
use super::fragment::filled;
use super::local_reply::{self, ReplyPath};
use super::snapshot::Snapshot;
use crate::Cause;
use crate::reassembly::{Added, Expired, Reassembly};
use crate::state::{DEFAULT_VRF, Interfaces, Settings, State, reserved};
use crate::steering::SteeringReader;

graph::edges! {
    /// Next nodes of `ip-local`.
    pub(crate) Next {
        Output4 => "ip4-output",
        Output6 => "ip6-output",
        Vrf4 => "ip4-vrf-output",
        Vrf6 => "ip6-vrf-output",
        Interface => "interface-output",
        Error => "icmp-error",
    }
}

/// A fragment that is not the last one, and no multiple of 8 bytes: the field that is wrong is the payload length.
const UNEVEN: Refusal = Refusal {
    error: icmp(kind6::PARAMETER_PROBLEM, icmpv6::parameter_problem::FIELD, 4),
    reason: Reason::LocalFragment,
};

/// The node.
pub(crate) struct IpLocal {
    interfaces: Snapshot<Interfaces>,
    settings: Snapshot<Settings>,
    state: State,
    steering: SteeringReader,
    pool: BufferPool,
    reassembly: Reassembly,
    resets: TokenBucket,
}

impl IpLocal {
    /// The node, reading these interfaces and stacks; answers too long for one buffer come from `pool`. The settings give
    /// the rate of resets, which is that of ICMP errors.
    #[must_use]
    pub(crate) fn new(
        interfaces: Snapshot<Interfaces>,
        mut settings: Snapshot<Settings>,
        state: State,
        steering: SteeringReader,
        pool: BufferPool,
    ) -> Self {
        let Settings { icmp_rate, tsc_hz, .. } = *settings.get();
        let resets = TokenBucket::new(icmp_rate, tsc_hz);
        let reassembly = Reassembly::default();
        Self { interfaces, settings, state, steering, pool, reassembly, resets }
    }

    /// Keeps a fragment in mind; a datagram that it completes is delivered or answered. `false`: the packet in
    /// `slot` is none.
    fn take_fragment(&mut self, slot: Slot, cx: &mut Context<'_, Next>) -> bool {
        let vrf = self.interfaces.get().vrf_of(cx.vector.interface[usize::from(slot)]);
        let Some(piece) = fragment::piece(cx.vector, slot, vrf) else { return false };
        let (identification, six) = (piece.key.identification, piece.key.source.is_ipv6());
        match self.reassembly.add(&piece, cx.now) {
            Added::Waits => drop(cx.take(slot)),
            Added::Refused(fragments) => {
                count(cx, Reason::LocalFragment, fragments - 1);
                cx.drop(slot, Reason::LocalFragment);
            }
            // RFC 8200 4.5
            Added::Uneven if six => refuse(cx, slot, UNEVEN, Next::Error),
            Added::Uneven => cx.drop(slot, Reason::LocalFragment),
            Added::Whole(datagram) => self.take_datagram(slot, datagram, identification, cx),
        }
        if let Some(expired) = self.reassembly.make_room() {
            count(cx, Reason::ReassemblyFull, expired.fragments);
        }
        true
    }

    /// A datagram that may be longer than a buffer; `slot` has the fragment that completed it.
    fn take_datagram(
        &mut self,
        slot: Slot,
        mut datagram: Vec<u8>,
        identification: u32,
        cx: &mut Context<'_, Next>,
    ) {
        if fragment::settle(&mut datagram).is_none() {
            cx.drop(slot, Reason::LocalFragment);
        } else if let Some(id) = self.stack_of(cx.vector.interface[usize::from(slot)], &datagram) {
            // Its fragments say the same of where they are from.
            if let Some(reason) = self.pretends(cx.vector, slot) {
                return cx.drop(slot, reason);
            }
            cx.exits.deliver_long(id, datagram, 0);
            // It lives on in the datagram.
            drop(cx.take(slot));
        } else {
            self.answer(slot, &mut datagram, identification, cx);
        }
    }

    /// Answers such a datagram.
    fn answer(
        &mut self,
        slot: Slot,
        datagram: &mut [u8],
        identification: u32,
        cx: &mut Context<'_, Next>,
    ) {
        let id = cx.vector.interface[usize::from(slot)];
        let interfaces = self.interfaces.get();
        let verdict = judge(datagram, answers(interfaces, self.settings.get(), id));
        match verdict {
            Verdict::Drop(reason) => cx.drop(slot, reason),
            // RFC 6980: neighbour discovery does not come in fragments.
            Verdict::Punt(_) => cx.drop(slot, Reason::LocalFragment),
            Verdict::Refuse(_) | Verdict::Reset => {
                let Some(head) = fragment::head(cx.vector, slot, datagram, &self.pool) else {
                    cx.drop(slot, Reason::NoBuffer);
                    return;
                };
                let reset = Reset::of(datagram, false);
                drop(cx.vector.buffers[usize::from(slot)].replace(head));
                match verdict {
                    Verdict::Refuse(refusal) => refuse(cx, slot, refusal, Next::Error),
                    _ => self.reset(slot, reset, cx),
                }
            }
            Verdict::Reply(to) => {
                let mtu = interfaces.get(id).map_or(0, |interface| interface.mtu);
                let peer = local_reply::peer(cx.vector, slot);
                let link = local_reply::link(interfaces, id, to, peer);
                let cut = fragment::cut(datagram, identification, mtu, link, &self.pool);
                let Some(parts) = cut else {
                    cx.drop(slot, Reason::NoBuffer);
                    return;
                };
                let vrf = interfaces.vrf_of(id);
                let path = match link {
                    Some(_) => ReplyPath::Link,
                    None => ReplyPath::routed(vrf, to),
                };
                for buffer in parts {
                    let part = Handoff { interface: id, egress: id, vrf, ..Handoff::of(buffer) };
                    cx.originate(part, path.into());
                }
                // It lives on in the answer.
                drop(cx.take(slot));
            }
        }
    }

    /// Whether the packet came from a network and says that it is from this router itself, whose stacks trust that no
    /// further than this. Gives what it is dropped for.
    fn pretends(&mut self, vector: &Vector, slot: Slot) -> Option<Reason> {
        if vector.interface[usize::from(slot)] == InterfaceId::NONE || !self.settings.get().martians
        {
            return None;
        }
        let packet = vector.network(slot);
        let mut value = [reserved::MISS];
        let reason = if let Some(header) = ipv4::Header::peek(packet) {
            self.state.routes4.lookup_batch(&[header.source().to_bits()], &mut value);
            Reason::Ip4MartianSource
        } else {
            let source = ipv6::Header::peek(packet)?.source();
            self.state.routes6.lookup_batch(&[source.to_bits()], &mut value);
            Reason::Ip6MartianSource
        };
        (value == [reserved::LOCAL]).then_some(reason)
    }

    /// The stack that a packet is for. Stacks are in the default VRF: what came in by another one is for none. Nor is what
    /// the router objects to.
    fn stack_of(&mut self, interface: InterfaceId, packet: &[u8]) -> Option<StackId> {
        let id = self.steering.stack_of(packet)?;
        let interfaces = self.interfaces.get();
        let here = interfaces.vrfs.is_empty() || interfaces.vrf_of(interface) == DEFAULT_VRF;
        (here && ipv6::objection(packet).is_none()).then_some(id)
    }

    /// Gives the packet in `slot` to a stack.
    fn deliver(slot: Slot, id: StackId, cx: &mut Context<'_, Next>) {
        let good = |buffer: &dpdk::Buffer| buffer.l4_checksum() == Checksum::Good;
        let flags = if cx.vector.buffer(slot).is_some_and(good) { GOOD_CHECKSUM } else { 0 };
        cx.deliver(slot, id, flags);
    }

    /// Answers the segment in `slot` with a reset, if it may be.
    fn reset(&mut self, slot: Slot, reset: Result<Reset, Reason>, cx: &mut Context<'_, Next>) {
        if self.steering.is_quiet() {
            return cx.drop(slot, Reason::LocalPort);
        }
        let id = cx.vector.interface[usize::from(slot)];
        let (interfaces, settings) = (self.interfaces.get(), self.settings.get());
        let reset = match reset {
            Ok(reset) if reaches_many(interfaces, settings, id, reset.to()) => {
                return cx.drop(slot, Reason::ResetNotAllowed);
            }
            Ok(reset) if self.resets.take(cx.now) => reset,
            Ok(_) => return cx.drop(slot, Reason::ResetRateLimited),
            Err(reason) => return cx.drop(slot, reason),
        };
        let at = usize::from(slot);
        cx.exits.refuse(&cx.vector.buffers[at], Reason::LocalPort);
        let network = usize::from(cx.vector.network[at]);
        let peer = local_reply::peer(cx.vector, slot);
        let Some(buffer) = cx.vector.buffer_mut(slot) else { return };
        match reset.write(buffer, network) {
            Some(to) => self.send(slot, to, peer, cx),
            None => cx.drop(slot, Reason::NoBuffer),
        }
    }

    /// The SYN in `slot` waits for somebody to serve where it goes to, if so many may as are answered otherwise.
    fn let_wait(&mut self, slot: Slot, cx: &mut Context<'_, Next>) {
        if self.resets.take(cx.now) {
            cx.punt(slot, Cause::Early as u16);
        } else {
            cx.drop(slot, Reason::LocalPort);
        }
    }

    /// A packet made here in `slot` goes to an address; what it was made of came from `peer`.
    fn send(&mut self, slot: Slot, to: IpAddr, peer: MacAddr, cx: &mut Context<'_, Next>) {
        match local_reply::prepare(cx.vector, slot, self.interfaces.get(), to, peer) {
            Some(path) => cx.send(slot, path.into()),
            None => cx.drop(slot, Reason::NoBuffer),
        }
    }

    /// A packet in one piece that no stack has.
    fn take_own(&mut self, slot: Slot, cx: &mut Context<'_, Next>) {
        let at = usize::from(slot);
        let network = usize::from(cx.vector.network[at]);
        let interfaces = self.interfaces.get();
        let id = cx.vector.interface[at];
        let here = interfaces.vrf_of(id) == DEFAULT_VRF;
        let peer = local_reply::peer(cx.vector, slot);
        let Some(buffer) = cx.vector.buffer_mut(slot) else { return };
        let verified = buffer.l4_checksum() == Checksum::Good;
        let packet = buffer.data_mut().get_mut(network..).unwrap_or(&mut []);
        match judge(packet, answers(interfaces, self.settings.get(), id)) {
            Verdict::Drop(reason) => cx.drop(slot, reason),
            Verdict::Punt(cause) => cx.punt(slot, cause as u16),
            Verdict::Refuse(refusal) => refuse(cx, slot, refusal, Next::Error),
            Verdict::Reset if here && self.steering.is_early(packet) => self.let_wait(slot, cx),
            Verdict::Reset => {
                let reset = Reset::of(packet, verified);
                self.reset(slot, reset, cx);
            }
            Verdict::Reply(to) => self.send(slot, to, peer, cx),
        }
    }

    /// Gives up datagrams whose fragments did not all come in time, and tells their senders (RFC
    /// 1122 3.3.2, RFC 8200 4.5).
    fn give_up_late(&mut self, tsc_hz: u64, cx: &mut Context<'_, Next>) {
        while let Some(Expired { fragments, first }) = self.reassembly.expire(cx.now, tsc_hz) {
            count(cx, Reason::ReassemblyTimeout, fragments);
            let Some(first) = first else { continue };
            let Some(buffer) = filled(&self.pool, &[&first.frame]) else { continue };
            let six = first.frame.get(first.network).is_some_and(|byte| byte >> 4 == 6);
            let kind = if six { kind6::TIME_EXCEEDED } else { kind4::TIME_EXCEEDED };
            let icmp_error = icmp(kind, icmpv4::time_exceeded::REASSEMBLY, 0);
            let network = u16::try_from(first.network).unwrap_or(0);
            let quoted =
                Handoff { interface: first.interface, network, icmp_error, ..Handoff::of(buffer) };
            cx.originate(quoted, Next::Error);
        }
    }
}

impl From<ReplyPath> for Next {
    fn from(path: ReplyPath) -> Self {
        match path {
            ReplyPath::Routed4 => Self::Output4,
            ReplyPath::Routed6 => Self::Output6,
            ReplyPath::Vrf4 => Self::Vrf4,
            ReplyPath::Vrf6 => Self::Vrf6,
            ReplyPath::Link => Self::Interface,
        }
    }
}

/// From which address to answer what was asked of one address by another, if it is to be answered.
fn answers<'a>(
    interfaces: &'a Interfaces,
    settings: &'a Settings,
    id: InterfaceId,
) -> impl Fn(IpAddr, IpAddr) -> Option<IpAddr> + 'a {
    move |asked, to| {
        let from = interfaces.answers_from(id, asked, to);
        from.filter(|_| !reaches_many(interfaces, settings, id, to))
    }
}

/// Whether what is sent to an address reaches all hosts of a network. Nobody's packets come from there (RFC 1122 3.2.1.3).
fn reaches_many(
    interfaces: &Interfaces,
    settings: &Settings,
    id: InterfaceId,
    address: IpAddr,
) -> bool {
    settings.directed_broadcast && interfaces.is_directed_broadcast(id, address)
}

/// Counts drops of packets that are no longer in a slot.
fn count(cx: &mut Context<'_, Next>, reason: Reason, packets: usize) {
    cx.exits.counters.drops[reason as usize].add(packets as u64);
}

impl Node for IpLocal {
    type Next = Next;

    fn name(&self) -> &'static str {
        "ip-local"
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let Settings { icmp_rate, tsc_hz, .. } = *self.settings.get();
        self.resets.set_rate(icmp_rate, tsc_hz);
        self.give_up_late(tsc_hz, cx);
        for &slot in slots {
            let interface = cx.vector.interface[usize::from(slot)];
            if let Some(id) = self.stack_of(interface, cx.vector.network(slot)) {
                match self.pretends(cx.vector, slot) {
                    Some(reason) => cx.drop(slot, reason),
                    None => Self::deliver(slot, id, cx),
                }
                continue;
            }
            let chained =
                cx.vector.buffer_mut(slot).is_some_and(|b| b.is_chained() && !b.linearize());
            if chained {
                cx.drop(slot, Reason::NoBuffer);
            } else if !self.take_fragment(slot, cx) {
                self.take_own(slot, cx);
            }
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        let packet = vector.network(slot);
        let interface = vector.interface[usize::from(slot)];
        let here = self.state.interfaces.load().vrf_of(interface) == DEFAULT_VRF;
        let here = here && ipv6::objection(packet).is_none();
        if let Some(id) = self.steering.stack_of(packet).filter(|_| here) {
            return format!("for stack {id}");
        }
        match ipv4::Header::peek(packet) {
            Some(header) => format!("for this router, protocol {}", header.protocol()),
            None => match ipv6::upper_layer(packet) {
                Ok(upper) => format!("for this router, protocol {}", upper.protocol),
                Err(malformed) => format!("for this router, but {malformed}"),
            },
        }
    }
}
