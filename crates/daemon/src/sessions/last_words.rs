//! What the peer of a connection is told whose process has died, or that the daemon does not take.

use std::net::{IpAddr, SocketAddr};

use shm::connections::Sequences;
use wire::build::{Network, Payload, packet};
use wire::tcp::{Fields, Flags, HEADER_LENGTH};
use wire::{ipv6, special};

/// Hops that packets may take, as a kernel's.
const HOPS: u8 = 64;
/// The option of time stamps, behind two bytes of padding (RFC 7323, appendix A).
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];
/// Bytes of the longest of the packets.
const LONGEST: usize = ipv6::HEADER_LENGTH + HEADER_LENGTH + 12;

/// The end of a connection, said to its peer.
///
/// A reset that stands where the peer expects the next byte is believed at once (RFC 5961 3.2). The table may be some
/// milliseconds behind a busy connection, and then the reset is not believed. So an acknowledgment of something old
/// follows: the peer answers it with what it expects (RFC 9293 3.10.7.4), and that answer finds no stack any more and
/// gets the right reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LastWords {
    local: SocketAddr,
    remote: SocketAddr,
    sequences: Sequences,
}

impl LastWords {
    /// `None`: the ends are of different versions, or the other is a group.
    pub(super) fn new(local: SocketAddr, remote: SocketAddr, sequences: Sequences) -> Option<Self> {
        let is_group = match remote.ip() {
            IpAddr::V4(address) => special::classify_v4(address).is_some(),
            IpAddr::V6(address) => special::classify_v6(address).is_some(),
        };
        let is_sound = !is_group && local.is_ipv4() == remote.is_ipv4();
        is_sound.then_some(Self { local, remote, sequences })
    }

    /// IP packets, in order.
    pub(super) fn packets(&self) -> impl Iterator<Item = Vec<u8>> + use<> {
        let Sequences { unacknowledged, next, expected, timestamps } = self.sequences;
        let reset = self.fields(next, expected, Flags::RST | Flags::ACK);
        let old = self.fields(unacknowledged.wrapping_sub(1), expected, Flags::ACK);
        let options = timestamps.map(|(value, echo)| {
            let [a, b, c, d] = value.to_be_bytes();
            let [e, f, g, h] = echo.to_be_bytes();
            let [w, x, y, z] = TIMESTAMPS;
            [w, x, y, z, a, b, c, d, e, f, g, h]
        });
        let options = options.as_ref().map_or(&[][..], |options| &options[..]);
        [self.packet(reset, &[]), self.packet(old, options)].into_iter().flatten()
    }

    fn fields(&self, sequence: u32, acknowledgment: u32, flags: Flags) -> Fields {
        Fields {
            source_port: self.local.port(),
            destination_port: self.remote.port(),
            sequence,
            acknowledgment,
            flags,
            window: 0,
        }
    }

    /// `None`: the ends are of different versions.
    fn packet(&self, fields: Fields, options: &[u8]) -> Option<Vec<u8>> {
        let network = Network::between(self.local.ip(), self.remote.ip(), HOPS)?;
        let mut bytes = [0; LONGEST];
        let length = packet(&mut bytes, &network, &Payload::Tcp { fields, options, data: &[] });
        bytes.get(..length.ok()?).map(<[u8]>::to_vec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use wire::checksum::Sum;
    use wire::tcp::Segment;
    use wire::{Protocol, ipv4};

    fn words(local: &str, remote: &str, timestamps: Option<(u32, u32)>) -> Vec<Vec<u8>> {
        let (local, remote) = (local.parse().unwrap(), remote.parse().unwrap());
        let sequences = Sequences { unacknowledged: 0, next: 1000, expected: 77, timestamps };
        LastWords { local, remote, sequences }.packets().collect()
    }

    #[test]
    fn a_reset_and_something_old_with_right_checksums() {
        for (local, remote, header) in [
            ("192.0.2.1:80", "198.51.100.7:5000", 20),
            ("[2001:db8::1]:80", "[2001:db8::2]:5000", 40),
        ] {
            let packets = words(local, remote, Some((5, 6)));
            let parsed: Vec<Segment<'_>> =
                packets.iter().map(|packet| Segment::parse(&packet[header..]).unwrap()).collect();
            let [reset, old] = &parsed[..] else { panic!("{} packets", parsed.len()) };
            let facts = |segment: &Segment<'_>| {
                let header = &segment.header;
                (header.flags(), header.sequence(), header.acknowledgment())
            };
            assert_eq!(facts(reset), (Flags::RST | Flags::ACK, 1000, 77));
            assert_eq!(facts(old), (Flags::ACK, u32::MAX, 77), "one behind what is acknowledged");
            assert_eq!((reset.header.source_port(), reset.header.destination_port()), (80, 5000));
            let stamps = wire::tcp::Option::Timestamps { value: 5, echo: 6 };
            assert_eq!(old.options().next(), Some(Ok(stamps)));
            let (from, to): (SocketAddr, SocketAddr) =
                (local.parse().unwrap(), remote.parse().unwrap());
            for packet in &packets {
                let length = packet.len() - header;
                let pseudo = match (from.ip(), to.ip()) {
                    (IpAddr::V4(from), IpAddr::V4(to)) => {
                        assert!(ipv4::Header::parse(packet).is_ok());
                        Sum::new().pseudo_v4(from, to, Protocol::TCP, length as u16)
                    }
                    (IpAddr::V6(from), IpAddr::V6(to)) => {
                        Sum::new().pseudo_v6(from, to, Protocol::TCP, length as u32)
                    }
                    _ => panic!("mixed"),
                };
                assert!(Segment::parse(&packet[header..]).unwrap().is_intact(pseudo));
            }
        }
        let plain = words("192.0.2.1:80", "198.51.100.7:5000", None);
        assert_eq!((plain[0].len(), plain[1].len()), (40, 40));
    }
}
