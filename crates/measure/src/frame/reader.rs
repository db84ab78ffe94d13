//! What a received frame is.

use wire::checksum::{Sum, ipv4_header_is_valid};
use wire::{EtherType, Protocol};

use super::{Layout, Signature, Stream, Transport, Vary, filler::filler};

/// What a received frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// A test frame with nothing wrong about it.
    Intact(Signature),
    /// A test frame in which something is wrong; its signature, if that is readable.
    Corrupt(Option<Signature>),
    /// No test frame: a device's own, such as ARP.
    Foreign,
}

/// Reads the frames of one stream.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    layout: Layout,
    /// The destination port that all frames have.
    port: Option<u16>,
}

impl Reader {
    /// For the frames of a stream, which arrive with a VLAN tag or without.
    #[must_use]
    pub fn new(stream: &Stream, tagged: bool) -> Self {
        let [_, port] = stream.ports;
        let port = (stream.vary != Vary::Ports).then_some(port);
        Self { layout: Layout { tagged, ..stream.layout() }, port }
    }

    /// Whether its frames are IPv6.
    #[must_use]
    pub fn is_ipv6(&self) -> bool {
        self.layout.ipv6
    }

    /// Looks at a frame, without its frame check sequence, perhaps padded at the end.
    ///
    /// A router changes Ethernet addresses, hop limit and IPv4 header checksum, a translator addresses and ports with their
    /// checksums; the rest has to arrive as it was sent. Headers are checked by their checksums, the signature by its own, and
    /// every byte behind it.
    #[inline]
    #[must_use]
    pub fn read(&self, frame: &[u8]) -> Arrival {
        let bytes = Signature::find(frame, self.layout);
        let signature = bytes.as_ref().and_then(Signature::read);
        match signature {
            Some(signature) if self.is_intact(frame) => Arrival::Intact(signature),
            Some(_) => Arrival::Corrupt(signature),
            None if self.looks_like_ours(frame) => Arrival::Corrupt(None),
            None => Arrival::Foreign,
        }
    }

    /// The packet's bytes, padding cut off: from its IP header on.
    fn packet<'a>(&self, frame: &'a [u8]) -> Option<&'a [u8]> {
        let Layout { ipv6, .. } = self.layout;
        if !self.has_our_type(frame) {
            return None;
        }
        let packet = frame.get(self.layout.network()..)?;
        let (at, header) = if ipv6 { (4, wire::ipv6::HEADER_LENGTH) } else { (2, 0) };
        packet.get(..header + usize::from(word(packet, at)?))
    }

    /// Whether the EtherType in front of the IP header is that of our IP version.
    fn has_our_type(&self, frame: &[u8]) -> bool {
        let ours = if self.layout.ipv6 { EtherType::IPV6 } else { EtherType::IPV4 };
        word(frame, self.layout.network() - 2) == Some(ours.0)
    }

    fn protocol(&self) -> Protocol {
        match self.layout.transport {
            Transport::Udp => Protocol::UDP,
            Transport::Tcp => Protocol::TCP,
        }
    }

    fn is_intact(&self, frame: &[u8]) -> bool {
        let Some(packet) = self.packet(frame) else { return false };
        let network = self.layout.network();
        let header = self.layout.transport() - network;
        let Some((header, body)) = packet.split_at_checked(header) else { return false };
        let next = if self.layout.ipv6 { 6 } else { 9 };
        let sound = match header.first_chunk() {
            Some(header) if self.layout.ipv6 => header[0] >> 4 == 6,
            Some(header) => header[0] == 0x45 && ipv4_header_is_valid(header),
            None => false,
        };
        let (addresses, length) = self.layout.addresses();
        let addresses = header.get(addresses - network..addresses - network + 2 * length);
        let sum = Sum::new()
            .bytes(addresses.unwrap_or(&[]))
            .u32(body.len() as u32)
            .u16(u16::from(self.protocol().0))
            .bytes(body);
        let rest = packet.get(self.layout.filler() - network..).unwrap_or(&[]);
        sound
            && header.get(next) == Some(&self.protocol().0)
            && self.has_right_length(body)
            && sum.is_valid()
            && rest == filler(rest.len())
    }

    /// Whether UDP's length is that of what IP carries; TCP has none.
    fn has_right_length(&self, body: &[u8]) -> bool {
        self.layout.transport == Transport::Tcp
            || word(body, 4).map(usize::from) == Some(body.len())
    }

    /// Whether a frame without a readable signature is a damaged one of ours, and not a device's own: it has our protocol
    /// and destination port.
    fn looks_like_ours(&self, frame: &[u8]) -> bool {
        let next = self.layout.network() + if self.layout.ipv6 { 6 } else { 9 };
        let port = word(frame, self.layout.transport() + 2);
        self.has_our_type(frame)
            && frame.get(next) == Some(&self.protocol().0)
            && port.is_some_and(|port| self.port.is_none_or(|ours| ours == port))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}
