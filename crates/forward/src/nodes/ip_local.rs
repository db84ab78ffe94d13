//! `ip-local`: packets to this router itself. Echo requests are answered, neighbour discovery goes
//! to the control thread, all else is refused as a host without that service refuses it. Fragments
//! are put together first.
//!
//! Needs `interface` and `network`.

use std::net::{IpAddr, Ipv6Addr};

use dpdk::BufferPool;
use graph::{Context, Handoff, Node, Reason, Slot, Vector};
use wire::{Protocol, icmpv4, icmpv6, ipv4, ipv6};

use super::disposal::refuse;
use super::family::{Refusal, icmp_word, kind4, kind6};
use super::local_fragment;
use super::local_reply::{self, Way};
use super::snapshot::Snapshot;
use crate::Cause;
use crate::reassembly::{Added, Expired, Reassembly};
use crate::state::Interfaces;

graph::edges! {
    /// Next nodes of `ip-local`.
    pub(crate) Next {
        Output4 => "ip4-output",
        Output6 => "ip6-output",
        Interface => "interface-output",
        Error => "icmp-error",
    }
}

/// Hop count of packets made here.
const HOPS: u8 = 64;

/// What becomes of a packet to this router.
enum Verdict {
    /// It is an echo reply now, to that address.
    Reply(IpAddr),
    Punt(Cause),
    Refuse(Refusal),
    Drop(Reason),
}

/// The node.
pub(crate) struct IpLocal {
    interfaces: Snapshot<Interfaces>,
    pool: BufferPool,
    tsc_hz: u64,
    reassembly: Reassembly,
}

impl IpLocal {
    /// The node, reading these interfaces; answers too long for one buffer come from `pool`.
    #[must_use]
    pub(crate) fn new(interfaces: Snapshot<Interfaces>, pool: BufferPool, tsc_hz: u64) -> Self {
        Self { interfaces, pool, tsc_hz, reassembly: Reassembly::default() }
    }

    /// Keeps a fragment in mind; a datagram that it completes is answered. `false`: the packet in
    /// `slot` is none.
    fn take_fragment(&mut self, slot: Slot, cx: &mut Context<'_, Next>) -> bool {
        let Some(piece) = local_fragment::piece(cx.vector, slot) else { return false };
        let identification = piece.key.identification;
        match self.reassembly.add(&piece, cx.now) {
            Added::Waits => drop(cx.take(slot)),
            Added::Refused(fragments) => {
                count(cx, Reason::LocalFragment, fragments - 1);
                cx.drop(slot, Reason::LocalFragment);
            }
            Added::Whole(mut datagram) => self.answer(slot, &mut datagram, identification, cx),
        }
        if let Some(expired) = self.reassembly.make_room() {
            count(cx, Reason::ReassemblyFull, expired.fragments);
        }
        true
    }

    /// Answers a datagram that is longer than a buffer; `slot` has the fragment that completed it.
    fn answer(
        &mut self,
        slot: Slot,
        datagram: &mut [u8],
        identification: u32,
        cx: &mut Context<'_, Next>,
    ) {
        let id = cx.vector.interface[usize::from(slot)];
        let interfaces = self.interfaces.get();
        let verdict = match local_fragment::settle(datagram) {
            Some(()) => judge(datagram, interfaces.source(id, true)),
            None => Verdict::Drop(Reason::LocalFragment),
        };
        match verdict {
            Verdict::Drop(reason) => cx.drop(slot, reason),
            // RFC 6980: neighbour discovery does not come in fragments.
            Verdict::Punt(_) => cx.drop(slot, Reason::LocalFragment),
            Verdict::Refuse(refusal) => {
                match local_fragment::head(cx.vector, slot, datagram, &self.pool) {
                    Some(head) => {
                        drop(cx.vector.buffers[usize::from(slot)].replace(head));
                        refuse(cx, slot, refusal, Next::Error);
                    }
                    None => cx.drop(slot, Reason::NoBuffer),
                }
            }
            Verdict::Reply(to) => {
                let mtu = interfaces.get(id).map_or(0, |interface| interface.mtu);
                let peer = local_reply::peer(cx.vector, slot);
                let link = local_reply::link(interfaces, id, to, peer);
                let cut = local_fragment::cut(datagram, identification, mtu, link, &self.pool);
                let Some(parts) = cut else {
                    cx.drop(slot, Reason::NoBuffer);
                    return;
                };
                let next = match (link, to) {
                    (Some(_), _) => Next::Interface,
                    (None, IpAddr::V4(_)) => Next::Output4,
                    (None, IpAddr::V6(_)) => Next::Output6,
                };
                for buffer in parts {
                    let network = 0;
                    let part =
                        Handoff { interface: id, egress: id, network, ..Handoff::of(buffer) };
                    cx.originate(part, next);
                }
                // It lives on in the answer.
                drop(cx.take(slot));
            }
        }
    }

    /// Gives up datagrams whose fragments did not all come in time, and tells their senders (RFC
    /// 1122 3.3.2, RFC 8200 4.5).
    fn give_up_late(&mut self, cx: &mut Context<'_, Next>) {
        while let Some(Expired { fragments, first }) = self.reassembly.expire(cx.now, self.tsc_hz) {
            count(cx, Reason::ReassemblyTimeout, fragments);
            let Some(first) = first else { continue };
            let Some(buffer) = local_fragment::filled(&self.pool, &[&first.frame]) else {
                continue;
            };
            let six = first.frame.get(first.network).is_some_and(|byte| byte >> 4 == 6);
            let kind = if six { kind6::TIME_EXCEEDED } else { kind4::TIME_EXCEEDED };
            let word = icmp_word(kind, icmpv4::time_exceeded::REASSEMBLY, 0);
            let network = u16::try_from(first.network).unwrap_or(0);
            let quoted =
                Handoff { interface: first.interface, network, word, ..Handoff::of(buffer) };
            cx.originate(quoted, Next::Error);
        }
    }
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
        self.give_up_late(cx);
        for &slot in slots {
            let chained =
                cx.vector.buffer_mut(slot).is_some_and(|b| b.is_chained() && !b.linearize());
            if chained {
                cx.drop(slot, Reason::NoBuffer);
                continue;
            }
            if self.take_fragment(slot, cx) {
                continue;
            }
            let interfaces = self.interfaces.get();
            let network = usize::from(cx.vector.network[usize::from(slot)]);
            let source6 = interfaces.source(cx.vector.interface[usize::from(slot)], true);
            let peer = local_reply::peer(cx.vector, slot);
            let Some(buffer) = cx.vector.buffer_mut(slot) else { continue };
            let packet = buffer.data_mut().get_mut(network..).unwrap_or(&mut []);
            match judge(packet, source6) {
                Verdict::Drop(reason) => cx.drop(slot, reason),
                Verdict::Punt(cause) => cx.punt(slot, cause as u16),
                Verdict::Refuse(refusal) => refuse(cx, slot, refusal, Next::Error),
                Verdict::Reply(to) => {
                    match local_reply::way(cx.vector, slot, interfaces, to, peer) {
                        Some(Way::Routed4) => cx.send(slot, Next::Output4),
                        Some(Way::Routed6) => cx.send(slot, Next::Output6),
                        Some(Way::Link) => cx.send(slot, Next::Interface),
                        None => cx.drop(slot, Reason::NoBuffer),
                    }
                }
            }
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        let packet = vector.network(slot);
        match ipv4::Header::peek(packet) {
            Some(header) => format!("for this router, protocol {}", header.protocol()),
            None => match ipv6::upper_layer(packet) {
                Ok(upper) => format!("for this router, protocol {}", upper.protocol),
                Err(malformed) => format!("for this router, but {malformed}"),
            },
        }
    }
}

/// `own6`: the address that answers to a group come from, for IPv6.
fn judge(packet: &mut [u8], own6: Option<IpAddr>) -> Verdict {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => judge4(packet),
        _ => judge6(packet, own6),
    }
}

fn judge4(packet: &mut [u8]) -> Verdict {
    let Some(header) = ipv4::Header::peek(packet) else {
        return Verdict::Drop(Reason::Ip4Truncated);
    };
    let (source, destination) = (header.source(), header.destination());
    let length = header.header_length();
    if destination.is_broadcast() || destination.is_multicast() {
        return Verdict::Drop(Reason::LocalProtocol);
    }
    match header.protocol() {
        Protocol::ICMPV4 => match echo4(packet, length) {
            Ok(()) => Verdict::Reply(IpAddr::V4(source)),
            Err(reason) => Verdict::Drop(reason),
        },
        Protocol::UDP => Verdict::Refuse(Refusal {
            word: icmp_word(kind4::UNREACHABLE, icmpv4::unreachable::PORT, 0),
            reason: Reason::LocalPort,
        }),
        _ => Verdict::Refuse(Refusal {
            word: icmp_word(kind4::UNREACHABLE, icmpv4::unreachable::PROTOCOL, 0),
            reason: Reason::LocalProtocol,
        }),
    }
}

/// Turns an echo request into its reply (RFC 792; RFC 1812 4.3.3.6).
fn echo4(packet: &mut [u8], length: usize) -> Result<(), Reason> {
    let icmp = packet.get_mut(length..).ok_or(Reason::IcmpMalformed)?;
    let (request, _) = icmpv4::Header::parse(icmp).map_err(|_| Reason::IcmpMalformed)?;
    if !matches!(request.message(), icmpv4::Message::EchoRequest { .. }) {
        return Err(Reason::IcmpUnhandled);
    }
    icmpv4::echo_reply_in_place(icmp).map_err(|_| Reason::IcmpMalformed)?;
    let header = ipv4::Header::peek_mut(packet).ok_or(Reason::Ip4Truncated)?;
    let (source, destination) = (header.source(), header.destination());
    header.set_addresses(destination, source);
    header.set_ttl(HOPS);
    ipv4::write_checksum(packet).map_err(|_| Reason::Ip4HeaderLength)
}

fn judge6(packet: &mut [u8], own: Option<IpAddr>) -> Verdict {
    let Some(header) = ipv6::Header::peek(packet) else {
        return Verdict::Drop(Reason::Ip6Truncated);
    };
    let (source, destination) = (header.source(), header.destination());
    let Ok(upper) = ipv6::upper_layer(packet) else {
        return Verdict::Drop(Reason::Ip6Extension);
    };
    match upper.protocol {
        Protocol::ICMPV6 => judge_icmp6(packet, upper.offset, own),
        Protocol::NO_NEXT_HEADER => Verdict::Drop(Reason::LocalProtocol),
        _ if destination.is_multicast() || source.is_unspecified() => {
            Verdict::Drop(Reason::LocalProtocol)
        }
        Protocol::UDP => Verdict::Refuse(Refusal {
            word: icmp_word(kind6::UNREACHABLE, icmpv6::unreachable::PORT, 0),
            reason: Reason::LocalPort,
        }),
        _ => Verdict::Refuse(Refusal {
            word: icmp_word(
                kind6::PARAMETER_PROBLEM,
                icmpv6::parameter_problem::NEXT_HEADER,
                u16::try_from(upper.named_at).unwrap_or(0),
            ),
            reason: Reason::LocalProtocol,
        }),
    }
}

fn judge_icmp6(packet: &mut [u8], at: usize, own: Option<IpAddr>) -> Verdict {
    let Some((source, destination)) =
        ipv6::Header::peek(packet).map(|header| (header.source(), header.destination()))
    else {
        return Verdict::Drop(Reason::Ip6Truncated);
    };
    let icmp = packet.get(at..).unwrap_or(&[]);
    let message = match icmpv6::Header::parse(icmp, source, destination) {
        Ok((header, _)) => header.message(),
        Err(_) => return Verdict::Drop(Reason::IcmpMalformed),
    };
    if message.is_neighbor_discovery() {
        return Verdict::Punt(Cause::Nd);
    }
    if !matches!(message, icmpv6::Message::EchoRequest { .. }) {
        return Verdict::Drop(Reason::IcmpUnhandled);
    }
    // RFC 4443 4.2: a reply to a group request comes from an own unicast address.
    let from = match (destination.is_multicast(), own) {
        (false, _) => destination,
        (true, Some(IpAddr::V6(own))) => own,
        (true, _) => return Verdict::Drop(Reason::IcmpNotAllowed),
    };
    if source.is_multicast() || source.is_unspecified() {
        return Verdict::Drop(Reason::IcmpNotAllowed);
    }
    match echo6(packet, at, from, source) {
        Some(()) => Verdict::Reply(IpAddr::V6(source)),
        None => Verdict::Drop(Reason::IcmpMalformed),
    }
}

/// Turns an echo request into its reply (RFC 4443 4.2).
fn echo6(packet: &mut [u8], at: usize, from: Ipv6Addr, to: Ipv6Addr) -> Option<()> {
    let header = ipv6::Header::peek_mut(packet)?;
    header.set_addresses(from, to);
    header.set_hop_limit(HOPS);
    let icmp = packet.get_mut(at..)?;
    icmpv6::echo_reply_in_place(icmp).ok()?;
    icmpv6::write_checksum(icmp, from, to).ok()
}
