//! Interfaces and bridges.

use std::net::IpAddr;

use axum::Json;
use axum::extract::State;
use control::api::{
    Bridge, BridgeMac, BridgeMember, Interface, InterfaceKind, InterfaceMode, Usage,
};
use control::net::InterfaceAddress;
use forward::state::{self, InputFeature, Interfaces, Mode, OutputFeature};
use graph::FeatureSet;

use super::Api;
use crate::daemon::Daemon;
use crate::ports::PortState;

/// Learned addresses that are listed at most.
const MACS: usize = 10_000;

/// `GET /v1/interfaces`
#[utoipa::path(
    get,
    path = "/v1/interfaces",
    responses(
        (status = 200, description = "Every interface", body = Vec<Interface>),
    )
)]
pub(crate) async fn list(axum_state: State<Api>) -> Json<Vec<Interface>> {
    let daemon = axum_state.daemon.lock();
    let all = daemon.routing.interfaces();
    let shown = all.list.iter().flatten().map(|interface| show(&daemon, &all, interface));
    Json(shown.collect())
}

fn show(daemon: &Daemon, all: &Interfaces, interface: &state::Interface) -> Interface {
    let name = |id| all.get(id).map(|other| other.name.clone());
    let bridge = |number: u16| all.bridges.get(usize::from(number)).map(|b| b.name.clone());
    let (mode, peer) = match interface.mode {
        Mode::Routed | Mode::BridgeIp(_) => (InterfaceMode::Routed, None),
        Mode::CrossConnect(other) => (InterfaceMode::CrossConnected, name(other)),
        Mode::Member { bridge: number, .. } => (InterfaceMode::Bridged, bridge(number)),
    };
    let vlan = daemon.config.vlans.iter().find(|vlan| vlan.name == interface.name);
    let kind = match interface.mode {
        Mode::BridgeIp(_) => InterfaceKind::Bridge,
        _ if vlan.is_some() => InterfaceKind::Vlan,
        _ => InterfaceKind::Port,
    };
    let port = match kind {
        InterfaceKind::Bridge => None,
        _ => Some(vlan.map_or_else(|| interface.name.clone(), |vlan| vlan.port.clone())),
    };
    let is_up = |name: &str| daemon.ports.get(name).is_some_and(PortState::is_up);
    let own4 = interface.addresses4.iter().map(|(address, length)| (IpAddr::V4(*address), *length));
    let own6 = interface.addresses6.iter().map(|(address, length)| (IpAddr::V6(*address), *length));
    let address = |(address, length): (IpAddr, u8)| -> Option<InterfaceAddress> {
        format!("{address}/{length}").parse().ok()
    };
    Interface {
        name: interface.name.clone(),
        vrf: daemon.routing.topology().vrf_name(interface.vrf).map(str::to_owned),
        kind,
        mode,
        peer,
        up: port.as_deref().is_none_or(is_up),
        port,
        vlan: interface.vlan,
        mac: interface.mac.into(),
        mtu: interface.mtu,
        addresses: own4.chain(own6).filter_map(address).collect(),
        input_features: names(
            interface.input_features(),
            InputFeature::NODES.map(|(feature, name)| (feature as u8, name)),
        ),
        output_features: names(
            interface.features.output(),
            OutputFeature::NODES.map(|(feature, name)| (feature as u8, name)),
        ),
    }
}

/// Names of the nodes of features, whose places and names are in `nodes`, in their order.
fn names<const N: usize>(features: FeatureSet, nodes: [(u8, &str); N]) -> Vec<String> {
    let name = |place| nodes.iter().find(|(known, _)| *known == place);
    features.iter().filter_map(name).map(|(_, name)| (*name).to_owned()).collect()
}

/// `GET /v1/bridges`
#[utoipa::path(
    get,
    path = "/v1/bridges",
    responses(
        (status = 200, description = "Every bridge", body = Vec<Bridge>),
    )
)]
pub(crate) async fn bridges(axum_state: State<Api>) -> Json<Vec<Bridge>> {
    let daemon = axum_state.daemon.lock();
    let all = daemon.routing.interfaces();
    let shown = daemon.config.bridges.iter().filter_map(|config| {
        let number = daemon.routing.topology().bridges.number(&config.name)?;
        let bridge = all.bridges.get(usize::from(number))?;
        let learned = daemon.bridges.learned_by(number);
        let mac = |entry: &forward::bridge::MacEntry| {
            Some(BridgeMac {
                mac: entry.key.mac.into(),
                vlan: config.vlan_filtering.then_some(entry.key.vlan),
                interface: all.get(entry.interface)?.name.clone(),
                age: entry.age,
            })
        };
        Some(Bridge {
            name: config.name.clone(),
            members: config
                .members
                .iter()
                .map(|member| BridgeMember {
                    interface: member.interface.clone(),
                    vlans: member.vlans.clone(),
                    untagged: member.untagged,
                })
                .collect(),
            vlan_filtering: config.vlan_filtering,
            ageing: bridge.ageing,
            flood_rate: config.flood_rate,
            learned: Usage { used: learned.len() as u64, capacity: config.mac_limit.into() },
            macs: learned.iter().take(MACS).filter_map(mac).collect(),
        })
    });
    Json(shown.collect())
}
