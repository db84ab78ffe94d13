//! Options of neighbour discovery (RFC 4861 4.6), walked within the message's bounds.

use std::net::Ipv6Addr;

use super::Malformed;
use crate::ethernet::MacAddr;

/// One option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Option<'a> {
    /// The sender's MAC address.
    SourceLinkLayer(MacAddr),
    /// The target's MAC address.
    TargetLinkLayer(MacAddr),
    /// A prefix of the link.
    Prefix(PrefixInformation),
    /// What made the router send a redirect, as much as fits.
    RedirectedHeader(&'a [u8]),
    /// The link's MTU: bytes.
    Mtu(u32),
    /// Anything else; a known kind with an unknown length too.
    Other {
        /// Its type.
        kind: u8,
        /// What follows type and length.
        data: &'a [u8],
    },
}

/// A prefix that a router tells about (RFC 4861 4.6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixInformation {
    /// Bits beyond the length are to be ignored.
    pub prefix: Ipv6Addr,
    /// Leading bits that count, as written: may be above 128.
    pub length: u8,
    /// Its addresses are on the link.
    pub on_link: bool,
    /// Hosts may form addresses from it.
    pub autonomous: bool,
    /// How long it is on the link: seconds; all ones: for ever.
    pub valid_lifetime: u32,
    /// How long formed addresses are preferred: seconds; all ones: for ever.
    pub preferred_lifetime: u32,
}

/// The options of a message, in order, all of whose lengths were checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    /// Errors: `OptionLength` for a length of 0 or beyond the bytes (RFC 4861 4.6).
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = bytes;
        while !rest.is_empty() {
            (_, rest) = split(rest).ok_or(Malformed::OptionLength)?;
        }
        Ok(Self { rest: bytes })
    }

    /// The sender's MAC address, if told.
    #[must_use]
    pub fn source_link_layer(&self) -> std::option::Option<MacAddr> {
        self.clone().find_map(|option| match option {
            Option::SourceLinkLayer(mac) => Some(mac),
            _ => None,
        })
    }

    /// The target's MAC address, if told.
    #[must_use]
    pub fn target_link_layer(&self) -> std::option::Option<MacAddr> {
        self.clone().find_map(|option| match option {
            Option::TargetLinkLayer(mac) => Some(mac),
            _ => None,
        })
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Option<'a>;

    fn next(&mut self) -> std::option::Option<Self::Item> {
        let (option, rest) = split(self.rest)?;
        self.rest = rest;
        Some(option)
    }
}

/// The first option and what follows it. Lengths are in units of 8 bytes.
fn split(bytes: &[u8]) -> std::option::Option<(Option<'_>, &[u8])> {
    let length = usize::from(*bytes.get(1)?) * 8;
    let (option, rest) = bytes.split_at_checked(length)?;
    let [kind, _, data @ ..] = option else { return None };
    Some((read(*kind, data), rest))
}

fn read(kind: u8, data: &[u8]) -> Option<'_> {
    match (kind, data) {
        (1, &[a, b, c, d, e, f]) => Option::SourceLinkLayer(MacAddr::new([a, b, c, d, e, f])),
        (2, &[a, b, c, d, e, f]) => Option::TargetLinkLayer(MacAddr::new([a, b, c, d, e, f])),
        (3, _) => prefix(data).map_or(Option::Other { kind, data }, Option::Prefix),
        (4, [_, _, _, _, _, _, packet @ ..]) => Option::RedirectedHeader(packet),
        (5, &[_, _, a, b, c, d]) => Option::Mtu(u32::from_be_bytes([a, b, c, d])),
        _ => Option::Other { kind, data },
    }
}

fn prefix(data: &[u8]) -> std::option::Option<PrefixInformation> {
    let (&[length, flags], rest) = data.split_first_chunk()?;
    let (&valid, rest) = rest.split_first_chunk()?;
    let (&preferred, rest) = rest.split_first_chunk()?;
    let (_reserved, rest) = rest.split_first_chunk::<4>()?;
    let octets = <[u8; 16]>::try_from(rest).ok()?;
    Some(PrefixInformation {
        prefix: octets.into(),
        length,
        on_link: flags & 0x80 != 0,
        autonomous: flags & 0x40 != 0,
        valid_lifetime: u32::from_be_bytes(valid),
        preferred_lifetime: u32::from_be_bytes(preferred),
    })
}
