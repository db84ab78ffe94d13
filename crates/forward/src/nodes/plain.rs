//! Plain frames: the common case, checked by `ethernet-input` in one pass over a frame's first bytes.
//!
//! A plain frame comes to the own address of a routed port or VLAN sub-interface and carries an IP packet without
//! options, at the frame's full length but for the padding of a short one, between addresses that are not special. Such a
//! packet passes every check of `ip4-input` or `ip6-input`, so it goes past them. A run of frames is checked
//! against what its first one came by, a block of them at a time.

use std::net::Ipv4Addr;

use dpdk::Buffer;
use graph::{PortId, Slot, Vector};
use wire::{EtherType, ipv4, ipv6, special, vlan};

use crate::state::{Interfaces, Mode};

/// Length of an Ethernet header without tag: bytes.
pub(super) const HEADER: usize = 14;
/// The same with a tag.
const TAGGED: usize = HEADER + vlan::TAG_LENGTH;
/// Packets in a block: as many as a look-up takes side by side, few enough that their headers and descriptors (128 bytes each)
/// are still in a first-level cache of 32 KB when they are rewritten.
pub(super) const BLOCK: usize = 64;
/// What a frame carries at least (IEEE 802.3 4.2.3.3): a shorter packet is padded. Bytes.
const LEAST: usize = 46;
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

/// The plain packets of a block that are of one family, in order, with what is looked up for each.
pub(super) struct Block<K> {
    slots: [Slot; BLOCK],
    keys: [K; BLOCK],
    len: usize,
}

impl<K: Copy + Default> Block<K> {
    /// None yet.
    pub(super) fn new() -> Self {
        Self { slots: [0; BLOCK], keys: [K::default(); BLOCK], len: 0 }
    }

    /// Adds one. More than a block holds start over.
    #[inline(always)]
    fn push(&mut self, slot: Slot, key: K) {
        let at = self.len % BLOCK;
        self.slots[at] = slot;
        self.keys[at] = key;
        self.len += 1;
    }

    /// Where the packets are.
    #[inline(always)]
    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots[..self.len.min(BLOCK)]
    }

    /// Their destination addresses.
    #[inline(always)]
    pub(super) fn keys(&self) -> &[K] {
        &self.keys[..self.len.min(BLOCK)]
    }
}

/// What the plain frames of a port or VLAN have in common.
#[derive(Clone, Copy, Default)]
pub(super) struct Ingress {
    port: PortId,
    /// Of the VLAN tag.
    vlan: Option<u16>,
    interface: u16,
    /// The first 8 bytes of a frame, under [`FRONT`].
    front: u64,
    ip4: bool,
    ip6: bool,
    features: bool,
}

impl Ingress {
    /// Of the frames that come as this one does. Where they are not routed, none is plain.
    pub(super) fn of(interfaces: &Interfaces, port: PortId, frame: &[u8]) -> Self {
        let vlan = vlan_of(frame);
        let none = Self { port, vlan, ..Self::default() };
        let Some(id) = interfaces.of_frame(port, vlan) else { return none };
        let Some(interface) = interfaces.get(id).filter(|known| known.mode == Mode::Routed) else {
            return none;
        };
        let [a, b, c, d, e, f] = interface.mac.octets();
        Self {
            port,
            vlan,
            interface: id,
            front: u64::from_le_bytes([a, b, c, d, e, f, 0, 0]),
            ip4: interface.takes_ip4(),
            ip6: interface.takes_ip6(),
            features: !interface.input_features().is_empty(),
        }
    }

    /// Whether the interface has features on the input arc.
    #[inline]
    pub(super) fn has_features(self) -> bool {
        self.features
    }

    /// Interface that they come in on.
    #[inline]
    pub(super) fn interface(self) -> u16 {
        self.interface
    }

    /// Whether they have a VLAN tag.
    #[inline]
    pub(super) fn is_tagged(self) -> bool {
        self.vlan.is_some()
    }

    /// Length of their Ethernet headers: bytes.
    #[inline]
    pub(super) fn header(self) -> usize {
        if self.is_tagged() { TAGGED } else { HEADER }
    }

    /// Whether this may be what a frame has come by.
    #[inline]
    pub(super) fn is_of(self, port: PortId, frame: &[u8]) -> bool {
        self.port == port && self.vlan == vlan_of(frame)
    }

    /// Takes the first slots, at most a block of them, up to one that is not plain, and returns how many it took.
    #[inline]
    pub(super) fn take(
        self,
        slots: &[Slot],
        vector: &mut Vector,
        ip4: &mut Block<u32>,
        ip6: &mut Block<u128>,
    ) -> usize {
        const IP4: usize = ipv4::HEADER_LENGTH;
        const IP6: usize = ipv6::HEADER_LENGTH;
        ip4.len = 0;
        ip6.len = 0;
        if self.is_tagged() {
            self.take_run::<TAGGED, { TAGGED + IP4 }, { TAGGED + IP6 }>(slots, vector, ip4, ip6)
        } else {
            self.take_run::<HEADER, { HEADER + IP4 }, { HEADER + IP6 }>(slots, vector, ip4, ip6)
        }
    }

    /// The same where a header is so long, and with the header of an IPv4 or IPv6 packet behind it.
    #[inline(never)]
    fn take_run<const HEADER: usize, const IP4: usize, const IP6: usize>(
        self,
        slots: &[Slot],
        vector: &mut Vector,
        ip4: &mut Block<u32>,
        ip6: &mut Block<u128>,
    ) -> usize {
        let slots = slots.get(..BLOCK).unwrap_or(slots);
        for (taken, &slot) in slots.iter().enumerate() {
            let Some(buffer) = vector.buffers[usize::from(slot)].as_mut() else { continue };
            if buffer.port() != self.port {
                return taken;
            }
            if let Some((destination, length)) = self.plain4::<HEADER, IP4>(buffer) {
                unpad(buffer, HEADER + length);
                ip4.push(slot, destination);
            } else if let Some((destination, length)) = self.plain6::<HEADER, IP6>(buffer) {
                unpad(buffer, HEADER + length);
                ip6.push(slot, destination);
            } else {
                return taken;
            }
        }
        slots.len()
    }

    /// The destination address of a plain IPv4 packet, and its length.
    #[inline(always)]
    fn plain4<const HEADER: usize, const IP: usize>(self, buffer: &Buffer) -> Option<(u32, usize)> {
        let (ethernet, ip) = buffer.data().first_chunk::<IP>()?.split_first_chunk()?;
        let ip: &[u8; ipv4::HEADER_LENGTH] = ip.first_chunk()?;
        if !(self.ip4 & self.matches::<HEADER>(ethernet, EtherType::IPV4)) {
            return None;
        }
        let [_, _, l0, l1, ..] = *ip;
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        let length = packet_length(buffer, buffer.len() - HEADER, length, ipv4::HEADER_LENGTH);
        let header = ipv4::Header::of_plain(ip, length)?;
        let (source, destination) = (header.source(), header.destination());
        let [from, ..] = source.octets();
        let [to, ..] = destination.octets();
        let ordinary = ORDINARY4[usize::from(from)] & ORDINARY4[usize::from(to)];
        let plain = ordinary || neither_special(source, destination);
        plain.then(|| (destination.to_bits(), length))
    }

    /// The same of a plain IPv6 packet.
    #[inline(always)]
    fn plain6<const HEADER: usize, const IP: usize>(
        self,
        buffer: &Buffer,
    ) -> Option<(u128, usize)> {
        let (ethernet, ip) = buffer.data().first_chunk::<IP>()?.split_first_chunk()?;
        let ip: &[u8; ipv6::HEADER_LENGTH] = ip.first_chunk()?;
        if !(self.ip6 & self.matches::<HEADER>(ethernet, EtherType::IPV6)) {
            return None;
        }
        let [_, _, _, _, l0, l1, ..] = *ip;
        let length = ipv6::HEADER_LENGTH + usize::from(u16::from_be_bytes([l0, l1]));
        let length = packet_length(buffer, buffer.len() - HEADER, length, ipv6::HEADER_LENGTH);
        let header = ipv6::Header::of_plain(ip, length)?;
        let [source, ..] = header.source().octets();
        let [destination, ..] = header.destination().octets();
        let ordinary = ORDINARY6[usize::from(source)] & ORDINARY6[usize::from(destination)];
        ordinary.then(|| (header.destination().to_bits(), length))
    }

    #[inline(always)]
    fn matches<const HEADER: usize>(self, header: &[u8; HEADER], ether_type: EtherType) -> bool {
        let (Some(front), Some(last)) = (header.first_chunk(), header.last_chunk()) else {
            return false;
        };
        u64::from_le_bytes(*front) & FRONT == self.front
            && u16::from_be_bytes(*last) == ether_type.0
            && (HEADER < TAGGED || vlan_of(header) == self.vlan)
    }
}

/// The VLAN id of a frame with a tag.
#[inline(always)]
fn vlan_of(frame: &[u8]) -> Option<u16> {
    match frame.get(HEADER - 2..HEADER + 2) {
        Some(&[0x81, 0x00, v0, v1]) => Some(u16::from_be_bytes([v0, v1]) & 0xfff),
        _ => None,
    }
}

/// How long the packet is in a frame that carries `present` bytes: these, or less by the padding of a short one. `length` is what
/// the packet says, `least` the length of its header.
#[inline(always)]
fn packet_length(buffer: &Buffer, present: usize, length: usize, least: usize) -> usize {
    let padded = present <= LEAST && (least..present).contains(&length) && !buffer.is_chained();
    if padded { length } else { present }
}

/// Takes the padding off a frame that is no longer than this without it.
#[inline(always)]
fn unpad(buffer: &mut Buffer, length: usize) {
    let padding = buffer.len() - length;
    if padding > 0 {
        // A packet in one piece is longer than its padding.
        let _ = buffer.trim(padding);
    }
}
