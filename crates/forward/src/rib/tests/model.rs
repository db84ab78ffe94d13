//! Random changes of routes, interfaces and neighbours; after each, what the workers see equals
//! what a plain list of everything says.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::rib::{Change, NextHopMacs, Prefix, Route, Status, Target, Via};

/// One change.
#[derive(Debug, Clone)]
enum Step {
    Add(usize, Aim),
    Remove(usize),
    Interfaces([Option<(u8, u8)>; 3]),
    Neighbor(u16, usize, Option<u8>),
    Grace,
}

/// A target by numbers.
#[derive(Debug, Clone)]
enum Aim {
    Via(Vec<(usize, Option<u16>, u8)>),
    Port(u16),
    Blackhole,
    Unreachable,
    Local,
}

/// Addresses, as IPv4 or at the top of IPv6 ones.
const ADDRESSES: [[u8; 4]; 10] = [
    [10, 0, 0, 1],
    [10, 0, 0, 2],
    [10, 0, 0, 130],
    [10, 0, 1, 1],
    [10, 0, 1, 2],
    [10, 0, 1, 200],
    [10, 0, 2, 2],
    [10, 9, 0, 1],
    [20, 0, 0, 1],
    [20, 0, 1, 1],
];

const PREFIXES: [([u8; 4], u8); 10] = [
    ([0, 0, 0, 0], 0),
    ([10, 0, 0, 0], 8),
    ([10, 0, 0, 0], 24),
    ([10, 0, 0, 128], 25),
    ([10, 0, 0, 2], 32),
    ([10, 0, 1, 0], 24),
    ([10, 0, 1, 200], 32),
    ([20, 0, 0, 0], 8),
    ([20, 0, 0, 0], 24),
    ([10, 0, 0, 0], 16),
];

const NETWORKS: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 129]];

fn address(v6: bool, bytes: [u8; 4]) -> IpAddr {
    let bits = u32::from_be_bytes(bytes);
    if v6 {
        Ipv6Addr::from_bits(u128::from(bits) << 96).into()
    } else {
        Ipv4Addr::from(bytes).into()
    }
}

fn prefix(v6: bool, (bytes, length): ([u8; 4], u8)) -> Prefix {
    let length = if v6 && length == 32 { 128 } else { length };
    Prefix::new(address(v6, bytes), length).unwrap()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Port {
    own: IpAddr,
    length: u8,
    mac: MacAddr,
    fixed: Option<MacAddr>,
}

/// Everything, as plain lists.
struct Model {
    v6: bool,
    ports: BTreeMap<u16, Port>,
    routes: BTreeMap<Prefix, Target>,
    neighbors: BTreeMap<(u16, IpAddr), Status>,
}

fn answer(kind: Kind) -> Vec<NextHop> {
    vec![NextHop::of_kind(kind)]
}

impl Model {
    fn hop(&self, on: u16, kind: Kind, destination: MacAddr) -> NextHop {
        let source = self.ports[&on].mac;
        NextHop { kind, port: on, interface: on, mtu: 1500, vlan: None, destination, source }
    }

    fn network(&self, port: &Port) -> Prefix {
        Prefix::containing(port.own, port.length).unwrap()
    }

    fn interface_of(&self, address: IpAddr) -> Option<u16> {
        let mut best: Option<(u8, u16)> = None;
        for (id, port) in &self.ports {
            if self.network(port).contains(address) && best.is_none_or(|(len, _)| port.length > len)
            {
                best = Some((port.length, *id));
            }
        }
        best.map(|(_, id)| id)
    }

    fn is_own(&self, address: IpAddr) -> bool {
        self.ports.values().any(|port| port.own == address)
    }

    fn neighbor(&self, on: u16, address: IpAddr) -> (u8, NextHop) {
        match self.neighbors.get(&(on, address)) {
            None | Some(Status::Unresolved) => (1, self.hop(on, Kind::Unresolved, MacAddr::ZERO)),
            Some(Status::Failed) => (0, self.hop(on, Kind::HostUnreachable, MacAddr::ZERO)),
            Some(Status::Resolved { mac, stale: false }) => (2, self.hop(on, Kind::Forward, *mac)),
            Some(Status::Resolved { mac, stale: true }) => {
                (2, self.hop(on, Kind::ForwardStale, *mac))
            }
        }
    }

    fn target(&self, target: &Target) -> Option<Vec<NextHop>> {
        match target {
            Target::Blackhole => Some(answer(Kind::Blackhole)),
            Target::Unreachable => Some(answer(Kind::Unreachable)),
            Target::Local => Some(answer(Kind::Local)),
            Target::Broadcast => Some(answer(Kind::Broadcast)),
            Target::Port(on) => self.ports.get(on).map(|port| match port.fixed {
                Some(mac) => vec![self.hop(*on, Kind::Forward, mac)],
                None => vec![self.hop(*on, Kind::Glean, MacAddr::ZERO)],
            }),
            Target::Via(via) => {
                let usable = via.iter().filter(|hop| !self.is_own(hop.address)).filter_map(|hop| {
                    let on = hop.interface.or_else(|| self.interface_of(hop.address))?;
                    self.ports.get(&on).map(|_| self.neighbor(on, hop.address))
                });
                let usable: Vec<_> = usable.collect();
                let best = usable.iter().map(|(rank, _)| *rank).max()?;
                let mut hops: Vec<_> = usable
                    .into_iter()
                    .filter(|(rank, _)| *rank == best)
                    .map(|(_, hop)| hop)
                    .collect();
                hops.sort_unstable_by_key(order);
                hops.dedup();
                Some(hops)
            }
        }
    }

    fn own(&self, prefix: Prefix) -> Option<Vec<NextHop>> {
        let host = prefix == Prefix::host(prefix.address());
        if host && self.is_own(prefix.address()) {
            return Some(answer(Kind::Local));
        }
        self.ports.values().find_map(|port| {
            let first = self.network(port).address() == prefix.address();
            match self.network(port) {
                Prefix::V4(net) if host => (first || prefix.address() == IpAddr::V4(net.last()))
                    .then(|| answer(Kind::Broadcast)),
                Prefix::V6(_) if host && first => Some(answer(Kind::Local)),
                _ => None,
            }
        })
    }

    fn connected(&self, prefix: Prefix) -> Option<Vec<NextHop>> {
        let port = self.ports.iter().find(|(_, port)| self.network(port) == prefix);
        port.map(|(id, _)| vec![self.hop(*id, Kind::Glean, MacAddr::ZERO)])
    }

    fn at(&self, prefix: Prefix) -> Option<Vec<NextHop>> {
        self.own(prefix)
            .or_else(|| self.target(self.routes.get(&prefix)?))
            .or_else(|| self.host(prefix))
            .or_else(|| self.connected(prefix))
    }

    fn host(&self, prefix: Prefix) -> Option<Vec<NextHop>> {
        let address = prefix.address();
        if prefix != Prefix::host(address) {
            return None;
        }
        let mut hops = self.ports.keys().filter_map(|on| {
            let status = self.neighbors.get(&(*on, address))?;
            let on_link = self.around(address)? == [self.hop(*on, Kind::Glean, MacAddr::ZERO)];
            (on_link && *status != Status::Unresolved).then(|| vec![self.neighbor(*on, address).1])
        });
        hops.next_back()
    }

    fn around(&self, address: IpAddr) -> Option<Vec<NextHop>> {
        let width = if self.v6 { 128 } else { 32 };
        (0..width).rev().find_map(|length| self.at(Prefix::containing(address, length).unwrap()))
    }

    fn look_up(&self, address: IpAddr) -> Vec<NextHop> {
        let found = self.at(Prefix::host(address)).or_else(|| self.around(address));
        found.unwrap_or_else(|| answer(Kind::MissUnreachable))
    }

    fn valid(&self, target: &Target) -> bool {
        match target {
            Target::Port(on) => self.ports.contains_key(on),
            Target::Via(via) => via.iter().all(|hop| {
                let on = hop.interface.or_else(|| self.interface_of(hop.address));
                !self.is_own(hop.address) && on.is_some_and(|on| self.ports.contains_key(&on))
            }),
            _ => true,
        }
    }
}

struct Bench {
    rib: Rib,
    state: State,
    model: Model,
    open: BTreeMap<(u16, IpAddr), u32>,
}

impl Bench {
    fn new(v6: bool) -> Self {
        let (rib, state, _) = new(LIMITS);
        let model = Model {
            v6,
            ports: BTreeMap::new(),
            routes: BTreeMap::new(),
            neighbors: BTreeMap::new(),
        };
        Self { rib, state, model, open: BTreeMap::new() }
    }

    fn target(&self, aim: &Aim) -> Target {
        match aim {
            Aim::Via(via) => Target::Via(
                via.iter()
                    .map(|(at, interface, weight)| {
                        let address = address(self.model.v6, ADDRESSES[*at]);
                        Via { address, interface: *interface, weight: *weight }
                    })
                    .collect(),
            ),
            Aim::Port(on) => Target::Port(*on),
            Aim::Blackhole => Target::Blackhole,
            Aim::Unreachable => Target::Unreachable,
            Aim::Local => Target::Local,
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Add(at, aim) => {
                let (prefix, target) = (prefix(self.model.v6, PREFIXES[*at]), self.target(aim));
                let change = Change::Add(Route { prefix, target: target.clone() });
                let result = self.rib.apply(&[change]);
                assert_eq!(result.is_ok(), self.model.valid(&target), "{result:?}");
                if result.is_ok() {
                    self.model.routes.insert(prefix, target);
                }
            }
            Step::Remove(at) => {
                let prefix = prefix(self.model.v6, PREFIXES[*at]);
                let result = self.rib.apply(&[Change::Remove(prefix)]);
                assert_eq!(result.is_ok(), self.model.routes.remove(&prefix).is_some());
            }
            Step::Interfaces(list) => self.set_interfaces(list),
            Step::Neighbor(on, at, status) => self.set_neighbor(*on, *at, *status),
            Step::Grace => self.rib.reclaim(),
        }
    }

    fn set_interfaces(&mut self, list: &[Option<(u8, u8)>; 3]) {
        let mut ports = BTreeMap::new();
        let mut given = Vec::new();
        let mut macs = NextHopMacs::new();
        for (id, choice) in (0..).zip(list) {
            given.push(choice.map(|(network, variant)| {
                let mut own = NETWORKS[usize::from(network % 2)];
                own[2] = if network < 4 { id as u8 } else { 0 };
                let own = address(self.model.v6, own);
                let length = [24, 25, 8, 16][usize::from(network % 4)];
                let fixed = (variant & 2 != 0).then(|| mac(0x80 + variant));
                macs.extend(fixed.map(|mac| (id, mac)));
                let mut interface = interface(id, &[(own, length)]);
                interface.mac = mac(0xf0 + 4 * (variant & 1) + id as u8);
                ports.insert(id, Port { own, length, mac: interface.mac, fixed });
                interface
            }));
        }
        let gone = self.rib.set_interfaces(&interfaces(given), &macs);
        let changed = |on: &u16| {
            let (old, new) = (self.model.ports.get(on), ports.get(on));
            old.is_some() && old.map(|port| port.mac) != new.map(|port| port.mac)
        };
        assert_eq!(gone, self.model.ports.keys().copied().filter(changed).collect::<Vec<_>>());
        self.model.ports = ports;
        for ((on, address), index) in std::mem::take(&mut self.open) {
            if gone.contains(&on) {
                self.rib.close_neighbor(index);
                self.model.neighbors.remove(&(on, address));
            } else {
                self.open.insert((on, address), index);
            }
        }
    }

    fn set_neighbor(&mut self, on: u16, at: usize, status: Option<u8>) {
        let neighbor = (on, address(self.model.v6, ADDRESSES[at]));
        let Some(status) = status else {
            if let Some(index) = self.open.remove(&neighbor) {
                self.rib.close_neighbor(index);
                self.model.neighbors.remove(&neighbor);
            }
            return;
        };
        // An address is behind one interface at a time here, as in life.
        if self.open.keys().any(|(other, address)| *address == neighbor.1 && *other != on) {
            return;
        }
        if let std::collections::btree_map::Entry::Vacant(entry) = self.open.entry(neighbor) {
            match self.rib.open_neighbor(on, neighbor.1) {
                Ok(index) => entry.insert(index),
                Err(_) => return assert!(!self.model.ports.contains_key(&on)),
            };
        }
        let status = match status {
            0 => Status::Unresolved,
            1 => Status::Failed,
            n => Status::Resolved { mac: mac(n), stale: n % 2 == 0 },
        };
        self.rib.set_neighbor(self.open[&neighbor], status).unwrap();
        self.model.neighbors.insert(neighbor, status);
    }

    fn check(&self) {
        for bytes in ADDRESSES.iter().chain(&[[10, 0, 0, 0], [10, 0, 0, 255], [30, 0, 0, 1]]) {
            let address = address(self.model.v6, *bytes);
            assert_eq!(seen(&self.state, address), self.model.look_up(address), "{address}");
        }
    }
}

fn aim() -> impl Strategy<Value = Aim> {
    let hop = (0..ADDRESSES.len(), proptest::option::weighted(0.3, 0..3_u16), 1..4_u8);
    prop_oneof![
        6 => proptest::collection::vec(hop, 1..5).prop_map(Aim::Via),
        2 => (0..3_u16).prop_map(Aim::Port),
        1 => Just(Aim::Blackhole),
        1 => Just(Aim::Unreachable),
        1 => Just(Aim::Local),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let port = || proptest::option::weighted(0.8, (0..8_u8, 0..4_u8));
    prop_oneof![
        5 => (0..PREFIXES.len(), aim()).prop_map(|(at, aim)| Step::Add(at, aim)),
        3 => (0..PREFIXES.len()).prop_map(Step::Remove),
        2 => [port(), port(), port()].prop_map(Step::Interfaces),
        5 => (0..3_u16, 0..ADDRESSES.len(), proptest::option::weighted(0.8, 0..6_u8))
            .prop_map(|(on, at, status)| Step::Neighbor(on, at, status)),
        1 => Just(Step::Grace),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn workers_see_what_the_model_says(
        v6: bool,
        first in [Just(Some((0, 0))), Just(Some((4, 2))), Just(Some((3, 0)))],
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut bench = Bench::new(v6);
        bench.step(&Step::Interfaces(first));
        bench.check();
        for step in &steps {
            bench.step(step);
            bench.check();
        }
        // With everything taken away, nothing is left in use.
        for (_, index) in std::mem::take(&mut bench.open) {
            bench.rib.close_neighbor(index);
        }
        let all: Vec<_> = bench.model.routes.keys().map(|prefix| Change::Remove(*prefix)).collect();
        bench.rib.apply(&all).unwrap();
        bench.rib.set_interfaces(&interfaces(Vec::new()), &NextHopMacs::new());
        prop_assert_eq!(bench.rib.next_hops().count(), 0);
        prop_assert!(!bench.rib.has_groups());
        prop_assert!(bench.rib.routes(v6, None, 10).is_empty());
    }
}
