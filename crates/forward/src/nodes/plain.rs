//! Plain frames: the common case, checked by `ethernet-input` in one pass over a frame's first bytes.
//!
//! A plain frame is untagged, comes to a routed port's own address and carries an IP packet without
//! options, at the frame's full length, between addresses that are not special. Such a packet passes
//! every check of `ip4-input` or `ip6-input`, so it goes straight to the look-up.

use std::net::Ipv4Addr;

use dpdk::Buffer;
use graph::{Picked, PortId, Slot, Vector};
use wire::{EtherType, ipv4, ipv6, special};

use crate::state::{Interfaces, Mode};

/// Length of an Ethernet header without tag: bytes.
pub(super) const HEADER: usize = 14;
/// The bits of a frame's first 8 bytes, little-endian, that are compared: the destination address,
/// and that the source is no group address.
const FRONT: u64 = 0x0001_ffff_ffff_ffff;

/// First octets of IPv4 addresses under which none is special (`wire::special`).
static ORDINARY4: [bool; 256] = ordinary(&[0, 127, 169], 224);
/// The same for IPv6.
static ORDINARY6: [bool; 256] = ordinary(&[0], 0xfe);

const fn ordinary(special: &[u8], from: usize) -> [bool; 256] {
    let mut table = [false; 256];
    let mut octet = 0;
    while octet < from {
        table[octet] = true;
        octet += 1;
    }
    let mut at = 0;
    while at < special.len() {
        table[special[at] as usize] = false;
        at += 1;
    }
    table
}

#[cold]
fn neither_special(source: Ipv4Addr, destination: Ipv4Addr) -> bool {
    special::classify_v4(source).is_none() && special::classify_v4(destination).is_none()
}

/// What the plain frames of a port have in common.
#[derive(Clone, Copy, Default)]
pub(super) struct Ingress {
    pub(super) port: PortId,
    interface: u16,
    /// The first 8 bytes of a frame, under [`FRONT`].
    front: u64,
    ip4: bool,
    ip6: bool,
}

impl Ingress {
    /// Of a port whose frames are not routed, none is plain.
    pub(super) fn of(interfaces: &Interfaces, port: PortId) -> Self {
        let none = Self { port, ..Self::default() };
        let Some(id) = interfaces.of_frame(port, None) else { return none };
        let Some(interface) = interfaces.get(id).filter(|known| known.mode == Mode::Routed) else {
            return none;
        };
        let [a, b, c, d, e, f] = interface.mac.octets();
        Self {
            port,
            interface: id,
            front: u64::from_le_bytes([a, b, c, d, e, f, 0, 0]),
            ip4: interface.takes_ip4(),
            ip6: interface.takes_ip6(),
        }
    }

    /// Takes the first slots up to one that is not plain, and returns how many it took.
    #[inline(never)]
    pub(super) fn take(
        self,
        slots: &[Slot],
        vector: &mut Vector,
        ip4: &mut Picked,
        ip6: &mut Picked,
    ) -> usize {
        for (taken, &slot) in slots.iter().enumerate() {
            let at = usize::from(slot);
            let Some(buffer) = vector.buffer(slot) else { continue };
            if buffer.port() != self.port {
                return taken;
            }
            if let Some(destination) = self.plain4(buffer) {
                vector.word[at] = destination;
                ip4.push(slot);
            } else if let Some(destination) = self.plain6(buffer) {
                vector.wide[at] = destination;
                ip6.push(slot);
            } else {
                return taken;
            }
            vector.interface[at] = self.interface;
            vector.network[at] = HEADER as u16;
        }
        slots.len()
    }

    /// The destination address of a plain IPv4 packet.
    #[inline(always)]
    fn plain4(self, buffer: &Buffer) -> Option<u32> {
        const LENGTH: usize = HEADER + ipv4::HEADER_LENGTH;
        let (ethernet, ip) = buffer.data().first_chunk::<LENGTH>()?.split_first_chunk()?;
        let ip = ip.first_chunk()?;
        if !(self.ip4 & self.matches(ethernet, EtherType::IPV4)) {
            return None;
        }
        let header = ipv4::Header::of_plain(ip, buffer.len() - HEADER)?;
        let (source, destination) = (header.source(), header.destination());
        let [from, ..] = source.octets();
        let [to, ..] = destination.octets();
        let ordinary = ORDINARY4[usize::from(from)] & ORDINARY4[usize::from(to)];
        (ordinary || neither_special(source, destination)).then(|| destination.to_bits())
    }

    /// The destination address of a plain IPv6 packet.
    #[inline(always)]
    fn plain6(self, buffer: &Buffer) -> Option<u128> {
        const LENGTH: usize = HEADER + ipv6::HEADER_LENGTH;
        let (ethernet, ip) = buffer.data().first_chunk::<LENGTH>()?.split_first_chunk()?;
        let ip = ip.first_chunk()?;
        if !(self.ip6 & self.matches(ethernet, EtherType::IPV6)) {
            return None;
        }
        let header = ipv6::Header::of_plain(ip, buffer.len() - HEADER)?;
        let [source, ..] = header.source().octets();
        let [destination, ..] = header.destination().octets();
        let ordinary = ORDINARY6[usize::from(source)] & ORDINARY6[usize::from(destination)];
        ordinary.then(|| header.destination().to_bits())
    }

    #[inline(always)]
    fn matches(self, header: &[u8; HEADER], ether_type: EtherType) -> bool {
        let [front @ .., _, _, _, _, _, _] = header;
        let [.., t0, t1] = header;
        u64::from_le_bytes(*front) & FRONT == self.front
            && u16::from_be_bytes([*t0, *t1]) == ether_type.0
    }
}
