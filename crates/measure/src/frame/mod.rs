//! Test frames: valid packets that say when they were sent, as which of their stream, and whether they are intact.

use std::net::IpAddr;

use wire::build::BuildError;
use wire::vlan::TAG_LENGTH;
use wire::{ethernet, ipv4, ipv6, tcp, udp};

pub use reader::{Arrival, Reader};
pub use signature::Signature;
pub use template::{Stream, Template};

mod filler;
mod reader;
mod signature;
mod template;
#[cfg(test)]
mod tests;

/// Bytes of the frame check sequence, which frame sizes count and frames in memory lack.
pub const CHECK_SEQUENCE: u16 = 4;
/// The longest frame: bytes, frame check sequence included. A jumbo frame as most network cards take it.
pub const LONGEST: u16 = 9216;

/// What carries the test data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// UDP datagrams.
    Udp,
    /// Segments that look like those of TCP connections; nobody answers them.
    Tcp,
}

/// Which bits tell a stream's flows apart: 32 bits, to which the flow's number is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vary {
    /// The low 32 bits of the destination address: one source, many destinations.
    Destination,
    /// The low 32 bits of the source address.
    Source,
    /// The source port in the high, the destination port in the low half.
    Ports,
}

/// Where things lie in a test frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// IPv6 in place of IPv4.
    pub ipv6: bool,
    /// What carries the test data.
    pub transport: Transport,
    /// Whether there is a VLAN tag.
    pub tagged: bool,
}

/// Why a stream of test frames cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The frame has no room for the headers and the signature.
    #[error(
        "a frame of {size} bytes has no room for its headers and the {} bytes that tell test frames apart: use {least} or more",
        Signature::LENGTH
    )]
    Short {
        /// Asked for: bytes.
        size: u16,
        /// The smallest that has room: bytes.
        least: u16,
    },
    /// Longer than [`LONGEST`].
    #[error("a frame of {size} bytes is too long: use {} or fewer", LONGEST)]
    Long {
        /// Asked for: bytes.
        size: u16,
    },
    /// Source and destination are of different versions.
    #[error("{0} and {1} are of different IP versions")]
    Versions(IpAddr, IpAddr),
    /// The packet was not built.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl Layout {
    /// Where the IP header begins.
    const fn network(self) -> usize {
        ethernet::HEADER_LENGTH + if self.tagged { TAG_LENGTH } else { 0 }
    }

    /// Where the UDP or TCP header begins.
    const fn transport(self) -> usize {
        self.network() + if self.ipv6 { ipv6::HEADER_LENGTH } else { ipv4::HEADER_LENGTH }
    }

    /// Where the IP addresses lie, source first, and how long each is.
    const fn addresses(self) -> (usize, usize) {
        if self.ipv6 { (self.network() + 8, 16) } else { (self.network() + 12, 4) }
    }

    /// Where the varying 32 bits lie.
    const fn varying(self, vary: Vary) -> usize {
        let (at, length) = self.addresses();
        match vary {
            Vary::Source => at + length - 4,
            Vary::Destination => at + 2 * length - 4,
            Vary::Ports => self.transport(),
        }
    }

    /// Where the transport's checksum lies.
    const fn checksum(self) -> usize {
        self.transport()
            + match self.transport {
                Transport::Udp => 6,
                Transport::Tcp => 16,
            }
    }

    /// Where the filler begins, behind the signature.
    ///
    /// In TCP segments the fields that only connections need hold most of the signature, so that it fits into 64 bytes.
    const fn filler(self) -> usize {
        self.transport()
            + match self.transport {
                Transport::Udp => udp::HEADER_LENGTH + Signature::LENGTH,
                Transport::Tcp => tcp::HEADER_LENGTH + signature::AFTER_TCP_HEADER,
            }
    }

    /// The smallest frame: bytes, frame check sequence included.
    #[must_use]
    pub const fn least(self) -> u16 {
        let least = self.filler() as u16 + CHECK_SEQUENCE;
        if least > 64 { least } else { 64 }
    }
}
