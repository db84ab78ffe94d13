//! What differs between IPv4 and IPv6 in the stages that are otherwise the same.

use graph::{CAPACITY, IcmpError, Reason, Slot, Vector};
use wire::flow::FiveTuple;
use wire::{EtherType, Protocol};
use wire::{flow, icmpv4, icmpv6, ipv4, ipv6};

use crate::flow::FlowReaders;
use crate::state::{State, VrfTables};

/// ICMP types that a router sends (RFC 792).
pub(crate) mod kind4 {
    /// Destination unreachable.
    pub(crate) const UNREACHABLE: u8 = 3;
    /// Time exceeded.
    pub(crate) const TIME_EXCEEDED: u8 = 11;
    /// Parameter problem.
    pub(crate) const PARAMETER_PROBLEM: u8 = 12;
}

/// ICMPv6 types that a router sends (RFC 4443).
pub(crate) mod kind6 {
    /// Destination unreachable.
    pub(crate) const UNREACHABLE: u8 = 1;
    /// Packet too big.
    pub(crate) const PACKET_TOO_BIG: u8 = 2;
    /// Time exceeded.
    pub(crate) const TIME_EXCEEDED: u8 = 3;
    /// Parameter problem.
    pub(crate) const PARAMETER_PROBLEM: u8 = 4;
}

/// An ICMP error to send, and the name of the drop that goes with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal {
    /// The error.
    pub(crate) error: IcmpError,
    /// What the drop counts as.
    pub(crate) reason: Reason,
}

/// An ICMP error.
pub(crate) const fn icmp(kind: u8, code: u8, detail: u16) -> IcmpError {
    IcmpError { kind, code, detail }
}

/// IPv4 or IPv6.
pub(crate) trait Family: Send + 'static {
    /// Destination address, as the tables want it.
    type Key: Copy + Default + PartialEq;
    /// 5-tuple, as the flow table wants it.
    type FlowKey: Copy;
    /// A key that no packet has.
    const NO_KEY: Self::FlowKey;
    /// EtherType of its packets.
    const ETHER_TYPE: EtherType;
    /// The least that its headers are long: bytes.
    const HEADER_LENGTH: usize;
    /// Names of its nodes.
    const NAMES: Names;
    /// The hop count ran out.
    const EXPIRED: Refusal;
    /// No route.
    const NO_ROUTE: Refusal;
    /// An unreachable route.
    const UNREACHABLE: Refusal;
    /// The neighbour did not answer.
    const HOST_UNREACHABLE: Refusal;

    /// The keys that the input node noted, by slot.
    fn noted(vector: &Vector) -> &[Self::Key; CAPACITY];
    /// Notes the key of a packet, as the input node does.
    fn note(vector: &mut Vector, slot: Slot, key: Self::Key);
    /// The key of a packet.
    fn key(vector: &Vector, slot: Slot) -> Self::Key;
    /// Looks up keys in a batch, in the default VRF.
    fn look_up(state: &State, keys: &[Self::Key], values: &mut [u32]);
    /// Looks up keys in a batch, in another VRF.
    fn look_up_in(tables: &VrfTables, keys: &[Self::Key], values: &mut [u32]);
    /// The flow key of a packet.
    fn flow_key(packet: &[u8]) -> Self::FlowKey;
    /// The key of a flow. `None`: it is of the other family.
    fn key_of(flow: &FiveTuple) -> Option<Self::FlowKey>;
    /// Looks up flow keys in a batch.
    fn look_up_flows(readers: &FlowReaders, keys: &[Self::FlowKey], values: &mut [u32]);
    /// Flow hash for ECMP.
    fn hash(packet: &[u8], seed: u64) -> u32;
    /// Takes one off the hop count; `false`, and no change, when none would be left.
    fn decrement(packet: &mut [u8]) -> bool;
    /// `false`: the packet carries no ICMP message.
    fn may_be_icmp(packet: &[u8]) -> bool;
    /// Whether [`Self::decrement`] would refuse the packet.
    fn is_last_hop(packet: &[u8]) -> bool;
    /// What to do with a packet larger than `mtu`; `None`: fragment it.
    fn too_big(packet: &[u8], mtu: u16) -> Option<Refusal>;
}

/// Node names of a family.
#[derive(Debug)]
pub(crate) struct Names {
    /// Validation.
    pub(crate) input: &'static str,
    /// Exact match of flows.
    pub(crate) flow: &'static str,
    /// Look-up of packets that are forwarded, and of packets made here.
    pub(crate) lookup: [&'static str; 2],
    /// The same in other VRFs than the default one.
    pub(crate) vrf: [&'static str; 2],
    /// Rewrite of packets that are forwarded, and of packets made here.
    pub(crate) rewrite: [&'static str; 2],
}

/// IPv4.
pub(crate) struct V4;

impl Family for V4 {
    type Key = u32;
    const ETHER_TYPE: EtherType = EtherType::IPV4;
    const HEADER_LENGTH: usize = ipv4::HEADER_LENGTH;
    type FlowKey = [u8; 16];
    const NO_KEY: [u8; 16] = [0; 16];
    const NAMES: Names = Names {
        input: "ip4-input",
        flow: "flow4-lookup",
        lookup: ["ip4-lookup", "ip4-output"],
        vrf: ["ip4-vrf", "ip4-vrf-output"],
        rewrite: ["ip4-rewrite", "ip4-send"],
    };
    const EXPIRED: Refusal = Refusal {
        error: icmp(kind4::TIME_EXCEEDED, icmpv4::time_exceeded::IN_TRANSIT, 0),
        reason: Reason::Ip4Ttl,
    };
    const NO_ROUTE: Refusal = Refusal {
        error: icmp(kind4::UNREACHABLE, icmpv4::unreachable::NET, 0),
        reason: Reason::Ip4NoRoute,
    };
    const UNREACHABLE: Refusal = Refusal {
        error: icmp(kind4::UNREACHABLE, icmpv4::unreachable::HOST, 0),
        reason: Reason::Unreachable,
    };
    const HOST_UNREACHABLE: Refusal = Refusal {
        error: icmp(kind4::UNREACHABLE, icmpv4::unreachable::HOST, 0),
        reason: Reason::NeighborUnresolved,
    };

    #[inline(always)]
    fn noted(vector: &Vector) -> &[u32; CAPACITY] {
        &vector.destination4
    }

    #[inline(always)]
    fn note(vector: &mut Vector, slot: Slot, key: u32) {
        vector.destination4[usize::from(slot)] = key;
    }

    #[inline(always)]
    fn key(vector: &Vector, slot: Slot) -> u32 {
        ipv4::Header::peek(vector.network(slot)).map_or(0, |header| header.destination().to_bits())
    }

    #[inline]
    fn look_up(state: &State, keys: &[u32], values: &mut [u32]) {
        state.routes4.lookup_batch(keys, values);
    }

    fn look_up_in(tables: &VrfTables, keys: &[u32], values: &mut [u32]) {
        tables.routes4.lookup_batch(keys, values);
    }

    #[inline(always)]
    fn flow_key(packet: &[u8]) -> [u8; 16] {
        ipv4::Header::peek(packet)
            .map_or(Self::NO_KEY, |header| flow::FiveTuple4::of(header, packet).key())
    }

    fn key_of(flow: &FiveTuple) -> Option<[u8; 16]> {
        if let FiveTuple::V4(flow) = flow { Some(flow.key()) } else { None }
    }

    #[inline]
    fn look_up_flows(readers: &FlowReaders, keys: &[[u8; 16]], values: &mut [u32]) {
        readers.flows4.lookup_batch(keys, values);
    }

    #[inline]
    fn hash(packet: &[u8], seed: u64) -> u32 {
        FiveTuple::of(packet).map_or(0, |flow| flow.hash(seed))
    }

    #[inline(always)]
    fn decrement(packet: &mut [u8]) -> bool {
        ipv4::Header::checked_mut(packet).is_some_and(|header| ipv4::decrement_ttl(header).is_ok())
    }

    #[inline]
    fn may_be_icmp(packet: &[u8]) -> bool {
        ipv4::Header::peek(packet).is_some_and(|header| header.protocol() == Protocol::ICMPV4)
    }

    #[inline]
    fn is_last_hop(packet: &[u8]) -> bool {
        ipv4::Header::peek(packet).is_none_or(|header| header.ttl() <= 1)
    }

    fn too_big(packet: &[u8], mtu: u16) -> Option<Refusal> {
        let dont = ipv4::Header::peek(packet).is_none_or(ipv4::Header::dont_fragment);
        dont.then_some(Refusal {
            error: icmp(kind4::UNREACHABLE, icmpv4::unreachable::FRAGMENTATION_NEEDED, mtu),
            reason: Reason::Ip4DontFragment,
        })
    }
}

/// IPv6.
pub(crate) struct V6;

impl Family for V6 {
    type Key = u128;
    const ETHER_TYPE: EtherType = EtherType::IPV6;
    const HEADER_LENGTH: usize = ipv6::HEADER_LENGTH;
    type FlowKey = [u8; 40];
    const NO_KEY: [u8; 40] = [0; 40];
    const NAMES: Names = Names {
        input: "ip6-input",
        flow: "flow6-lookup",
        lookup: ["ip6-lookup", "ip6-output"],
        vrf: ["ip6-vrf", "ip6-vrf-output"],
        rewrite: ["ip6-rewrite", "ip6-send"],
    };
    const EXPIRED: Refusal = Refusal {
        error: icmp(kind6::TIME_EXCEEDED, icmpv6::time_exceeded::IN_TRANSIT, 0),
        reason: Reason::Ip6HopLimit,
    };
    const NO_ROUTE: Refusal = Refusal {
        error: icmp(kind6::UNREACHABLE, icmpv6::unreachable::NO_ROUTE, 0),
        reason: Reason::Ip6NoRoute,
    };
    const UNREACHABLE: Refusal = Refusal {
        error: icmp(kind6::UNREACHABLE, icmpv6::unreachable::REJECT_ROUTE, 0),
        reason: Reason::Unreachable,
    };
    const HOST_UNREACHABLE: Refusal = Refusal {
        error: icmp(kind6::UNREACHABLE, icmpv6::unreachable::ADDRESS, 0),
        reason: Reason::NeighborUnresolved,
    };

    #[inline(always)]
    fn noted(vector: &Vector) -> &[u128; CAPACITY] {
        &vector.destination6
    }

    #[inline(always)]
    fn note(vector: &mut Vector, slot: Slot, key: u128) {
        vector.destination6[usize::from(slot)] = key;
    }

    #[inline(always)]
    fn key(vector: &Vector, slot: Slot) -> u128 {
        ipv6::Header::peek(vector.network(slot))
            .map_or(0, |header| u128::from(header.destination()))
    }

    #[inline]
    fn look_up(state: &State, keys: &[u128], values: &mut [u32]) {
        state.routes6.lookup_batch(keys, values);
    }

    fn look_up_in(tables: &VrfTables, keys: &[u128], values: &mut [u32]) {
        tables.routes6.lookup_batch(keys, values);
    }

    #[inline(always)]
    fn flow_key(packet: &[u8]) -> [u8; 40] {
        ipv6::Header::peek(packet)
            .map_or(Self::NO_KEY, |header| flow::FiveTuple6::of(header, packet).key())
    }

    fn key_of(flow: &FiveTuple) -> Option<[u8; 40]> {
        if let FiveTuple::V6(flow) = flow { Some(flow.key()) } else { None }
    }

    #[inline]
    fn look_up_flows(readers: &FlowReaders, keys: &[[u8; 40]], values: &mut [u32]) {
        readers.flows6.lookup_batch(keys, values);
    }

    #[inline]
    fn hash(packet: &[u8], seed: u64) -> u32 {
        FiveTuple::of(packet).map_or(0, |flow| flow.hash(seed))
    }

    #[inline(always)]
    fn decrement(packet: &mut [u8]) -> bool {
        ipv6::Header::checked_mut(packet)
            .is_some_and(|header| ipv6::decrement_hop_limit(header).is_ok())
    }

    #[inline]
    fn may_be_icmp(packet: &[u8]) -> bool {
        let next = ipv6::Header::peek(packet).map(ipv6::Header::next_header);
        next.is_some_and(|next| !matches!(next, Protocol::TCP | Protocol::UDP))
    }

    #[inline]
    fn is_last_hop(packet: &[u8]) -> bool {
        ipv6::Header::peek(packet).is_none_or(|header| header.hop_limit() <= 1)
    }

    fn too_big(_packet: &[u8], mtu: u16) -> Option<Refusal> {
        Some(Refusal { error: icmp(kind6::PACKET_TOO_BIG, 0, mtu), reason: Reason::Ip6TooBig })
    }
}

/// An IP packet in words, for the trace.
pub(super) fn describe(packet: &[u8]) -> String {
    if let Some(header) = ipv4::Header::peek(packet) {
        format!(
            "IPv4 {} to {}, protocol {}, TTL {}, {} bytes",
            header.source(),
            header.destination(),
            header.protocol(),
            header.ttl(),
            header.total_length()
        )
    } else if let Some(header) = ipv6::Header::peek(packet) {
        format!(
            "IPv6 {} to {}, next header {}, hop limit {}, payload {} bytes",
            header.source(),
            header.destination(),
            header.next_header(),
            header.hop_limit(),
            header.payload_length()
        )
    } else {
        "no IP header".to_owned()
    }
}
