//! Random changes of routes of several sources, of interfaces and of neighbours; after each, what the workers see equals
//! what a plain list of everything says, once all routes are shown that changes of interfaces concern.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::plain::{Given, Model, Port};
use super::*;
use crate::rib::{Change, NextHopMacs, Place, Prefix, Route, Status, Target, Via};

/// One change.
#[derive(Debug, Clone)]
enum Step {
    Add(usize, usize, u32, Aim),
    Remove(usize, usize),
    Withdraw(usize),
    Interfaces([Option<(u8, u8)>; 3]),
    Neighbor(u16, usize, Option<u8>),
    Grace,
    Converge(usize),
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

/// Distances and sources, some of which tie.
const SLOTS: [(u8, &str); 6] =
    [(1, "static"), (200, "static"), (20, "bgp"), (110, "ospf"), (110, "rip"), (0, "kernel")];

const NETWORKS: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 129]];

fn address(v6: bool, bytes: [u8; 4]) -> IpAddr {
    let bits = u32::from_be_bytes(bytes);
    if v6 {
        Ipv6Addr::from_bits(u128::from(bits) << 96).into()
    } else {
        Ipv4Addr::from(bytes).into()
    }
}

fn place(v6: bool, at: usize, slot: usize) -> Place {
    let (distance, source) = SLOTS[slot];
    let prefix = prefix(v6, PREFIXES[at]);
    Place { vrf: DEFAULT_VRF, prefix, source: source.parse().unwrap(), distance }
}

fn prefix(v6: bool, (bytes, length): ([u8; 4], u8)) -> Prefix {
    let length = if v6 && length == 32 { 128 } else { length };
    Prefix::new(address(v6, bytes), length).unwrap()
}

struct Bench {
    rib: Rib,
    state: State,
    model: Model,
    open: BTreeMap<(InterfaceId, IpAddr), u32>,
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
                        let interface = interface.map(InterfaceId::new);
                        Via { address, interface, weight: *weight }
                    })
                    .collect(),
            ),
            Aim::Port(on) => Target::Port(InterfaceId::new(*on)),
            Aim::Blackhole => Target::Blackhole,
            Aim::Unreachable => Target::Unreachable,
            Aim::Local => Target::Local,
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Add(at, slot, metric, aim) => {
                let (place, target) = (place(self.model.v6, *at, *slot), self.target(aim));
                let route = Route { place, metric: *metric, target: target.clone() };
                let result = self.rib.apply(&[Change::Add(route)]);
                assert_eq!(result.is_ok(), self.model.valid(&target), "{result:?}");
                if result.is_ok() {
                    self.model.routes.insert(place, Given { metric: *metric, target });
                }
            }
            Step::Remove(at, slot) => {
                let place = place(self.model.v6, *at, *slot);
                let result = self.rib.apply(&[Change::Remove(place)]);
                assert_eq!(result.is_ok(), self.model.routes.remove(&place).is_some());
            }
            Step::Withdraw(slot) => {
                let source = SLOTS[*slot].1.parse().unwrap();
                let places = self.rib.places_of(DEFAULT_VRF, source, usize::MAX);
                self.rib
                    .apply(&places.into_iter().map(Change::Remove).collect::<Vec<_>>())
                    .unwrap();
                self.model.routes.retain(|place, _| place.source != source);
            }
            Step::Interfaces(list) => self.set_interfaces(list),
            Step::Neighbor(on, at, status) => {
                self.set_neighbor(InterfaceId::new(*on), *at, *status);
            }
            Step::Grace => self.rib.reclaim(),
            Step::Converge(most) => {
                self.rib.converge(*most);
            }
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
                macs.extend(fixed.map(|mac| (InterfaceId::new(id), mac)));
                let mut interface = interface(id, &[(own, length)]);
                interface.mac = mac(0xf0 + 4 * (variant & 1) + id as u8);
                ports.insert(InterfaceId::new(id), Port { own, length, mac: interface.mac, fixed });
                interface
            }));
        }
        let gone = self.rib.set_interfaces(&interfaces(given), &macs);
        let changed = |on: &InterfaceId| {
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

    fn set_neighbor(&mut self, on: InterfaceId, at: usize, status: Option<u8>) {
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

    fn check(&mut self) {
        let all_shown = !self.rib.converge(0);
        for bytes in ADDRESSES.iter().chain(&[[10, 0, 0, 0], [10, 0, 0, 255], [30, 0, 0, 1]]) {
            let address = address(self.model.v6, *bytes);
            let hops = seen(&self.state, address);
            if all_shown || self.model.is_own(address) {
                assert_eq!(hops, self.model.look_up(address), "{address}");
            }
            // In any case, nothing leaves by an interface that is gone, or as it was.
            for hop in hops.iter().filter(|hop| hop.interface != InterfaceId::NONE) {
                let mac = self.model.ports.get(&hop.interface).map(|port| port.mac);
                assert_eq!(mac, Some(hop.source), "{address}: {hop:?}");
            }
        }
        for (place, given) in &self.model.routes {
            let known = self.rib.route_at(*place).unwrap();
            assert_eq!(known.metric, given.metric);
            let all = self.rib.routes_of(DEFAULT_VRF, place.prefix);
            let first = all.iter().find(|route| route.usable).map(|route| route.active);
            assert_ne!(first, Some(false), "the first usable one is active: {all:?}");
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
        6 => (0..PREFIXES.len(), 0..SLOTS.len(), 0..3_u32, aim())
            .prop_map(|(at, slot, metric, aim)| Step::Add(at, slot, metric, aim)),
        3 => (0..PREFIXES.len(), 0..SLOTS.len()).prop_map(|(at, slot)| Step::Remove(at, slot)),
        1 => (0..SLOTS.len()).prop_map(Step::Withdraw),
        2 => [port(), port(), port()].prop_map(Step::Interfaces),
        5 => (0..3_u16, 0..ADDRESSES.len(), proptest::option::weighted(0.8, 0..6_u8))
            .prop_map(|(on, at, status)| Step::Neighbor(on, at, status)),
        1 => Just(Step::Grace),
        3 => (1..8_usize).prop_map(Step::Converge),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

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
        converge(&mut bench.rib);
        bench.check();
        // With everything taken away, nothing is left in use.
        for (_, index) in std::mem::take(&mut bench.open) {
            bench.rib.close_neighbor(index);
        }
        let all: Vec<_> = bench.model.routes.keys().copied().map(Change::Remove).collect();
        bench.rib.apply(&all).unwrap();
        bench.rib.set_interfaces(&interfaces(Vec::new()), &NextHopMacs::new());
        converge(&mut bench.rib);
        prop_assert_eq!(bench.rib.next_hops().count(), 0);
        prop_assert!(!bench.rib.has_groups());
        prop_assert!(bench.rib.routes((DEFAULT_VRF, None), v6, None, 10).is_empty());
    }
}
