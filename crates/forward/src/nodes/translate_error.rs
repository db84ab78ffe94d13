//! ICMP errors about packets that were translated on their way out: whoever sent the packet is told, about the packet that
//! it sent (RFC 5508 4.2).
//!
//! The translation is that of the flow in the other direction, read backwards: it knows the addresses inside.

use std::net::IpAddr;

use wire::checksum::{self, Sum};
use wire::flow::FiveTuple;

use super::translate;
use crate::flow::Rewrite;
use crate::quotation::{Upper, quotation};

/// Where an ICMP error has what.
pub(super) struct Quoting {
    /// Flow of the answers to the packet that it quotes.
    pub(super) answers: FiveTuple,
    /// Where the ICMP header begins.
    icmp: usize,
    /// Where the quoted packet begins.
    quoted: usize,
}

impl Quoting {
    /// `None`: the packet is no ICMP error to who has sent the packet that it quotes.
    pub(super) fn of(packet: &[u8]) -> Option<Self> {
        let upper = Upper::of(packet)?;
        let quoted = quotation(&upper, packet.get(upper.at..)?)?;
        let tuple = FiveTuple::of(quoted)?;
        let from: IpAddr = match &tuple {
            FiveTuple::V4(flow) => flow.source().into(),
            FiveTuple::V6(flow) => flow.source().into(),
        };
        (from == upper.destination).then(|| Self {
            answers: tuple.reversed(),
            icmp: upper.at,
            quoted: packet.len() - quoted.len(),
        })
    }

    /// Translates the error and the packet in it. `rewrite`: of the answers.
    pub(super) fn apply(&self, packet: &mut [u8], rewrite: &Rewrite) {
        let Some(quoted) = packet.get_mut(self.quoted..) else { return };
        let before = Sum::new().bytes(quoted).finish();
        let backwards = Rewrite {
            source: rewrite.destination,
            source_port: rewrite.destination_port,
            destination: rewrite.source,
            destination_port: rewrite.source_port,
        };
        translate::apply(quoted, &backwards);
        let after = Sum::new().bytes(quoted).finish();
        if let Some([a, b]) = packet.get_mut(self.icmp + 2..self.icmp + 4) {
            let sum = checksum::update_u16(u16::from_be_bytes([*a, *b]), !before, !after);
            [*a, *b] = sum.to_be_bytes();
        }
        // RFC 5508 4.2, requirement 5 (c): whoever on the inside has found the error, it comes from the outside address.
        let Rewrite { source, destination, .. } = *rewrite;
        let outer = Rewrite { source, destination, ..Rewrite::default() };
        translate::apply(packet, &outer);
    }
}
