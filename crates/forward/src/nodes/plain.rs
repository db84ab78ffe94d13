//! Plain frames: the common case, checked by `ethernet-input` in one pass over a frame's first bytes.
//!
//! A plain frame comes to the own address of a routed port or VLAN sub-interface and carries an IP packet without
//! options, at the frame's full length but for the padding of a short one, between addresses that are not special. Such a
//! packet passes every check of `ip4-input` or `ip6-input`, so it goes past them. A run of frames is checked
//! against what its first one came by, a block of them at a time.

use std::net::Ipv4Addr;

use dpdk::Buffer;
use graph::{InterfaceId, PortId, Slot, Vector};
use tables::LpmRoot;
use wire::{checksum, ipv4, ipv6, special, vlan};

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
/// The first bits of a frame that are compared are the destination address, and the one that says that the source is no group
/// address: of its first 8 bytes, little-endian, those that are left when they are shifted so far.
const FRONT: u32 = 15;
/// The bits of a tag, as a little-endian number with its EtherType, that are compared: all but priority and drop eligibility.
const TAG: u32 = 0xff0f_ffff;
/// EtherType and first octet of a packet as a little-endian number of 4 bytes, and how much of it is compared: IPv4 in a header
/// without options, shifted so far; IPv6, these bits.
const KIND4: u32 = 8;
const PLAIN4: u32 = 0x0045_0008 << KIND4;
const KIND6: u32 = 0x00f0_ffff;
const PLAIN6: u32 = 0x0060_dd86;
/// Equal to none of it.
const NEVER: u32 = u32::MAX;

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

/// Whether no IPv4 address with the first octet of this one, which is as it lies in a header, is special.
#[inline(always)]
pub(super) fn is_ordinary4(address: u32) -> bool {
    ORDINARY4[usize::from(address as u8)]
}

#[cold]
#[inline(never)]
fn neither_special(addresses: [u32; 2]) -> bool {
    let what = |address: u32| special::classify_v4(Ipv4Addr::from(address.to_le_bytes()));
    addresses.into_iter().all(|address| what(address).is_none())
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

    /// Takes the first packets of a row, whose slots these are, as many as there is room for, up to one that `key` gives nothing for;
    /// returns how many.
    #[inline(always)]
    fn extend(
        &mut self,
        slots: &[Slot],
        row: &mut [Option<Buffer>],
        key: impl Fn(&mut Buffer) -> Option<K>,
    ) -> usize {
        let (places, keys) = (self.slots.get_mut(self.len..), self.keys.get_mut(self.len..));
        let mut taken = 0;
        for (place, its) in row.iter_mut().zip(keys.unwrap_or_default()) {
            let Some(key) = place.as_mut().and_then(&key) else { break };
            *its = key;
            taken += 1;
        }
        // Behind the loop, where it is a copy of many at once.
        for (to, &slot) in places.unwrap_or_default().iter_mut().zip(slots).take(taken) {
            *to = slot;
        }
        self.len += taken;
        taken
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
    interface: InterfaceId,
    /// The first 8 bytes of a frame, by [`FRONT`].
    front: u64,
    /// The tag, under [`TAG`].
    tag: u32,
    /// What lies at the end of the Ethernet header and behind it, by [`KIND4`] and [`KIND6`]; [`NEVER`] where the interface
    /// does not take the family.
    kind4: u32,
    kind6: u32,
    features: bool,
}

impl Ingress {
    /// Of the frames that come as this one does. Where they are not routed, none is plain.
    pub(super) fn of(interfaces: &Interfaces, port: PortId, frame: &[u8]) -> Self {
        let vlan = vlan_of(frame);
        let none = Self { port, vlan, kind4: NEVER, kind6: NEVER, ..Self::default() };
        let Some(id) = interfaces.of_frame(port, vlan) else { return none };
        let Some(interface) = interfaces.get(id).filter(|known| known.mode == Mode::Routed) else {
            return none;
        };
        let [a, b, c, d, e, f] = interface.mac.octets();
        let [v0, v1] = vlan.unwrap_or_default().to_be_bytes();
        Self {
            port,
            vlan,
            interface: id,
            front: u64::from_le_bytes([a, b, c, d, e, f, 0, 0]) << FRONT,
            tag: u32::from_le_bytes([0x81, 0x00, v0, v1]),
            kind4: if interface.takes_ip4() { PLAIN4 } else { NEVER },
            kind6: if interface.takes_ip6() { PLAIN6 } else { NEVER },
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
    pub(super) fn interface(self) -> InterfaceId {
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

    /// Takes the first slots, at most a block of them, up to one that is not plain, and returns how many it took. Of slots that are
    /// no row, it is one. `root4`: where IPv4 look-ups begin.
    #[inline]
    pub(super) fn take(
        self,
        slots: &[Slot],
        vector: &mut Vector,
        (ip4, root4): (&mut Block<u32>, LpmRoot<'_>),
        ip6: &mut Block<u128>,
    ) -> usize {
        const IP4: usize = ipv4::HEADER_LENGTH;
        const IP6: usize = ipv6::HEADER_LENGTH;
        let slots = slots.get(..BLOCK).unwrap_or(slots);
        let slots = if is_row(slots) { slots } else { slots.get(..1).unwrap_or_default() };
        (ip4.len, ip6.len) = (0, 0);
        let start = slots.first().map_or(0, |slot| usize::from(*slot));
        let Some(row) = vector.buffers.get_mut(start..start + slots.len()) else { return 0 };
        if self.is_tagged() {
            self.take_block::<TAGGED, { TAGGED + IP4 }, { TAGGED + IP6 }>(
                slots, row, ip4, root4, ip6,
            )
        } else {
            self.take_block::<HEADER, { HEADER + IP4 }, { HEADER + IP6 }>(
                slots, row, ip4, root4, ip6,
            )
        }
    }

    /// The same where a header is so long, and with the header of an IPv4 or IPv6 packet behind it.
    fn take_block<const HEADER: usize, const IP4: usize, const IP6: usize>(
        self,
        slots: &[Slot],
        row: &mut [Option<Buffer>],
        ip4: &mut Block<u32>,
        root4: LpmRoot<'_>,
        ip6: &mut Block<u128>,
    ) -> usize {
        let mut done = 0;
        while done < slots.len() {
            let (rest, row) = (&slots[done..], row.get_mut(done..).unwrap_or_default());
            let mut run = self.take4::<HEADER, IP4, false>(rest, row, ip4, root4);
            if run == 0 {
                run = self.take6::<HEADER, IP6>(rest, row, ip6);
            }
            if run == 0 {
                run = self.take4::<HEADER, IP4, true>(rest, row, ip4, root4);
            }
            if run == 0 {
                break;
            }
            done += run;
        }
        done
    }

    /// Takes the first packets that are plain ones of IPv4, and returns how many. The loop calls nothing, so that what it compares
    /// stays in registers, unless packets between special addresses (`SPECIAL`) may be among them.
    #[inline(never)]
    fn take4<const HEADER: usize, const IP: usize, const SPECIAL: bool>(
        self,
        slots: &[Slot],
        row: &mut [Option<Buffer>],
        block: &mut Block<u32>,
        root: LpmRoot<'_>,
    ) -> usize {
        let admits = |source: u32, destination: u32| {
            let ordinary = is_ordinary4(source) & is_ordinary4(destination);
            ordinary || SPECIAL && neither_special([source, destination])
        };
        block.extend(slots, row, |buffer| {
            let key = self.plain4::<HEADER, IP>(buffer, admits)?.swap_bytes();
            // It comes while the next packets are checked. IPv6 look-ups begin at few entries, which are at hand.
            root.ask(key);
            Some(key)
        })
    }

    /// The same of IPv6.
    #[inline(never)]
    fn take6<const HEADER: usize, const IP: usize>(
        self,
        slots: &[Slot],
        row: &mut [Option<Buffer>],
        block: &mut Block<u128>,
    ) -> usize {
        block.extend(slots, row, |buffer| self.plain6::<HEADER, IP>(buffer))
    }

    /// The ordinary destination address that IPv4 packets of a row without tags seem to have in common, as [`Self::plain4`] gives it: it
    /// is that of a few of them, which are not checked.
    pub(super) fn common_destination(self, row: &[Option<Buffer>]) -> Option<u32> {
        let destination = |place: Option<&Option<Buffer>>| {
            let frame = place?.as_ref()?.data();
            let is_ip4 = word(frame, HEADER - 2) << KIND4 == self.kind4;
            is_ip4.then(|| word(frame, HEADER + 16))
        };
        let first = destination(row.first()).filter(|first| is_ordinary4(*first))?;
        let others = [1, row.len() / 2, row.len().saturating_sub(1)];
        let alike = others.into_iter().all(|at| destination(row.get(at)) == Some(first));
        alike.then_some(first)
    }

    /// The destination address of a plain IPv4 packet as it lies in the header, little-endian; padding is taken off. `admits`: whether it
    /// may be plain by such addresses, the source and the destination.
    #[inline(always)]
    pub(super) fn plain4<const HEADER: usize, const IP: usize>(
        self,
        buffer: &mut Buffer,
        admits: impl Fn(u32, u32) -> bool,
    ) -> Option<u32> {
        let data = buffer.data();
        let frame = data.first_chunk::<IP>()?;
        let ip = frame.last_chunk::<{ ipv4::HEADER_LENGTH }>()?;
        if PortId::of(buffer) != self.port
            || !self.matches::<HEADER, IP>(frame)
            || word(frame, HEADER - 2) << KIND4 != self.kind4
            || !checksum::ipv4_header_is_valid(ip)
        {
            return None;
        }
        let (source, destination) = (word(ip, 12), word(ip, 16));
        if !admits(source, destination) {
            return None;
        }
        // Most frames are one piece and end with their packet: the length as it lies in the header is compared with what it is then.
        // Last, so that nothing of it has to be kept in a register.
        let total = (word(ip, 0) >> 16) as u16;
        let filled = ((data.len() - HEADER) as u16).swap_bytes();
        if total == filled && !buffer.is_chained() {
            return Some(destination);
        }
        let length = HEADER + usize::from(total.swap_bytes());
        is_cut(buffer, HEADER, IP, length).then_some(destination)
    }

    /// The same of a plain IPv6 packet.
    #[inline(always)]
    fn plain6<const HEADER: usize, const IP: usize>(self, buffer: &mut Buffer) -> Option<u128> {
        let frame = buffer.data().first_chunk::<IP>()?;
        let ip = frame.last_chunk::<{ ipv6::HEADER_LENGTH }>()?;
        let length = IP + usize::from((word(ip, 4) as u16).swap_bytes());
        if PortId::of(buffer) != self.port
            || !self.matches::<HEADER, IP>(frame)
            || word(frame, HEADER - 2) & KIND6 != self.kind6
        {
            return None;
        }
        let (source, destination) = (word(ip, 8), word(ip, 24));
        let ordinary =
            ORDINARY6[usize::from(source as u8)] & ORDINARY6[usize::from(destination as u8)];
        let destination = u128::from_be_bytes(*ip.last_chunk()?);
        (ordinary && is_cut(buffer, HEADER, IP, length)).then_some(destination)
    }

    /// Whether a frame has come by this, as far as its addresses and its tag say.
    #[inline(always)]
    fn matches<const HEADER: usize, const IP: usize>(self, frame: &[u8; IP]) -> bool {
        let front = frame.first_chunk().map_or(0, |front| u64::from_le_bytes(*front));
        front << FRONT == self.front && (HEADER < TAGGED || word(frame, 12) & TAG == self.tag)
    }
}

/// Whether slots, which are in order, lie one behind the other.
#[inline]
pub(super) fn is_row(slots: &[Slot]) -> bool {
    let [first, .., last] = slots else { return !slots.is_empty() };
    usize::from(last.wrapping_sub(*first)) + 1 == slots.len()
}

/// The 4 bytes of a frame from `at` on, little-endian.
#[inline(always)]
fn word(frame: &[u8], at: usize) -> u32 {
    frame.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// The VLAN id of a frame with a tag.
#[inline(always)]
fn vlan_of(frame: &[u8]) -> Option<u16> {
    match frame.get(HEADER - 2..HEADER + 2) {
        Some(&[0x81, 0x00, v0, v1]) => Some(u16::from_be_bytes([v0, v1]) & 0xfff),
        _ => None,
    }
}

/// Whether a frame ends behind `length` bytes, headers of `least` bytes among them: now, if it was padded, which a short one of one
/// piece may be.
#[inline(always)]
fn is_cut(buffer: &mut Buffer, header: usize, least: usize, length: usize) -> bool {
    let present = buffer.len();
    if present == length {
        return true;
    }
    let padded = present <= header + LEAST && (least..present).contains(&length);
    padded && !buffer.is_chained() && buffer.trim(present - length)
}
