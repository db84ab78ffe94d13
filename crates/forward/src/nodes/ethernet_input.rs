//! `ethernet-input`: where every received frame enters.
//!
//! Fills `interface` and `network`. A frame for a bridge or a cross-connect goes there whole; IP in
//! a frame to this interface's own address goes to `ip4-input` or `ip6-input`, in a group frame to
//! `ip-group`, because it is never forwarded (RFC 1812 5.3.4). Plain frames (see `plain`) are checked
//! whole here. Most leave from here too (see `short_path`); the others go straight to the look-up, with the destination address
//! noted for it, or to the features of their interface.

use graph::{Context, InterfaceId, Node, PortId, Reason, Slot, Vector};
use wire::ethernet::Header;
use wire::{EtherType, MacAddr, vlan};

use super::family::{V4, V6};
use super::plain::{HEADER, Ingress};
use super::short_path::{Edges, ShortPath};
use super::snapshot::Snapshot;
use crate::state::{Interface, Interfaces, Mode, State};

graph::edges! {
    /// Next nodes of `ethernet-input`.
    pub(crate) Next {
        Ip4 => "ip4-input",
        Ip6 => "ip6-input",
        Lookup4 => "ip4-lookup",
        Lookup6 => "ip6-lookup",
        Rewrite4 => "ip4-rewrite",
        Rewrite6 => "ip6-rewrite",
        Flow4 => "flow4-lookup",
        Flow6 => "flow6-lookup",
        Group => "ip-group",
        Arp => "arp-input",
        Bridge => "bridge-input",
        CrossConnect => "cross-connect",
        Features => "input-features",
    }
}

/// Length of a VLAN tag: bytes.
const TAG: u16 = 4;

/// The node.
pub(crate) struct EthernetInput {
    interfaces: Snapshot<Interfaces>,
    ip4: ShortPath<V4, Next>,
    ip6: ShortPath<V6, Next>,
}

impl EthernetInput {
    /// The node, reading these interfaces, routes and next hops; `flows4`, `flows6`: an exact match is looked for before the
    /// routes.
    #[must_use]
    pub(crate) fn new(
        interfaces: Snapshot<Interfaces>,
        state: &State,
        flows4: bool,
        flows6: bool,
    ) -> Self {
        let look_up4 = if flows4 { Next::Flow4 } else { Next::Lookup4 };
        let look_up6 = if flows6 { Next::Flow6 } else { Next::Lookup6 };
        let edges = |look_up, rewrite| Edges { look_up, rewrite, features: Next::Features };
        let (edges4, edges6) = (edges(look_up4, Next::Rewrite4), edges(look_up6, Next::Rewrite6));
        Self {
            interfaces,
            ip4: ShortPath::new(state.clone(), edges4, flows4),
            ip6: ShortPath::new(state.clone(), edges6, flows6),
        }
    }
}

impl Node for EthernetInput {
    type Next = Next;

    fn name(&self) -> &'static str {
        "ethernet-input"
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let Self { interfaces, ip4, ip6 } = self;
        let interfaces = interfaces.get();
        let mut ingress: Option<Ingress> = None;
        let mut rest = slots;
        while let [slot, after @ ..] = rest {
            let Some(buffer) = cx.vector.buffer(*slot) else {
                rest = after;
                continue;
            };
            let (port, frame) = (PortId::of(buffer), buffer.data());
            let same = ingress.filter(|known| known.is_of(port, frame));
            let known = same.unwrap_or_else(|| Ingress::of(interfaces, port, frame));
            ingress = Some(known);
            let sent = ip4.send_run(known, rest, cx);
            if sent > 0 {
                rest = rest.get(sent..).unwrap_or(&[]);
                continue;
            }
            let taken = known.take(rest, cx.vector, ip4.gather(), &mut ip6.block);
            ip4.send(known, cx);
            ip6.send(known, cx);
            rest = rest.get(taken..).unwrap_or(&[]);
            if taken == 0 {
                one(interfaces, *slot, port, cx);
                rest = after;
            }
        }
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

/// Sends on one frame that is not plain.
fn one(interfaces: &Interfaces, slot: Slot, port: PortId, cx: &mut Context<'_, Next>) {
    let Some(buffer) = cx.vector.buffer(slot) else { return };
    match classify(interfaces, port, buffer.data()) {
        Ok(frame) => {
            cx.vector.interface[usize::from(slot)] = frame.interface;
            cx.vector.network[usize::from(slot)] = frame.network;
            cx.send(slot, frame.next);
        }
        Err(reason) => cx.drop(slot, reason),
    }
}

struct Frame {
    interface: InterfaceId,
    network: u16,
    next: Next,
}

/// What a frame is for, whatever it is.
fn classify(interfaces: &Interfaces, port: PortId, frame: &[u8]) -> Result<Frame, Reason> {
    let (header, rest) = Header::parse(frame).map_err(|_| Reason::EthernetTruncated)?;
    if header.source.is_group() {
        return Err(Reason::EthernetSource);
    }
    let untagged = interfaces.of_frame(port, None).ok_or(Reason::NoPort)?;
    let mut ether_type = header.ether_type();
    let (mut id, mut network) = (untagged, HEADER as u16);
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
    let next = admit(interface, header.destination, ether_type)?;
    Ok(Frame { interface: id, network, next })
}

/// The next node for a frame that an interface has taken.
pub(super) fn admit(
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
