//! `ethernet-input`: where every received frame enters.
//!
//! Fills `interface` and `network`. A frame for a bridge or a cross-connect goes there whole; IP in
//! a frame to this interface's own address goes to `ip4-input` or `ip6-input`, in a group frame to
//! `ip-group`, because it is never forwarded (RFC 1812 5.3.4).

use graph::{CAPACITY, Context, Node, PortId, Reason, Slot, Vector};
use wire::ethernet::Header;
use wire::{EtherType, MacAddr, vlan};

use super::snapshot::Snapshot;
use crate::state::{Interface, Interfaces, Mode};

graph::edges! {
    /// Next nodes of `ethernet-input`.
    pub(crate) Next {
        Ip4 => "ip4-input",
        Ip6 => "ip6-input",
        Group => "ip-group",
        Arp => "arp-input",
        Bridge => "bridge-input",
        CrossConnect => "cross-connect",
    }
}

/// Length of an Ethernet header without tag: bytes.
const HEADER: u16 = 14;
/// Length of a VLAN tag: bytes.
const TAG: u16 = 4;
/// How many packets ahead of the one in work are brought into the cache.
const AHEAD: usize = 4;

/// The node.
pub(crate) struct EthernetInput {
    interfaces: Snapshot<Interfaces>,
}

/// What all untagged unicast frames of a port have in common: the fast path compares with it.
#[derive(Clone, Copy)]
struct Ingress {
    port: PortId,
    interface: u16,
    mac: MacAddr,
    ip4: bool,
}

impl EthernetInput {
    /// The node, reading these interfaces.
    #[must_use]
    pub(crate) fn new(interfaces: Snapshot<Interfaces>) -> Self {
        Self { interfaces }
    }
}

impl Node for EthernetInput {
    type Next = Next;

    fn name(&self) -> &'static str {
        "ethernet-input"
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let interfaces = self.interfaces.get();
        let mut ip4 = [0; CAPACITY];
        let mut ip4_len = 0;
        let mut ingress: Option<Ingress> = None;
        for (at, &slot) in slots.iter().enumerate() {
            if let Some(&ahead) = slots.get(at + AHEAD) {
                cx.vector.prefetch(ahead);
            }
            let Some(buffer) = cx.vector.buffer(slot) else { continue };
            let port = buffer.port();
            let known = match ingress {
                Some(known) if known.port == port => Some(known),
                _ => Ingress::of(interfaces, port),
            };
            ingress = known;
            let header = Header::parse(buffer.data());
            if let (Some(known), Ok((header, _))) = (known, header) {
                if known.ip4
                    && header.ether_type() == EtherType::IPV4
                    && header.destination == known.mac
                {
                    cx.vector.interface[usize::from(slot)] = known.interface;
                    cx.vector.network[usize::from(slot)] = HEADER;
                    ip4[ip4_len % CAPACITY] = slot;
                    ip4_len += 1;
                    continue;
                }
            }
            match classify(interfaces, port, buffer.data()) {
                Ok(frame) => {
                    cx.vector.interface[usize::from(slot)] = frame.interface;
                    cx.vector.network[usize::from(slot)] = frame.network;
                    cx.send(slot, frame.next);
                }
                Err(reason) => cx.drop(slot, reason),
            }
        }
        cx.send_all(&ip4[..ip4_len], Next::Ip4);
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        let Some(buffer) = vector.buffer(slot) else { return String::new() };
        match Header::parse(buffer.data()) {
            Ok((header, _)) => format!(
                "{} bytes from {} to {}, EtherType {}",
                buffer.len(),
                header.source,
                header.destination,
                header.ether_type()
            ),
            Err(_) => format!("{} bytes, no Ethernet header", buffer.len()),
        }
    }
}

impl Ingress {
    fn of(interfaces: &Interfaces, port: PortId) -> Option<Self> {
        let id = interfaces.of_frame(port, None)?;
        let interface = interfaces.get(id)?;
        let ip4 = interface.mode == Mode::Routed && interface.takes_ip4();
        Some(Self { port, interface: id, mac: interface.mac, ip4 })
    }
}

struct Frame {
    interface: u16,
    network: u16,
    next: Next,
}

/// Everything that the fast path does not take.
fn classify(interfaces: &Interfaces, port: PortId, frame: &[u8]) -> Result<Frame, Reason> {
    let (header, rest) = Header::parse(frame).map_err(|_| Reason::EthernetTruncated)?;
    if header.source.is_group() {
        return Err(Reason::EthernetSource);
    }
    let untagged = interfaces.of_frame(port, None).ok_or(Reason::NoPort)?;
    let mut ether_type = header.ether_type();
    let (mut id, mut network) = (untagged, HEADER);
    let mut interface = interfaces.get(id).ok_or(Reason::NoPort)?;
    if ether_type == EtherType::VLAN {
        let (tag, _) = vlan::Tag::parse(rest).map_err(|_| Reason::EthernetTruncated)?;
        // 802.1Q 6.9: VLAN id 0 is a priority tag, the frame belongs to no VLAN.
        let sub = (tag.id() != 0).then(|| interfaces.of_frame(port, Some(tag.id())));
        match sub {
            Some(Some(sub)) => {
                id = sub;
                interface = interfaces.get(id).ok_or(Reason::NoPort)?;
            }
            // A whole port that is switched takes its tagged frames along.
            Some(None) if interface.mode == Mode::Routed => return Err(Reason::VlanUnknown),
            Some(None) | None => {}
        }
        ether_type = tag.ether_type();
        network += TAG;
    }
    let next = dispose(interface, header.destination, ether_type)?;
    Ok(Frame { interface: id, network, next })
}

/// The next node for a frame that an interface has taken.
pub(super) fn dispose(
    interface: &Interface,
    destination: MacAddr,
    ether_type: EtherType,
) -> Result<Next, Reason> {
    match interface.mode {
        Mode::CrossConnect(_) => return Ok(Next::CrossConnect),
        Mode::Member { .. } => return Ok(Next::Bridge),
        Mode::Routed | Mode::BridgeIp(_) => {}
    }
    let group = destination.is_group();
    if !group && destination != interface.mac && !interface.any_mac {
        return Err(Reason::EthernetNotMine);
    }
    match ether_type {
        EtherType::IPV4 if !interface.takes_ip4() => Err(Reason::Ip4NotEnabled),
        EtherType::IPV6 if !interface.takes_ip6() => Err(Reason::Ip6NotEnabled),
        EtherType::IPV4 | EtherType::IPV6 if group => Ok(Next::Group),
        EtherType::IPV4 => Ok(Next::Ip4),
        EtherType::IPV6 => Ok(Next::Ip6),
        EtherType::ARP => Ok(Next::Arp),
        _ => Err(Reason::EtherTypeUnknown),
    }
}
