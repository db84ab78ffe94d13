//! What an IP packet carries, and how it is written.

use std::net::Ipv6Addr;

use zerocopy::{FromBytes, IntoBytes};

use super::{BuildError, Network, write};
use crate::checksum::Sum;
use crate::ethernet::MacAddr;
use crate::protocol::Protocol;
use crate::{icmpv4, icmpv6, ndp, tcp, udp};

/// What an IP packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload<'a> {
    /// A UDP datagram.
    Udp {
        /// Source port.
        source_port: u16,
        /// Destination port.
        destination_port: u16,
        /// Its data.
        data: &'a [u8],
    },
    /// A TCP segment.
    Tcp {
        /// Its fixed header.
        fields: tcp::Fields,
        /// Its options' bytes, a multiple of 4 up to 40.
        options: &'a [u8],
        /// Its data.
        data: &'a [u8],
    },
    /// An ICMP message in an IPv4 packet.
    Icmpv4 {
        /// What its header says.
        message: icmpv4::Message,
        /// What follows the header.
        data: &'a [u8],
    },
    /// An ICMPv6 message in an IPv6 packet.
    Icmpv6 {
        /// What its header says.
        message: icmpv6::Message,
        /// What follows the header.
        data: &'a [u8],
    },
    /// Neighbour discovery in an IPv6 packet; its hop limit is for the caller to set to 255.
    Neighbor(Neighbor),
    /// Bytes as they are.
    Raw {
        /// What they are.
        protocol: Protocol,
        /// The bytes.
        data: &'a [u8],
    },
}

/// A message of neighbour discovery about one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbor {
    /// Who has `target`?
    Solicitation {
        /// The address asked for.
        target: Ipv6Addr,
        /// The sender's MAC address; `None` when the source is unspecified.
        source_link_layer: Option<MacAddr>,
    },
    /// `target` is here.
    Advertisement {
        /// The three flags.
        flags: ndp::Flags,
        /// The address told about.
        target: Ipv6Addr,
        /// Its MAC address.
        target_link_layer: Option<MacAddr>,
    },
}

impl Neighbor {
    /// Header, target address, and the bytes of the option, if any.
    fn parts(&self) -> (icmpv6::Header, [u8; 16], Option<[u8; 8]>) {
        let (kind, rest, target, option, mac) = match *self {
            Self::Solicitation { target, source_link_layer } => {
                (ndp::kind::NEIGHBOR_SOLICITATION, 0, target, 1, source_link_layer)
            }
            Self::Advertisement { flags, target, target_link_layer } => {
                (ndp::kind::NEIGHBOR_ADVERTISEMENT, flags.bits(), target, 2, target_link_layer)
            }
        };
        let header = icmpv6::Header::new(&icmpv6::Message::Other { kind, code: 0, rest });
        let option = mac.map(|mac| {
            let [a, b, c, d, e, f] = mac.octets();
            [option, 1, a, b, c, d, e, f]
        });
        (header, target.octets(), option)
    }
}

impl Payload<'_> {
    pub(super) fn protocol(&self) -> Protocol {
        match self {
            Self::Udp { .. } => Protocol::UDP,
            Self::Tcp { .. } => Protocol::TCP,
            Self::Icmpv4 { .. } => Protocol::ICMPV4,
            Self::Icmpv6 { .. } | Self::Neighbor(_) => Protocol::ICMPV6,
            Self::Raw { protocol, .. } => *protocol,
        }
    }

    pub(super) fn length(&self) -> Result<usize, BuildError> {
        Ok(match self {
            Self::Udp { data, .. } => udp::HEADER_LENGTH + data.len(),
            Self::Tcp { options, data, .. } => {
                if options.len() > tcp::MAX_OPTIONS_LENGTH || options.len() % 4 != 0 {
                    return Err(BuildError::TcpOptions(options.len()));
                }
                tcp::HEADER_LENGTH + options.len() + data.len()
            }
            Self::Icmpv4 { data, .. } => icmpv4::HEADER_LENGTH + data.len(),
            Self::Icmpv6 { data, .. } => icmpv6::HEADER_LENGTH + data.len(),
            Self::Neighbor(neighbor) => {
                let (_, target, option) = neighbor.parts();
                icmpv6::HEADER_LENGTH + target.len() + option.map_or(0, |option| option.len())
            }
            Self::Raw { data, .. } => data.len(),
        })
    }

    /// Writes header, data and checksum; `body` has exactly the payload's length, which fits 16
    /// bits.
    pub(super) fn write(&self, body: &mut [u8], network: &Network) -> Result<(), BuildError> {
        match (self, network) {
            (Self::Udp { source_port, destination_port, data }, _) => {
                let length = body.len() as u16;
                let header = udp::Header::new(*source_port, *destination_port, length);
                write(write(body, header.as_bytes())?, data)?;
                let sum = self.sum(body, network).finish_udp();
                if let Ok((header, _)) = udp::Header::mut_from_prefix(body) {
                    header.set_checksum(sum);
                }
            }
            (Self::Tcp { fields, options, data }, _) => {
                let header = fields.header(options.len());
                write(write(write(body, header.as_bytes())?, options)?, data)?;
                let sum = self.sum(body, network).finish();
                if let Ok((header, _)) = tcp::Header::mut_from_prefix(body) {
                    header.set_checksum(sum);
                }
            }
            (Self::Icmpv4 { message, data }, Network::V4(_)) => {
                let mut header = icmpv4::Header::new(message);
                header.set_checksum(Sum::new().bytes(header.as_bytes()).bytes(data).finish());
                write(write(body, header.as_bytes())?, data)?;
            }
            (Self::Icmpv6 { message, data }, Network::V6(_)) => {
                write(write(body, icmpv6::Header::new(message).as_bytes())?, data)?;
                self.finish_icmpv6(body, network);
            }
            (Self::Neighbor(neighbor), Network::V6(_)) => {
                let (header, target, option) = neighbor.parts();
                let rest = write(write(body, header.as_bytes())?, &target)?;
                write(rest, option.as_ref().map_or(&[][..], |option| option))?;
                self.finish_icmpv6(body, network);
            }
            (Self::Raw { data, .. }, _) => {
                write(body, data)?;
            }
            (Self::Icmpv4 { .. } | Self::Icmpv6 { .. } | Self::Neighbor(_), _) => {
                return Err(BuildError::Version);
            }
        }
        Ok(())
    }

    fn finish_icmpv6(&self, body: &mut [u8], network: &Network) {
        let sum = self.sum(body, network).finish();
        if let Ok((header, _)) = icmpv6::Header::mut_from_prefix(body) {
            header.set_checksum(sum);
        }
    }

    /// The sum over the pseudo header and the body.
    fn sum(&self, body: &[u8], network: &Network) -> Sum {
        let (protocol, length) = (self.protocol(), body.len());
        let pseudo = match network {
            Network::V4(ip) => {
                Sum::new().pseudo_v4(ip.source, ip.destination, protocol, length as u16)
            }
            Network::V6(ip) => {
                Sum::new().pseudo_v6(ip.source, ip.destination, protocol, length as u32)
            }
        };
        pseudo.bytes(body)
    }
}
