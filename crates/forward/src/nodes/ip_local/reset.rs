//! The answer to a TCP segment that no stack has: a reset (RFC 9293 3.10.7.1).

use std::net::IpAddr;

use dpdk::Buffer;
use graph::Reason;
use wire::build::{Network, Payload, packet};
use wire::checksum::Sum;
use wire::tcp::{Fields, Flags, Segment};
use wire::{Protocol, ipv4, ipv6, special};

use super::judge::HOPS;

/// A reset that may be sent.
pub(super) struct Reset {
    source: IpAddr,
    destination: IpAddr,
    fields: Fields,
}

impl Reset {
    /// The answer to the segment of this packet, if it may be answered. `verified`: its checksum was found right.
    pub(super) fn of(packet: &[u8], verified: bool) -> Result<Self, Reason> {
        let (from, to, upper, end) = if let Some(header) = ipv4::Header::peek(packet) {
            let (from, to) = (header.source().into(), header.destination().into());
            (from, to, header.header_length(), usize::from(header.total_length()))
        } else {
            let header = ipv6::Header::peek(packet).ok_or(Reason::TcpMalformed)?;
            let upper = ipv6::upper_layer(packet).map_err(|_| Reason::Ip6Extension)?;
            let (from, to) = (header.source().into(), header.destination().into());
            (from, to, upper.offset, header.total_length())
        };
        if !may_be_answered(from) || !may_be_answered(to) {
            return Err(Reason::ResetNotAllowed);
        }
        let bytes = packet.get(upper..end).ok_or(Reason::TcpMalformed)?;
        let segment = Segment::parse(bytes).map_err(|_| Reason::TcpMalformed)?;
        if !verified && !segment.is_intact(pseudo(from, to, bytes.len())) {
            return Err(Reason::TcpMalformed);
        }
        let flags = segment.header.flags();
        if flags.contains(Flags::RST) {
            return Err(Reason::ResetNotAllowed);
        }
        let (sequence, acknowledgment, flags) = if flags.contains(Flags::ACK) {
            (segment.header.acknowledgment(), 0, Flags::RST)
        } else {
            // SYN and FIN take a sequence number each.
            let controls = [Flags::SYN, Flags::FIN].into_iter().filter(|one| flags.contains(*one));
            let length = segment.data.len() as u32 + controls.count() as u32;
            (0, segment.header.sequence().wrapping_add(length), Flags::RST | Flags::ACK)
        };
        let fields = Fields {
            source_port: segment.header.destination_port(),
            destination_port: segment.header.source_port(),
            sequence,
            acknowledgment,
            flags,
            window: 0,
        };
        Ok(Self { source: to, destination: from, fields })
    }

    /// Whom it goes to.
    pub(super) fn to(&self) -> IpAddr {
        self.destination
    }

    /// Writes it over the segment; gives whom it goes to. `None`: the buffer is too short.
    pub(super) fn write(self, buffer: &mut Buffer, network: usize) -> Option<IpAddr> {
        let Self { source, destination, fields } = self;
        let ip = Network::between(source, destination, HOPS)?;
        let segment = Payload::Tcp { fields, options: &[], data: &[] };
        let length = packet(buffer.data_mut().get_mut(network..)?, &ip, &segment).ok()?;
        buffer.truncate(network + length).then_some(destination)
    }
}

/// RFC 1122 3.2.1.3, 4.2.3.10: nothing is said to a group, nor in its name.
fn may_be_answered(address: IpAddr) -> bool {
    let special = match address {
        IpAddr::V4(address) => special::classify_v4(address),
        IpAddr::V6(address) => special::classify_v6(address),
    };
    matches!(special, None | Some(special::Special::LinkLocal))
}

fn pseudo(source: IpAddr, destination: IpAddr, length: usize) -> Sum {
    match (source, destination) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            Sum::new().pseudo_v4(from, to, Protocol::TCP, length as u16)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            Sum::new().pseudo_v6(from, to, Protocol::TCP, length as u32)
        }
        _ => Sum::new(),
    }
}
