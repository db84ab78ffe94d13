//! What an IP packet carries, and what an ICMP error quotes.

use std::net::IpAddr;

use wire::{Protocol, icmpv4, icmpv6, ipv4, ipv6};

/// ICMP types that report an error about a packet of ours (RFC 792; RFC 1122 3.2.2).
const ERRORS4: [u8; 3] = [3, 11, 12];
/// Those of ICMPv6 (RFC 4443 2.1).
const ERRORS6: [u8; 4] = [1, 2, 3, 4];

/// Who speaks to whom, and what.
pub(crate) struct Upper {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) protocol: Protocol,
    /// Where its header begins.
    pub(crate) at: usize,
}

impl Upper {
    /// Of a packet whose IP header was checked. `None`: it is no IP packet, or a fragment.
    pub(crate) fn of(packet: &[u8]) -> Option<Self> {
        let is_fragment = match ipv4::Header::peek(packet) {
            Some(header) => header.is_fragment(),
            None => ipv6::upper_layer(packet).ok()?.fragment.is_some(),
        };
        if is_fragment { None } else { Self::of_first(packet) }
    }

    /// The same of a quoted packet, or of the first of its fragments.
    pub(crate) fn of_first(packet: &[u8]) -> Option<Self> {
        if let Some(header) = ipv4::Header::peek(packet) {
            return (header.fragment_offset() == 0).then(|| Self {
                source: header.source().into(),
                destination: header.destination().into(),
                protocol: header.protocol(),
                at: header.header_length(),
            });
        }
        let header = ipv6::Header::peek(packet)?;
        let upper = ipv6::upper_layer(packet).ok()?;
        (!upper.is_later_fragment()).then(|| Self {
            source: header.source().into(),
            destination: header.destination().into(),
            protocol: upper.protocol,
            at: upper.offset,
        })
    }
}

/// The packet that an ICMP error is about; `bytes`: from the ICMP header on. `None`: it is no error, or a broken one.
pub(crate) fn quotation<'a>(upper: &Upper, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let kind = bytes.first()?;
    match (upper.protocol, upper.source, upper.destination) {
        (Protocol::ICMPV4, _, _) if ERRORS4.contains(kind) => {
            icmpv4::Header::parse(bytes).ok().map(|(_, quoted)| quoted)
        }
        (Protocol::ICMPV6, IpAddr::V6(source), IpAddr::V6(destination))
            if ERRORS6.contains(kind) =>
        {
            icmpv6::Header::parse(bytes, source, destination).ok().map(|(_, quoted)| quoted)
        }
        _ => None,
    }
}
