//! What all frames of a stream have in common, and how each is made of it.

use std::net::IpAddr;

use wire::build::{self, Link, Network, Payload};
use wire::checksum::Sum;
use wire::{Protocol, tcp};

use super::{
    CHECK_SEQUENCE, FrameError, LONGEST, Layout, Signature, Transport, Vary, filler::filler,
};

/// Hops that test frames may take.
const HOPS: u8 = 64;

/// Who sends to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// Ethernet addresses, and the VLAN.
    pub link: Link,
    /// Source address of flow 0.
    pub source: IpAddr,
    /// Destination address of flow 0.
    pub destination: IpAddr,
    /// Source and destination port of flow 0.
    pub ports: [u16; 2],
    /// What carries the test data.
    pub transport: Transport,
    /// Which bits tell flows apart.
    pub vary: Vary,
}

impl Stream {
    /// Where things lie in its frames.
    #[must_use]
    pub fn layout(&self) -> Layout {
        Layout {
            ipv6: self.source.is_ipv6(),
            transport: self.transport,
            tagged: self.link.vlan.is_some(),
        }
    }
}

/// The frames of one size.
#[derive(Debug, Clone)]
pub struct Template {
    layout: Layout,
    bytes: Vec<u8>,
    /// Where the varying bits lie, and what they are in flow 0.
    at: usize,
    base: u32,
    /// Sums of the IPv4 header, and of the transport with its pseudo header, without what varies.
    header: Option<Sum>,
    body: Sum,
}

impl Template {
    /// The frames of `size` bytes, frame check sequence included.
    ///
    /// # Errors
    /// [`FrameError::Short`], [`FrameError::Long`], [`FrameError::Versions`].
    pub fn new(stream: &Stream, size: u16) -> Result<Self, FrameError> {
        let layout = stream.layout();
        let least = layout.least();
        if size < least {
            return Err(FrameError::Short { size, least });
        }
        if size > LONGEST {
            return Err(FrameError::Long { size });
        }
        let (source, destination) = (stream.source, stream.destination);
        let network = Network::between(source, destination, HOPS)
            .ok_or(FrameError::Versions(source, destination))?;
        let mut bytes = vec![0; usize::from(size - CHECK_SEQUENCE)];
        let length = bytes.len();
        let data = match layout.transport {
            Transport::Udp => length - layout.transport() - wire::udp::HEADER_LENGTH,
            Transport::Tcp => length - layout.transport() - tcp::HEADER_LENGTH,
        };
        let before = data - (length - layout.filler());
        let data = [&vec![0; before][..], filler(data - before)].concat();
        build::frame(&mut bytes, &stream.link, &network, &payload(stream, &data))?;
        let at = layout.varying(stream.vary);
        let base = take(&mut bytes, at);
        let mut template = Self { layout, bytes, at, base, header: None, body: Sum::new() };
        template.sum();
        Ok(template)
    }

    /// Takes the checksums out, and sums up what is left.
    fn sum(&mut self) {
        let Layout { ipv6, transport, .. } = self.layout;
        let (network, body) = (self.layout.network(), self.layout.transport());
        self.put(self.layout.checksum(), [0; 2]);
        if !ipv6 {
            self.put(network + 10, [0; 2]);
            self.header = Some(Sum::new().bytes(&self.bytes[network..body]));
        }
        let (addresses, length) = self.layout.addresses();
        let protocol = match transport {
            Transport::Udp => Protocol::UDP,
            Transport::Tcp => Protocol::TCP,
        };
        let rest = &self.bytes[body..];
        self.body = Sum::new()
            .bytes(&self.bytes[addresses..addresses + 2 * length])
            .u32(rest.len() as u32)
            .u16(u16::from(protocol.0))
            .bytes(rest);
    }

    fn put(&mut self, at: usize, word: [u8; 2]) {
        self.bytes[at..at + 2].copy_from_slice(&word);
    }

    /// Bytes of a frame in memory: without frame check sequence.
    #[must_use]
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Makes `frame`, of [`length`](Self::length) bytes, this frame of a flow: checksums included. `false`: it has another
    /// length, and nothing was written.
    #[inline]
    pub fn write(&self, frame: &mut [u8], flow: u32, signature: &Signature) -> bool {
        if frame.len() != self.bytes.len() {
            return false;
        }
        frame.copy_from_slice(&self.bytes);
        let varying = self.base.wrapping_add(flow);
        let signature = signature.bytes();
        let body = Signature::sum(&signature, self.body).u32(varying);
        let checksum = match self.layout.transport {
            Transport::Udp => body.finish_udp(),
            Transport::Tcp => body.finish(),
        };
        let mut put = |at: usize, word: &[u8]| {
            frame.get_mut(at..at + word.len()).is_some_and(|to| {
                to.copy_from_slice(word);
                true
            })
        };
        let header = self.header.is_none_or(|header| {
            // Ports are no part of the header.
            let header =
                if self.at < self.layout.transport() { header.u32(varying) } else { header };
            put(self.layout.network() + 10, &header.finish().to_be_bytes())
        });
        header
            && put(self.at, &varying.to_be_bytes())
            && put(self.layout.checksum(), &checksum.to_be_bytes())
            && Signature::place(&signature, frame, self.layout)
    }
}

fn payload<'a>(stream: &Stream, data: &'a [u8]) -> Payload<'a> {
    let [source_port, destination_port] = stream.ports;
    match stream.transport {
        Transport::Udp => Payload::Udp { source_port, destination_port, data },
        Transport::Tcp => Payload::Tcp {
            fields: tcp::Fields {
                source_port,
                destination_port,
                sequence: 0,
                acknowledgment: 0,
                flags: tcp::Flags::ACK,
                window: 0,
            },
            options: &[],
            data,
        },
    }
}

/// Takes 32 bits out, and leaves zeroes.
fn take(bytes: &mut [u8], at: usize) -> u32 {
    let place = &mut bytes[at..at + 4];
    let word = u32::from_be_bytes([place[0], place[1], place[2], place[3]]);
    place.fill(0);
    word
}
