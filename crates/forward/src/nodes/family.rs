//! What differs between IPv4 and IPv6 in the stages that are otherwise the same.

use graph::{Reason, Slot, Vector};
use wire::EtherType;
use wire::{flow, icmpv4, icmpv6, ipv4, ipv6};

use crate::state::State;

/// ICMP type and code, packed for `Vector::word`: type (8 bits), code (8), MTU or pointer (16).
#[must_use]
pub const fn icmp_word(kind: u8, code: u8, detail: u16) -> u32 {
    (kind as u32) << 24 | (code as u32) << 16 | detail as u32
}

/// An ICMP error to send, and the name of the drop that goes with it.
#[derive(Debug, Clone, Copy)]
pub struct Refusal {
    /// For `icmp-error`: see [`icmp_word`].
    pub word: u32,
    /// What the drop counts as.
    pub reason: Reason,
}

/// IPv4 or IPv6.
pub trait Family: Send + 'static {
    /// Destination address, as the tables want it.
    type Key: Copy + Default;
    /// EtherType of its packets.
    const ETHER_TYPE: EtherType;
    /// Names of the nodes `look-up`, `rewrite`, and of their twins for packets made here.
    const NAMES: Names;
    /// Next nodes of the look-up, in the order of `lookup::Next`.
    const LOOKUP_TARGETS: [&'static [&'static str]; 2];
    /// Next nodes of the rewrite, in the order of `rewrite::Next`.
    const REWRITE_TARGETS: &'static [&'static str];
    /// The hop count ran out.
    const EXPIRED: Refusal;
    /// No route.
    const NO_ROUTE: Refusal;
    /// An unreachable route.
    const UNREACHABLE: Refusal;
    /// The neighbour did not answer.
    const HOST_UNREACHABLE: Refusal;

    /// The key of a packet.
    fn key(vector: &Vector, slot: Slot) -> Self::Key;
    /// Looks up keys in a batch.
    fn look_up(state: &State, keys: &[Self::Key], values: &mut [u32]);
    /// Flow hash for ECMP.
    fn hash(packet: &[u8]) -> u32;
    /// Takes one off the hop count; `false`, and no change, when none would be left.
    fn decrement(packet: &mut [u8]) -> bool;
    /// What to do with a packet larger than `mtu`; `None`: fragment it.
    fn too_big(packet: &[u8], mtu: u16) -> Option<Refusal>;
}

/// Node names of a family.
#[derive(Debug)]
pub struct Names {
    /// Look-up of packets that are forwarded, and of packets made here.
    pub lookup: [&'static str; 2],
    /// Rewrite of packets that are forwarded, and of packets made here.
    pub rewrite: [&'static str; 2],
}

/// IPv4.
pub struct V4;

impl Family for V4 {
    type Key = u32;
    const ETHER_TYPE: EtherType = EtherType::IPV4;
    const NAMES: Names =
        Names { lookup: ["ip4-lookup", "ip4-output"], rewrite: ["ip4-rewrite", "ip4-send"] };
    const LOOKUP_TARGETS: [&'static [&'static str]; 2] = [
        &["ip4-rewrite", "ip-local", "icmp-error", "reflect"],
        &["ip4-send", "ip-local", "icmp-error", "reflect"],
    ];
    const REWRITE_TARGETS: &'static [&'static str] =
        &["ip4-fragment", "icmp-error", "bridge-output"];
    const EXPIRED: Refusal = Refusal {
        word: icmp_word(icmpv4::TIME_EXCEEDED, icmpv4::TTL_EXCEEDED, 0),
        reason: Reason::Ip4Ttl,
    };
    const NO_ROUTE: Refusal = Refusal {
        word: icmp_word(icmpv4::UNREACHABLE, icmpv4::NET_UNREACHABLE, 0),
        reason: Reason::Ip4NoRoute,
    };
    const UNREACHABLE: Refusal = Refusal {
        word: icmp_word(icmpv4::UNREACHABLE, icmpv4::HOST_UNREACHABLE, 0),
        reason: Reason::Unreachable,
    };
    const HOST_UNREACHABLE: Refusal = Refusal {
        word: icmp_word(icmpv4::UNREACHABLE, icmpv4::HOST_UNREACHABLE, 0),
        reason: Reason::NeighborUnresolved,
    };

    #[inline(always)]
    fn key(vector: &Vector, slot: Slot) -> u32 {
        vector.key4[usize::from(slot)]
    }

    #[inline]
    fn look_up(state: &State, keys: &[u32], values: &mut [u32]) {
        state.routes4.lookup_batch(keys, values);
    }

    #[inline]
    fn hash(packet: &[u8]) -> u32 {
        flow::hash4(packet)
    }

    #[inline(always)]
    fn decrement(packet: &mut [u8]) -> bool {
        ipv4::Header::peek_mut(packet).is_some_and(|header| ipv4::decrement_ttl(header).is_ok())
    }

    fn too_big(packet: &[u8], mtu: u16) -> Option<Refusal> {
        let dont = ipv4::Header::peek(packet).is_none_or(ipv4::Header::dont_fragment);
        dont.then_some(Refusal {
            word: icmp_word(icmpv4::UNREACHABLE, icmpv4::FRAGMENTATION_NEEDED, mtu),
            reason: Reason::Ip4DontFragment,
        })
    }
}

/// IPv6.
pub struct V6;

impl Family for V6 {
    type Key = u128;
    const ETHER_TYPE: EtherType = EtherType::IPV6;
    const NAMES: Names =
        Names { lookup: ["ip6-lookup", "ip6-output"], rewrite: ["ip6-rewrite", "ip6-send"] };
    const LOOKUP_TARGETS: [&'static [&'static str]; 2] = [
        &["ip6-rewrite", "ip-local", "icmp-error", "reflect"],
        &["ip6-send", "ip-local", "icmp-error", "reflect"],
    ];
    const REWRITE_TARGETS: &'static [&'static str] =
        &["ip4-fragment", "icmp-error", "bridge-output"];
    const EXPIRED: Refusal = Refusal {
        word: icmp_word(icmpv6::TIME_EXCEEDED, icmpv6::HOP_LIMIT_EXCEEDED, 0),
        reason: Reason::Ip6HopLimit,
    };
    const NO_ROUTE: Refusal = Refusal {
        word: icmp_word(icmpv6::UNREACHABLE, icmpv6::NO_ROUTE, 0),
        reason: Reason::Ip6NoRoute,
    };
    const UNREACHABLE: Refusal = Refusal {
        word: icmp_word(icmpv6::UNREACHABLE, icmpv6::REJECT_ROUTE, 0),
        reason: Reason::Unreachable,
    };
    const HOST_UNREACHABLE: Refusal = Refusal {
        word: icmp_word(icmpv6::UNREACHABLE, icmpv6::ADDRESS_UNREACHABLE, 0),
        reason: Reason::NeighborUnresolved,
    };

    #[inline(always)]
    fn key(vector: &Vector, slot: Slot) -> u128 {
        ipv6::Header::peek(vector.network(slot))
            .map_or(0, ipv6::Header::destination_bits)
    }

    #[inline]
    fn look_up(state: &State, keys: &[u128], values: &mut [u32]) {
        state.routes6.lookup_batch(keys, values);
    }

    #[inline]
    fn hash(packet: &[u8]) -> u32 {
        flow::hash6(packet)
    }

    #[inline(always)]
    fn decrement(packet: &mut [u8]) -> bool {
        ipv6::Header::peek_mut(packet).is_some_and(|header| ipv6::decrement_hop_limit(header).is_ok())
    }

    fn too_big(_packet: &[u8], mtu: u16) -> Option<Refusal> {
        Some(Refusal {
            word: icmp_word(icmpv6::PACKET_TOO_BIG, 0, mtu),
            reason: Reason::Ip6TooBig,
        })
    }
}
