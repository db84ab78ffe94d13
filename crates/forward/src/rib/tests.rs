//! The routing table against plain models, and single rules one by one.

mod links;
mod model;
mod plain;
mod rules;
mod sources;
mod vrfs;
mod work;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use graph::{InterfaceId, PortId};
use tables::Epoch;
use wire::MacAddr;

use super::{Limits, Miss, Rib};
use crate::state::{
    DEFAULT_VRF, Features, GROUP_SLOTS, Interface, Interfaces, Kind, Mode, NextHop, Settings,
    State, VrfId,
};

const SETTINGS: Settings = Settings {
    martians: true,
    directed_broadcast: false,
    icmp_rate: 100,
    hash_seed: 0,
    flows4: false,
    flows6: false,
    tsc_hz: 1_000_000_000,
};

const LIMITS: Limits = Limits { routes4: 1000, routes6: 1000, next_hops: 200, groups: 50 };

fn mac(last: u8) -> MacAddr {
    MacAddr::new([2, 0, 0, 0, 0, last])
}

fn new(limits: Limits) -> (Rib, State, Epoch) {
    let epoch = Epoch::new();
    let (rib, state) = Rib::new(limits, Miss::Unreachable, SETTINGS, &epoch).unwrap();
    (rib, state, epoch)
}

fn interface(number: u16, addresses: &[(IpAddr, u8)]) -> Interface {
    let v4 = |(address, length): &(IpAddr, u8)| match address {
        IpAddr::V4(address) => Some((*address, *length)),
        IpAddr::V6(_) => None,
    };
    let v6 = |(address, length): &(IpAddr, u8)| match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some((*address, *length)),
    };
    Interface {
        name: format!("port{number}"),
        generation: 0,
        port: Some(PortId::new(number)),
        up: true,
        vlan: None,
        mac: mac(0xf0 + number as u8),
        mtu: 1500,
        addresses4: addresses.iter().filter_map(v4).collect(),
        addresses6: addresses.iter().filter_map(v6).collect(),
        any_mac: false,
        unnumbered: false,
        mode: Mode::Routed,
        vrf: DEFAULT_VRF,
        features: Features::default(),
    }
}

fn interfaces(list: Vec<Option<Interface>>) -> Interfaces {
    Interfaces { list, ..Interfaces::default() }
}

/// Shows all routes that changes of interfaces concern, one in each step.
fn converge(rib: &mut Rib) {
    while rib.converge(1) {}
}

/// What the workers find in a VRF. `None`: it is not there.
fn found(state: &State, vrf: VrfId, address: IpAddr) -> Option<u32> {
    let others = state.vrfs.load();
    let (routes4, routes6) = if vrf == DEFAULT_VRF {
        (&state.routes4, &state.routes6)
    } else {
        let tables = others.get(vrf)?;
        (&tables.routes4, &tables.routes6)
    };
    Some(match address {
        IpAddr::V4(address) => routes4.lookup(address.to_bits()),
        IpAddr::V6(address) => routes6.lookup(address.to_bits()),
    })
}

/// What the workers do with packets to an address, over all flows.
fn seen(state: &State, address: IpAddr) -> Vec<NextHop> {
    let value = found(state, DEFAULT_VRF, address).unwrap();
    let flows = 0..GROUP_SLOTS as u32;
    let mut hops: Vec<NextHop> =
        flows.map(|hash| state.next_hops.get(state.next_hops.choose(value, hash))).collect();
    hops.sort_unstable_by_key(order);
    hops.dedup();
    hops
}

fn order(hop: &NextHop) -> (u8, InterfaceId, MacAddr, MacAddr, u16) {
    (hop.kind as u8, hop.interface, hop.destination, hop.source, hop.mtu)
}

fn kinds(state: &State, address: &str) -> Vec<Kind> {
    let address: IpAddr = address.parse().unwrap();
    seen(state, address).into_iter().map(|hop| hop.kind).collect()
}

fn v4(text: &str) -> (IpAddr, u8) {
    let (address, length) = text.split_once('/').unwrap();
    (address.parse::<Ipv4Addr>().unwrap().into(), length.parse().unwrap())
}

fn v6(text: &str) -> (IpAddr, u8) {
    let (address, length) = text.split_once('/').unwrap();
    (address.parse::<Ipv6Addr>().unwrap().into(), length.parse().unwrap())
}
