//! Reads bridges and cross-connects.

use std::time::Duration;

use super::interface::{MOST_MTU, addresses, features, mac, mtu, traits, vlan_ids};
use super::names::{Names, What};
use super::report::Report;
use super::section::{Section, Value};
use crate::config::{Bridge, BridgeMember, CrossConnect};

/// Members of a bridge at most.
const MOST_MEMBERS: usize = 256;

/// Reads the bridges.
pub(super) fn bridges(
    sections: Vec<Section<'_>>,
    report: &Report,
    names: &mut Names,
    macs: u32,
) -> Vec<Bridge> {
    sections.into_iter().map(|section| bridge(section, report, names, macs)).collect()
}

fn bridge(mut section: Section<'_>, report: &Report, names: &mut Names, macs: u32) -> Bridge {
    let name = names.claim(report, &mut section, ("bridge", What::Bridge));
    let vlan_filtering = section.flag("vlan-filtering", false);
    let members = section.required("members", "[\"...\"], names of ports").map(|value| {
        let items = value.list();
        if items.len() > MOST_MEMBERS || (items.is_empty() && value.is_list()) {
            let problem = format!("has {} members", items.len());
            value.wrong(problem, format!("use 1 to {MOST_MEMBERS}"));
        }
        let read = |item: &Value<'_>| member(item, names, &name, vlan_filtering);
        items.iter().take(MOST_MEMBERS).filter_map(read).collect::<Vec<_>>()
    });
    let members = members.unwrap_or_default();
    let least = members.iter().filter_map(|m| names.get(&m.interface)).map(|m| m.mtu).min();
    let most = least.unwrap_or(MOST_MTU);
    let mtu = mtu(&mut section, least.unwrap_or(1_500));
    if mtu > most {
        let problem = format!("{mtu} is above the least MTU of its members");
        section.wrong("mtu", problem, format!("use at most {most} bytes, or raise the members'"));
    }
    // IEEE 802.1D 7.9.2 gives 10 s to 1,000,000 s; less is of use in tests.
    let ageing = Duration::from_secs(1)..=Duration::from_secs(1_000_000);
    let vrf = names.vrf(&mut section);
    let bridge = Bridge {
        addresses: addresses(&mut section, report, names, (&name, vrf.as_deref()), mtu),
        features: features(&mut section),
        ageing: section.duration("ageing", Duration::from_secs(300), ageing),
        mac_limit: section.number(
            "mac-limit",
            macs.min(1_024),
            1..=u64::from(macs),
            "addresses (limits.bridge-macs)",
        ),
        flood_rate: section.number("flood-rate", 10_000, 0..=100_000_000, "packets/s"),
        vlan_filtering,
        mac: mac(&mut section, "mac"),
        mtu,
        members,
        name,
        vrf,
    };
    let numbered = !bridge.addresses.is_empty();
    if !numbered {
        for key in bridge.features.keys() {
            let problem = "is for IP packets, which a bridge without addresses has none of";
            let remedy = "give the bridge addresses, or remove it";
            section.wrong(key, problem.to_owned(), remedy.to_owned());
        }
    }
    if !numbered && bridge.vrf.is_some() {
        let problem = "is for IP packets, which a bridge without addresses has none of".to_owned();
        section.wrong("vrf", problem, "give the bridge addresses, or remove it".to_owned());
    }
    let traits = traits(mtu, &bridge.addresses, bridge.features, bridge.vrf.as_ref());
    names.describe(&bridge.name, traits);
    section.finish();
    bridge
}

/// A member: the name of an interface, or a table with its VLANs.
fn member(
    value: &Value<'_>,
    names: &mut Names,
    bridge: &str,
    vlan_filtering: bool,
) -> Option<BridgeMember> {
    let becomes = format!("a member of bridge '{bridge}'");
    let kinds = [What::Port, What::Vlan];
    if value.is_text() {
        let interface = names.resolve(value, &kinds)?.name.clone();
        names.take(value, &interface, &becomes);
        return Some(BridgeMember { interface, vlans: Vec::new(), untagged: None });
    }
    let mut section = value.section()?;
    let interface =
        section.required("interface", "\"...\", the name of a port").and_then(|value| {
            let interface = names.resolve(&value, &kinds)?.name.clone();
            names.take(&value, &interface, &becomes);
            Some(interface)
        });
    let vlans = section.value("vlans").map(|value| vlan_ids(&value)).unwrap_or_default();
    let untagged = section.value("untagged").and_then(|value| value.integer(1..=4_094, ""));
    let untagged = untagged.and_then(|id| u16::try_from(id).ok());
    for key in ["vlans", "untagged"] {
        if section.has(key) && !vlan_filtering {
            let problem = "has no effect without VLAN filtering".to_owned();
            section.wrong(key, problem, "set vlan-filtering = true in the bridge".to_owned());
        }
    }
    if let Some(id) = untagged.filter(|id| !vlans.is_empty() && !vlans.contains(id)) {
        let problem = format!("{id} is not among the member's VLANs");
        section.wrong("untagged", problem, "add it to vlans".to_owned());
    }
    section.finish();
    Some(BridgeMember { interface: interface?, vlans, untagged })
}

/// Reads the cross-connects.
pub(super) fn cross_connects(sections: Vec<Section<'_>>, names: &mut Names) -> Vec<CrossConnect> {
    let kinds = [What::Port, What::Vlan];
    let mut list = Vec::new();
    for mut section in sections {
        let both_ways = section.flag("both-ways", true);
        let from = section.required("from", "\"...\", the name of a port");
        let to = section.required("to", "\"...\", the name of a port");
        let name =
            |value: &Option<Value<'_>>| Some(names.resolve(value.as_ref()?, &kinds)?.name.clone());
        let (from_name, to_name) = (name(&from), name(&to));
        if from_name.is_some() && from_name == to_name {
            let problem = "is the interface of 'from' too".to_owned();
            section.wrong("to", problem, "name another interface".to_owned());
            continue;
        }
        for (value, name, taken) in [(from, &from_name, true), (to, &to_name, both_ways)] {
            if let (Some(value), Some(name), true) = (value, name, taken) {
                names.take(&value, name, "a cross-connected interface");
            }
        }
        if let (Some(from), Some(to)) = (from_name, to_name) {
            list.push(CrossConnect { from, to, both_ways });
        }
        section.finish();
    }
    list
}
