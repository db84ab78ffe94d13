//! Neighbour discovery (RFC 4861): its five ICMPv6 messages, checked as a receiver must.

use std::net::Ipv6Addr;

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::ipv6::solicited_node;

pub use options::{Option, Options, PrefixInformation};

mod options;

/// The hop limit that proves that a message was sent on this link.
pub const HOP_LIMIT: u8 = 255;

/// Message types.
pub mod kind {
    /// Who is a router here?
    pub const ROUTER_SOLICITATION: u8 = 133;
    /// A router is here.
    pub const ROUTER_ADVERTISEMENT: u8 = 134;
    /// Who has the target address?
    pub const NEIGHBOR_SOLICITATION: u8 = 135;
    /// The target address is here.
    pub const NEIGHBOR_ADVERTISEMENT: u8 = 136;
    /// A better first hop is known.
    pub const REDIRECT: u8 = 137;
}

/// Why a message is discarded (RFC 4861 6.1, 7.1, 8.1). The checksum is [`crate::icmpv6`]'s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The hop limit is not 255: it came through a router.
    #[error("the hop limit is not 255")]
    HopLimit,
    /// Shorter than its type demands.
    #[error("shorter than a message of its type")]
    Truncated,
    /// The type is none of the five.
    #[error("not a type of neighbour discovery")]
    Kind,
    /// The code is not 0.
    #[error("the code is not 0")]
    Code,
    /// The source address may not send this.
    #[error("the source address may not send this message")]
    Source,
    /// The destination address does not fit the message.
    #[error("the destination address does not fit the message")]
    Destination,
    /// The target is a group address, or does not fit the message.
    #[error("the target address does not fit the message")]
    Target,
    /// An option of length 0 or beyond the message.
    #[error("an option of length 0 or beyond the message")]
    OptionLength,
    /// A link-layer address where the source is unspecified.
    #[error("a source link-layer address from the unspecified address")]
    OptionNotAllowed,
}

/// A checked message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// Who is a router here?
    RouterSolicitation {
        /// Its options.
        options: Options<'a>,
    },
    /// A router is here.
    RouterAdvertisement {
        /// Its fixed fields.
        router: Router,
        /// Its options.
        options: Options<'a>,
    },
    /// Who has `target`?
    NeighborSolicitation {
        /// The address asked for.
        target: Ipv6Addr,
        /// Its options.
        options: Options<'a>,
    },
    /// `target` is here.
    NeighborAdvertisement {
        /// The three flags.
        flags: Flags,
        /// The address told about.
        target: Ipv6Addr,
        /// Its options.
        options: Options<'a>,
    },
    /// `destination` is better reached through `target`.
    Redirect {
        /// The better first hop, or the destination itself when it is on the link.
        target: Ipv6Addr,
        /// What is reached through it.
        destination: Ipv6Addr,
        /// Its options.
        options: Options<'a>,
    },
}

/// What a router advertisement says besides options (RFC 4861 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Router {
    /// Hop limit to send with; 0: not said.
    pub hop_limit: u8,
    /// Addresses come from DHCPv6.
    pub managed: bool,
    /// Other things come from DHCPv6.
    pub other: bool,
    /// How long it is a default router: seconds; 0: it is none.
    pub lifetime: u16,
    /// How long a neighbour counts as reachable: milliseconds; 0: not said.
    pub reachable_time: u32,
    /// Between solicitations: milliseconds; 0: not said.
    pub retransmit_timer: u32,
}

/// The flags of a neighbour advertisement (RFC 4861 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// The sender is a router.
    pub router: bool,
    /// It answers a solicitation.
    pub solicited: bool,
    /// It replaces what was known.
    pub override_known: bool,
}

impl Flags {
    pub(crate) fn bits(self) -> u32 {
        u32::from(self.router) << 31
            | u32::from(self.solicited) << 30
            | u32::from(self.override_known) << 29
    }

    fn of(bits: u32) -> Self {
        Self {
            router: bits >> 31 & 1 != 0,
            solicited: bits >> 30 & 1 != 0,
            override_known: bits >> 29 & 1 != 0,
        }
    }
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Fixed {
    kind: u8,
    code: u8,
    checksum: U16,
    rest: U32,
}

/// Checks a whole ICMPv6 message, from its type on to its end, and the addresses and hop limit of
/// the header before it. Errors: see [`Malformed`].
pub fn parse(
    bytes: &[u8],
    source: Ipv6Addr,
    destination: Ipv6Addr,
    hop_limit: u8,
) -> Result<Message<'_>, Malformed> {
    if hop_limit != HOP_LIMIT {
        return Err(Malformed::HopLimit);
    }
    let (fixed, body) = Fixed::ref_from_prefix(bytes).map_err(|_| Malformed::Truncated)?;
    if !(kind::ROUTER_SOLICITATION..=kind::REDIRECT).contains(&fixed.kind) {
        return Err(Malformed::Kind);
    }
    if fixed.code != 0 {
        return Err(Malformed::Code);
    }
    let rest = fixed.rest.get();
    match fixed.kind {
        kind::ROUTER_SOLICITATION => {
            let options = Options::parse(body)?;
            no_link_layer_from_unspecified(source, &options)?;
            Ok(Message::RouterSolicitation { options })
        }
        kind::ROUTER_ADVERTISEMENT => router_advertisement(rest, body, source),
        kind::NEIGHBOR_SOLICITATION => neighbor_solicitation(body, source, destination),
        kind::NEIGHBOR_ADVERTISEMENT => neighbor_advertisement(rest, body, destination),
        _ => redirect(body, source),
    }
}

// RFC 4861 6.1.2.
fn router_advertisement(
    rest: u32,
    body: &[u8],
    source: Ipv6Addr,
) -> Result<Message<'_>, Malformed> {
    if !source.is_unicast_link_local() {
        return Err(Malformed::Source);
    }
    let (times, body) = <[U32; 2]>::ref_from_prefix(body).map_err(|_| Malformed::Truncated)?;
    let [reachable_time, retransmit_timer] = times.map(U32::get);
    let router = Router {
        hop_limit: (rest >> 24) as u8,
        managed: rest >> 23 & 1 != 0,
        other: rest >> 22 & 1 != 0,
        lifetime: rest as u16,
        reachable_time,
        retransmit_timer,
    };
    Ok(Message::RouterAdvertisement { router, options: Options::parse(body)? })
}

// RFC 4861 7.1.1.
fn neighbor_solicitation(
    body: &[u8],
    source: Ipv6Addr,
    destination: Ipv6Addr,
) -> Result<Message<'_>, Malformed> {
    let (target, body) = unicast(body)?;
    let options = Options::parse(body)?;
    if source.is_multicast() {
        return Err(Malformed::Source);
    }
    no_link_layer_from_unspecified(source, &options)?;
    if source.is_unspecified() && destination != solicited_node(target) {
        return Err(Malformed::Destination);
    }
    Ok(Message::NeighborSolicitation { target, options })
}

// RFC 4861 7.1.2.
fn neighbor_advertisement(
    rest: u32,
    body: &[u8],
    destination: Ipv6Addr,
) -> Result<Message<'_>, Malformed> {
    let (target, body) = unicast(body)?;
    let flags = Flags::of(rest);
    if destination.is_multicast() && flags.solicited {
        return Err(Malformed::Destination);
    }
    Ok(Message::NeighborAdvertisement { flags, target, options: Options::parse(body)? })
}

// RFC 4861 8.1.
fn redirect(body: &[u8], source: Ipv6Addr) -> Result<Message<'_>, Malformed> {
    if !source.is_unicast_link_local() {
        return Err(Malformed::Source);
    }
    let (target, body) = address(body)?;
    let (destination, body) = address(body)?;
    if destination.is_multicast() {
        return Err(Malformed::Destination);
    }
    if !target.is_unicast_link_local() && target != destination {
        return Err(Malformed::Target);
    }
    Ok(Message::Redirect { target, destination, options: Options::parse(body)? })
}

fn no_link_layer_from_unspecified(
    source: Ipv6Addr,
    options: &Options<'_>,
) -> Result<(), Malformed> {
    let named = || options.clone().any(|option| matches!(option, Option::SourceLinkLayer(_)));
    if source.is_unspecified() && named() { Err(Malformed::OptionNotAllowed) } else { Ok(()) }
}

fn address(bytes: &[u8]) -> Result<(Ipv6Addr, &[u8]), Malformed> {
    let (octets, rest) = bytes.split_first_chunk::<16>().ok_or(Malformed::Truncated)?;
    Ok((Ipv6Addr::from(*octets), rest))
}

fn unicast(bytes: &[u8]) -> Result<(Ipv6Addr, &[u8]), Malformed> {
    let (target, rest) = address(bytes)?;
    if target.is_multicast() { Err(Malformed::Target) } else { Ok((target, rest)) }
}

#[cfg(test)]
mod tests;
