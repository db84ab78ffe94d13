//! Extension headers for which a packet's destination discards it (RFC 8200 4, 4.2, 4.4).

use super::extension::{MAX_EXTENSIONS, NEXT_HEADER_AT, is_extension, length_of};
use super::{HEADER_LENGTH, Header};
use crate::icmpv6::parameter_problem;
use crate::protocol::Protocol;

/// One byte of padding, which has no length (RFC 8200 4.2).
const PAD1: u8 = 0;

/// Why the destination of a packet discards it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Objection {
    /// Code of the parameter problem that the sender is told of; `None`: it is told nothing.
    pub code: Option<u8>,
    /// Which byte is the problem: from the start of the fixed header.
    pub pointer: usize,
}

/// What the destination of a packet objects to in its extension headers. `None`: nothing, as far as they go; how far, says
/// [`upper_layer`](super::upper_layer). What comes behind a fragment header counts once the packet is whole.
#[inline]
#[must_use]
pub fn objection(packet: &[u8]) -> Option<Objection> {
    let header = Header::peek(packet)?;
    let first = header.next_header();
    if !is_extension(first) {
        return None;
    }
    let end = header.total_length().min(packet.len());
    examine(packet.get(..end)?, first, header.destination().is_multicast())
}

fn examine(packet: &[u8], first: Protocol, to_group: bool) -> Option<Objection> {
    let (mut protocol, mut at, mut named_at) = (first, HEADER_LENGTH, NEXT_HEADER_AT);
    for _ in 0..MAX_EXTENSIONS {
        // 4: as a header that nobody knows.
        if protocol == Protocol::HOP_BY_HOP && at != HEADER_LENGTH {
            return told(parameter_problem::NEXT_HEADER, named_at);
        }
        let &[next, length, third, fourth, ..] = packet.get(at..)? else { return None };
        let header = packet.get(..at + length_of(protocol, length))?;
        let found = match protocol {
            Protocol::HOP_BY_HOP | Protocol::DESTINATION_OPTIONS => {
                in_options(header, at + 2, to_group)
            }
            // 4.4, and RFC 5095 3: no type is known here, so none may lead any further.
            Protocol::ROUTING if fourth != 0 => told(parameter_problem::FIELD, at + 2),
            Protocol::FRAGMENT if is_part(third, fourth) => return None,
            _ if is_extension(protocol) => None,
            _ => return None,
        };
        if found.is_some() {
            return found;
        }
        (protocol, named_at, at) = (Protocol(next), at, header.len());
    }
    None
}

/// Whether a fragment header with these bytes of offset and flags is that of a part (4.5).
fn is_part(high: u8, low: u8) -> bool {
    u16::from_be_bytes([high, low]) & 0xfff9 != 0
}

/// Looks at options from `at` to the end.
fn in_options(header: &[u8], mut at: usize, to_group: bool) -> Option<Objection> {
    while let Some(&kind) = header.get(at) {
        if kind == PAD1 {
            at += 1;
            continue;
        }
        let end = header.get(at + 1).map(|length| at + 2 + usize::from(*length));
        let Some(end) = end.filter(|end| *end <= header.len()) else {
            return told(parameter_problem::FIELD, at);
        };
        // 4.2: what to do with an unknown option is in the first two bits of its type.
        match kind >> 6 {
            0b00 => {}
            0b10 => return told(parameter_problem::OPTION, at),
            0b11 if !to_group => return told(parameter_problem::OPTION, at),
            _ => return Some(Objection { code: None, pointer: at }),
        }
        at = end;
    }
    None
}

fn told(code: u8, pointer: usize) -> Option<Objection> {
    Some(Objection { code: Some(code), pointer })
}

#[cfg(test)]
mod tests;
