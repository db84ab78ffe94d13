//! `millrace show interfaces`, `vrfs` and `neighbors`

use control::api::{Interface, InterfaceMode, Neighbor, Vrf};
use control::config::DEFAULT_VRF;

use crate::failure::Failure;
use crate::output::{Table, or_dash, word};
use crate::units::{age, count};

pub(super) fn interfaces(interfaces: Vec<Interface>) -> Result<(), Failure> {
    let mut table = Table::new(&[
        "interface",
        "kind",
        "state",
        "mode",
        "vrf",
        "mac",
        "#mtu",
        "addresses",
        "features",
    ]);
    for interface in interfaces {
        let kind = match (&interface.port, interface.vlan) {
            (Some(port), Some(vlan)) => format!("VLAN {vlan} of {port}"),
            _ => word(interface.kind),
        };
        let mode = match (interface.mode, &interface.peer) {
            (InterfaceMode::Bridged, Some(bridge)) => format!("bridged by {bridge}"),
            (InterfaceMode::CrossConnected, Some(peer)) => format!("connected to {peer}"),
            (mode, _) => word(mode),
        };
        let addresses: Vec<_> = interface.addresses.iter().map(ToString::to_string).collect();
        let features = [interface.input_features, interface.output_features].concat();
        table.row([
            interface.name,
            kind,
            if interface.up { "up" } else { "down" }.to_owned(),
            mode,
            interface.vrf.unwrap_or_else(|| DEFAULT_VRF.to_owned()),
            interface.mac.to_string(),
            interface.mtu.to_string(),
            list(&addresses),
            list(&features),
        ]);
    }
    table.print("no interfaces")
}

pub(super) fn vrfs(vrfs: Vec<Vrf>) -> Result<(), Failure> {
    let mut table = Table::new(&["vrf", "state", "#IPv4 routes", "#IPv6 routes", "interfaces"]);
    for vrf in vrfs {
        table.row([
            vrf.name,
            if vrf.parked { "parked" } else { "up" }.to_owned(),
            count(vrf.routes4),
            count(vrf.routes6),
            list(&vrf.interfaces),
        ]);
    }
    table.print("no VRFs")
}

fn list(items: &[String]) -> String {
    if items.is_empty() { "-".to_owned() } else { items.join(" ") }
}

pub(super) fn neighbors(neighbors: Vec<Neighbor>) -> Result<(), Failure> {
    let mut table = Table::new(&["interface", "address", "mac", "state", "#confirmed", "#waiting"]);
    for neighbor in neighbors {
        table.row([
            neighbor.interface,
            neighbor.address.to_string(),
            or_dash(neighbor.mac),
            if neighbor.parked { "parked".to_owned() } else { word(neighbor.state) },
            neighbor.age.map_or_else(|| "-".to_owned(), |ms| format!("{} ago", age(ms))),
            neighbor.queued.to_string(),
        ]);
    }
    table.print("no neighbours yet: they are asked for when packets need them")
}
