//! Neighbours and routes together, by packets and time alone.

mod bounds;
mod discovery;
mod hearing;
mod life;
mod routes;

use std::net::IpAddr;
use std::sync::Arc;

use graph::{InterfaceId, PortId, Reason};
use tables::Epoch;
use wire::MacAddr;

use super::{Action, Bounds, Packet, SlowPath, State as Known, Timing};
use crate::Cause;
use crate::rib::{Change, Limits, Miss, NextHopMacs, Prefix, Rib, Route, Target, Via};
use crate::state::{
    DEFAULT_VRF, Features, Interface, Interfaces, Kind, Mode, NextHop, Settings, State,
};

const SECOND: u64 = 1_000_000_000;
const OWN: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 1]);
const PEER: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 2]);
const OTHER: MacAddr = MacAddr::new([2, 0, 0, 0, 0, 3]);

const TIMING: Timing = Timing {
    reachable_time: 30 * SECOND,
    retrans_timer: SECOND,
    max_probes: 3,
    delay_first_probe: 5 * SECOND,
    stale_time: 600 * SECOND,
    negative_time: 3 * SECOND,
};

const BOUNDS: Bounds = Bounds { neighbors: 100, unresolved: 20, queue: 4, waiting: 30 };

#[derive(Debug, Clone, PartialEq, Eq)]
struct Sent {
    bytes: Vec<u8>,
    interface: InterfaceId,
    next_hop: u32,
}

impl Packet for Sent {
    fn network(&self) -> &[u8] {
        &self.bytes
    }

    fn interface(&self) -> InterfaceId {
        self.interface
    }

    fn next_hop(&self) -> u32 {
        self.next_hop
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn interface(number: u16, net: u8) -> Interface {
    Interface {
        name: format!("port{number}"),
        generation: 0,
        port: Some(PortId::new(number)),
        up: true,
        vlan: None,
        mac: OWN,
        mtu: 1500,
        addresses4: vec![([10, net, 0, 1].into(), 16)],
        addresses6: vec![
            (format!("2001:db8:{net}::1").parse().unwrap(), 64),
            ("fe80::1".parse().unwrap(), 64),
        ],
        any_mac: false,
        unnumbered: false,
        mode: Mode::Routed,
        vrf: DEFAULT_VRF,
        features: Features::default(),
    }
}

/// A router with port 0 on 10.0.0.1/16 and 2001:db8:0::1/64, port 1 on 10.1.0.1/16 and so on.
struct Bench {
    path: SlowPath<Sent>,
    state: State,
    now: u64,
    actions: Vec<Action<Sent>>,
}

impl Bench {
    fn new() -> Self {
        Self::with(BOUNDS)
    }

    fn with(bounds: Bounds) -> Self {
        Self::within(bounds, Limits { routes4: 100, routes6: 100, next_hops: 400, groups: 10 })
    }

    fn within(bounds: Bounds, limits: Limits) -> Self {
        let settings = Settings {
            martians: true,
            directed_broadcast: false,
            icmp_rate: 100,
            hash_seed: 0,
            flows4: false,
            flows6: false,
            tsc_hz: SECOND,
        };
        let (rib, state) = Rib::new(limits, Miss::Drop, settings, &Epoch::new()).unwrap();
        let path = SlowPath::new(rib, state.clone(), TIMING, bounds, 7);
        let mut bench = Self { path, state, now: SECOND, actions: Vec::new() };
        bench.interfaces(&[true, true]);
        bench.take();
        bench
    }

    fn interfaces(&mut self, present: &[bool]) {
        let list =
            present.iter().zip(0..).map(|(there, id)| there.then(|| interface(id, id as u8)));
        let all = Interfaces { list: list.collect(), ..Interfaces::default() };
        let none = NextHopMacs::new();
        self.path.set_interfaces(Arc::new(all), &none, self.now, &mut self.actions);
    }

    fn take(&mut self) -> Vec<Action<Sent>> {
        std::mem::take(&mut self.actions)
    }

    /// What the workers do with a packet to an address.
    fn look_up(&self, to: &str) -> (u32, NextHop) {
        let value = match ip(to) {
            IpAddr::V4(to) => self.state.routes4.lookup(to.to_bits()),
            IpAddr::V6(to) => self.state.routes6.lookup(to.to_bits()),
        };
        let index = self.state.next_hops.choose(value, 0);
        (index, self.state.next_hops.get(index))
    }

    fn kind(&self, to: &str) -> Kind {
        self.look_up(to).1.kind
    }

    /// A packet on its way through: what the look-up hands up comes in here.
    fn forward(&mut self, to: &str) -> Sent {
        let (next_hop, hop) = self.look_up(to);
        let sent = Sent { bytes: packet(ip(to)), interface: InterfaceId::new(1), next_hop };
        let cause = match hop.kind {
            Kind::Glean => Some(Cause::Glean),
            Kind::Unresolved => Some(Cause::Unresolved),
            Kind::ForwardStale => {
                self.state.next_hops.mark_used(next_hop);
                None
            }
            _ => None,
        };
        if let Some(cause) = cause {
            self.path.input(cause, sent.clone(), self.now, &mut self.actions);
        }
        sent
    }

    /// A frame that came in by port 0, its Ethernet header taken off.
    fn receive(&mut self, cause: Cause, frame: &[u8]) {
        let sent =
            Sent { bytes: frame[14..].to_vec(), interface: InterfaceId::new(0), next_hop: 0 };
        self.path.input(cause, sent, self.now, &mut self.actions);
    }

    fn wait(&mut self, seconds: u64) -> Vec<Action<Sent>> {
        let end = self.now + seconds * SECOND;
        loop {
            let next = self.path.poll(self.now, &mut self.actions);
            match next.filter(|next| *next <= end) {
                Some(next) => self.now = next.max(self.now + 1),
                None => break,
            }
        }
        self.now = end;
        self.take()
    }

    fn state_of(&self, address: &str) -> Option<Known> {
        let address = ip(address);
        let all = self.path.neighbors(self.now);
        all.into_iter().find(|known| known.address == address).map(|known| known.state)
    }

    fn apply(&mut self, text: &str, hops: &[&str]) {
        let (address, length) = text.split_once('/').unwrap();
        let prefix = Prefix::new(ip(address), length.parse().unwrap()).unwrap();
        let via = |hop: &&str| Via { address: ip(hop), interface: None, weight: 1 };
        let target = Target::Via(hops.iter().map(via).collect());
        self.path.apply(&[Change::Add(Route::of_static(DEFAULT_VRF, prefix, target))]).unwrap();
    }
}

fn packet(to: IpAddr) -> Vec<u8> {
    match to {
        IpAddr::V4(to) => {
            let mut bytes = vec![0; 20];
            bytes[0] = 0x45;
            bytes[16..].copy_from_slice(&to.octets());
            bytes
        }
        IpAddr::V6(to) => {
            let mut bytes = vec![0; 40];
            bytes[0] = 0x60;
            bytes[24..].copy_from_slice(&to.octets());
            bytes
        }
    }
}

/// The frames among the actions, with their interfaces.
fn frames(actions: &[Action<Sent>]) -> Vec<(InterfaceId, &[u8])> {
    let sent = actions.iter().filter_map(|action| match action {
        Action::Send { interface, frame } => Some((*interface, frame.as_slice())),
        _ => None,
    });
    sent.collect()
}

fn drops(actions: &[Action<Sent>]) -> Vec<Reason> {
    let dropped = actions.iter().filter_map(|action| match action {
        Action::Drop { reason, .. } => Some(*reason),
        _ => None,
    });
    dropped.collect()
}

fn released(actions: &[Action<Sent>]) -> Vec<&Sent> {
    let released = actions.iter().filter_map(|action| match action {
        Action::Release { packet, .. } => Some(packet),
        _ => None,
    });
    released.collect()
}

/// An ARP frame by hand, in the order of RFC 826.
fn arp(operation: u8, sender: (MacAddr, [u8; 4]), target: (MacAddr, [u8; 4])) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, operation]);
    for (mac, address) in [sender, target] {
        frame.extend(mac.octets());
        frame.extend(address);
    }
    frame
}

/// The peer's answer.
fn reply(last: u8) -> Vec<u8> {
    arp(2, (PEER, [10, 0, 0, last]), (OWN, [10, 0, 0, 1]))
}
