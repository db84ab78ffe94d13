//! `bridge-input` and `bridge-output`: a learning bridge (IEEE 802.1D 7, 802.1Q 8).
//!
//! `bridge-input` takes frames of members (needs `interface`), learns their sources, and sends them
//! to the member behind which the destination was learned, to all members (flooding), or into the
//! bridge's IP interface. `bridge-output` does the same for frames that come out of the bridge's IP
//! interface (`interface` is that one).

use dpdk::{Buffer, BufferPool};
use graph::{Context, Handoff, InterfaceId, Node, Reason, Slot, Vector};
use wire::MacAddr;
use wire::ethernet::Header;

use super::bucket::TokenBucket;
use super::ethernet_input::{self, admit};
use super::interface_output::{pop_tag, push_tag};
use super::snapshot::Snapshot;
use crate::bridge::{Learn, LearnSender, MacKey, MacReader};
use crate::state::{Bridge, BridgeMember, Interfaces, Mode};

graph::edges! {
    /// Next nodes of a bridge.
    pub(crate) Next {
        Output => "interface-output",
        Ip4 => "ip4-input",
        Ip6 => "ip6-input",
        Group => "ip-group",
        Arp => "arp-input",
    }
}

/// The node.
pub(crate) struct Switch {
    name: &'static str,
    interfaces: Snapshot<Interfaces>,
    macs: MacReader,
    learn: Option<LearnSender>,
    pool: BufferPool,
    floods: Floods,
    tsc_hz: u64,
}

/// A frame with its tag taken off, and where it came from.
struct Frame {
    bridge: u16,
    /// Member that it came in by; `None`: the bridge's IP interface.
    member: Option<u16>,
    /// Tag control information it travels with; `None`: VLANs are not looked at, or it has none.
    tag: Option<u16>,
    destination: MacAddr,
    source: MacAddr,
}

impl Frame {
    fn vlan(&self) -> u16 {
        self.tag.map_or(0, |tag| tag & 0xfff)
    }

    fn key(&self, mac: MacAddr) -> MacKey {
        MacKey { bridge: self.bridge, vlan: self.vlan(), mac }
    }
}

impl Switch {
    /// `bridge-input`: learns into `learn`.
    #[must_use]
    pub(crate) fn input(
        interfaces: Snapshot<Interfaces>,
        macs: MacReader,
        learn: LearnSender,
        pool: BufferPool,
        tsc_hz: u64,
    ) -> Self {
        Self {
            name: "bridge-input",
            learn: Some(learn),
            ..Self::output(interfaces, macs, pool, tsc_hz)
        }
    }

    /// `bridge-output`.
    #[must_use]
    pub(crate) fn output(
        interfaces: Snapshot<Interfaces>,
        macs: MacReader,
        pool: BufferPool,
        tsc_hz: u64,
    ) -> Self {
        let (learn, tsc_hz) = (None, tsc_hz.max(1));
        Self {
            name: "bridge-output",
            interfaces,
            macs,
            learn,
            pool,
            floods: Floods::default(),
            tsc_hz,
        }
    }
}

/// How much each bridge may still flood, by its number.
#[derive(Default)]
struct Floods(Vec<Option<TokenBucket>>);

impl Floods {
    /// Whether one frame may be flooded.
    fn take(&mut self, frame: &Frame, rate: u32, tsc_hz: u64, now: u64) -> bool {
        if rate == 0 {
            return true;
        }
        let at = usize::from(frame.bridge);
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        let Some(place) = self.0.get_mut(at) else { return false };
        let bucket = place.get_or_insert_with(|| TokenBucket::new(rate, tsc_hz));
        bucket.set_rate(rate, tsc_hz);
        bucket.take(now)
    }
}

impl Node for Switch {
    type Next = Next;

    fn name(&self) -> &'static str {
        self.name
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let second = (cx.now / self.tsc_hz) as u32;
        let Self { interfaces, macs, learn, pool, floods, tsc_hz, .. } = self;
        let interfaces = interfaces.get();
        for &slot in slots {
            let at = usize::from(slot);
            let from = if learn.is_some() { cx.vector.interface[at] } else { cx.vector.egress[at] };
            let frame = match take(interfaces, from, cx.vector, slot) {
                Ok(frame) => frame,
                Err(reason) => {
                    cx.drop(slot, reason);
                    continue;
                }
            };
            let Some(bridge) = interfaces.bridges.get(usize::from(frame.bridge)) else {
                cx.drop(slot, Reason::NoPort);
                continue;
            };
            if let (Some(_), Some(learn)) = (frame.member, learn.as_mut()) {
                let key = frame.key(frame.source);
                if !macs.refresh(&key, from, second) {
                    // A full ring: the next frame tells it again.
                    let _full = learn.push(Learn { key, interface: from });
                }
            }
            let mut switch = Switching { interfaces, bridge, frame: &frame, cx, slot };
            let own = bridge.ip.and_then(|id| interfaces.get(id)).map(|ip| ip.mac);
            if frame.member.is_some() && own == Some(frame.destination) {
                switch.deliver();
            } else if let Some(to) = switch.known(macs) {
                switch.forward(to);
            } else if floods.take(&frame, bridge.flood_rate, *tsc_hz, switch.cx.now) {
                switch.flood(pool);
            } else {
                cx.drop(slot, Reason::BridgeFloodLimit);
            }
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        format!("switched from interface {}", vector.interface[usize::from(slot)])
    }
}

/// Finds out what a frame is, that came into the bridge by the interface `from`, and takes its tags off.
fn take(
    interfaces: &Interfaces,
    from: InterfaceId,
    vector: &mut Vector,
    slot: Slot,
) -> Result<Frame, Reason> {
    let ingress = interfaces.get(from).ok_or(Reason::NoPort)?;
    let buffer = vector.buffer_mut(slot).ok_or(Reason::Forgotten)?;
    let (bridge, member) = match ingress.mode {
        Mode::Member { bridge, member } => (bridge, Some(member)),
        Mode::BridgeIp(bridge) => (bridge, None),
        _ => return Err(Reason::NoPort),
    };
    if ingress.vlan.is_some() {
        let _tag_of_this_interface = pop_tag(buffer);
    }
    let known = interfaces.bridges.get(usize::from(bridge)).ok_or(Reason::NoPort)?;
    let tag = match (known.vlan_filtering, member) {
        (false, _) => None,
        (true, None) => Some(known.ip_vlan),
        (true, Some(member)) => {
            let member = known.members.get(usize::from(member)).ok_or(Reason::NoPort)?;
            // 802.1Q 6.9: a priority tag names no VLAN.
            let tagged = pop_tag(buffer).filter(|tag| tag & 0xfff != 0);
            let tag = tagged.or(member.untagged).ok_or(Reason::BridgeVlan)?;
            Some(tag).filter(|tag| admits(member, tag & 0xfff)).ok_or(Reason::BridgeVlan)?.into()
        }
    };
    let (header, _) = Header::parse(buffer.data()).map_err(|_| Reason::EthernetTruncated)?;
    if header.source.is_group() {
        return Err(Reason::EthernetSource);
    }
    if header.destination.is_bridge_reserved() {
        return Err(Reason::BridgeLinkLocal);
    }
    Ok(Frame { bridge, member, tag, destination: header.destination, source: header.source })
}

fn admits(member: &BridgeMember, vlan: u16) -> bool {
    member.vlans.is_empty() || member.vlans.contains(&vlan) || member.untagged == Some(vlan)
}

/// One frame on its way through a bridge.
struct Switching<'a, 'b> {
    interfaces: &'a Interfaces,
    bridge: &'a Bridge,
    frame: &'a Frame,
    cx: &'a mut Context<'b, Next>,
    slot: Slot,
}

impl Switching<'_, '_> {
    /// The member behind which the destination was learned.
    fn known(&self, macs: &MacReader) -> Option<u16> {
        let group = self.frame.destination.is_group();
        let find = || macs.find(&self.frame.key(self.frame.destination));
        // What is no member any more is found by flooding.
        (!group)
            .then(find)
            .flatten()
            .and_then(|id| self.interfaces.member_of(self.frame.bridge, id))
    }

    /// To the member, or to nobody when the frame came from there or the VLAN may not pass.
    fn forward(&mut self, to: u16) {
        if self.frame.member == Some(to) {
            return self.cx.drop(self.slot, Reason::BridgeSamePort);
        }
        let Some(member) = self.bridge.members.get(usize::from(to)) else {
            return self.cx.drop(self.slot, Reason::NoPort);
        };
        if self.bridge.vlan_filtering && !admits(member, self.frame.vlan()) {
            return self.cx.drop(self.slot, Reason::BridgeVlan);
        }
        let Some(buffer) = self.cx.vector.buffer_mut(self.slot) else { return };
        if !fits(self.interfaces, buffer, member) {
            return self.cx.drop(self.slot, Reason::MtuExceeded);
        }
        if !dress(buffer, self.frame.tag, member) {
            return self.cx.drop(self.slot, Reason::NoBuffer);
        }
        self.cx.vector.egress[usize::from(self.slot)] = member.interface;
        self.cx.send(self.slot, Next::Output);
    }

    /// Into the bridge's IP interface.
    fn deliver(&mut self) {
        let at = usize::from(self.slot);
        let found = self.bridge.ip.and_then(|id| Some((id, self.interfaces.get(id)?)));
        let header = self.cx.vector.buffer(self.slot).map(|buffer| Header::parse(buffer.data()));
        let (Some((id, ip)), Some(Ok((header, _)))) = (found, header) else {
            return self.cx.drop(self.slot, Reason::NoPort);
        };
        if self.bridge.vlan_filtering && self.frame.vlan() != self.bridge.ip_vlan {
            return self.cx.drop(self.slot, Reason::BridgeVlan);
        }
        let next = match admit(ip, self.frame.destination, header.ether_type()) {
            Ok(ethernet_input::Next::Ip4) => Next::Ip4,
            Ok(ethernet_input::Next::Ip6) => Next::Ip6,
            Ok(ethernet_input::Next::Group) => Next::Group,
            Ok(ethernet_input::Next::Arp) => Next::Arp,
            Ok(_) => return self.cx.drop(self.slot, Reason::EtherTypeUnknown),
            Err(reason) => return self.cx.drop(self.slot, reason),
        };
        self.cx.vector.interface[at] = id;
        self.cx.vector.network[at] = 14;
        self.cx.send(self.slot, next);
    }

    /// To all other members that take the VLAN, and a copy of a group frame to the IP interface.
    fn flood(&mut self, pool: &BufferPool) {
        let Some(buffer) = self.cx.take(self.slot) else { return };
        let takes = |member: &BridgeMember| {
            !self.bridge.vlan_filtering || admits(member, self.frame.vlan())
        };
        for (at, member) in self.bridge.members.iter().enumerate() {
            if self.frame.member == Some(at as u16) || !takes(member) {
                continue;
            }
            if !fits(self.interfaces, &buffer, member) {
                self.cx.exits.counters.drops[Reason::MtuExceeded as usize].add(1);
                continue;
            }
            let copied = buffer.copy(pool);
            match copied
                .and_then(|mut copy| dress(&mut copy, self.frame.tag, member).then_some(copy))
            {
                Some(copy) => self.originate(copy, member.interface),
                None => self.cx.exits.counters.drops[Reason::NoBuffer as usize].add(1),
            }
        }
        self.cx.vector.buffers[usize::from(self.slot)] = Some(buffer);
        if self.frame.member.is_some()
            && self.bridge.ip.is_some()
            && self.frame.destination.is_group()
        {
            self.deliver();
        } else {
            // All copies are on their way; the original is used up, which is not a drop.
            drop(self.cx.take(self.slot));
        }
    }

    fn originate(&mut self, buffer: Buffer, egress: InterfaceId) {
        let interface = self.cx.vector.interface[usize::from(self.slot)];
        let copy = Handoff { interface, egress, ..Handoff::of(buffer) };
        self.cx.originate(copy, Next::Output);
    }
}

/// Whether a member takes so long a frame: its MTU is that of the IP packet, and the frame has 14 bytes and maybe a tag more.
fn fits(interfaces: &Interfaces, frame: &Buffer, member: &BridgeMember) -> bool {
    let mtu = interfaces.get(member.interface).map_or(0, |egress| egress.mtu);
    frame.len() <= usize::from(mtu) + 18
}

/// Gives a frame the tag that a member wants to see. `false`: no headroom.
fn dress(buffer: &mut Buffer, tag: Option<u16>, member: &BridgeMember) -> bool {
    match tag {
        Some(tag) if member.untagged != Some(tag & 0xfff) => push_tag(buffer, tag),
        _ => true,
    }
}
