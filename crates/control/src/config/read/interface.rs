//! Reads ports and VLAN sub-interfaces, and what they share with bridges.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use super::names::{Names, Traits, What};
use super::report::Report;
use super::section::{Section, Value};
use crate::config::{Device, Features, Port, QueueCore, Vlan};
use crate::net::{InterfaceAddress, MacAddr, shortened};

/// Least MTU of IPv4 (RFC 791 3.2) and of IPv6 (RFC 8200 5); most that ports take: bytes.
pub(crate) const MTU4: u16 = 68;
pub(crate) const MTU6: u16 = 1_280;
pub(crate) const MOST_MTU: u16 = 9_216;

/// Least segment that can be asked for: what TCP takes for granted over IPv4 (RFC 9293 3.7.1), and most, what the largest MTU
/// has room for: bytes.
const SEGMENTS: RangeInclusive<u64> = 536..=MOST_MTU as u64 - 40;

/// Queues of a port at most.
const MOST_QUEUES: u64 = 64;

/// Addresses of an interface at most.
const MOST_ADDRESSES: usize = 256;

/// Reads the ports; queues without a core go round the workers' cores.
pub(super) fn ports(
    sections: Vec<Section<'_>>,
    report: &Report,
    names: &mut Names,
    cores: &[u16],
) -> Vec<Port> {
    let mut next = cores.iter().copied().cycle();
    let mut read = |section| port(section, report, names, cores, &mut next);
    sections.into_iter().map(&mut read).collect()
}

fn port(
    mut section: Section<'_>,
    report: &Report,
    names: &mut Names,
    cores: &[u16],
    next: &mut impl Iterator<Item = u16>,
) -> Port {
    let name = names.claim(report, &mut section, ("port", What::Port));
    let device = section.required("device", "\"KIND:ARGUMENT\"").and_then(|value| {
        let device: Device = value.parse()?;
        names.open(report, &value, &device);
        Some(device)
    });
    let mac = mac(&mut section, "mac");
    let mtu = mtu(&mut section, 1_500);
    let rx_queues = section.number("rx-queues", 1, 1..=MOST_QUEUES, "queues");
    let most = u64::from(rx_queues);
    let client_queues = section.number("client-queues", 0, 0..=most, "queues of rx-queues");
    let given = section.value("queues").map(|value| queues(&value, rx_queues, cores));
    let queues = given.unwrap_or_else(|| {
        let spread = |queue| QueueCore { queue, core: next.next().unwrap_or_default() };
        (0..rx_queues).map(spread).collect()
    });
    let software_rss = section.value("software-rss").map(|value| shared(&value, rx_queues, cores));
    let vrf = names.vrf(&mut section);
    let addresses = addresses(&mut section, report, names, (&name, vrf.as_deref()), mtu);
    let features = features(&mut section);
    names.describe(&name, traits(mtu, &addresses, features, vrf.as_ref()));
    let port = Port {
        name,
        device: device.unwrap_or_else(Device::null),
        mac,
        mtu,
        promiscuous: section.flag("promiscuous", false),
        rx_queues,
        client_queues,
        rx_descriptors: section.number("rx-descriptors", 1_024, 64..=32_768, "descriptors"),
        tx_descriptors: section.number("tx-descriptors", 1_024, 64..=32_768, "descriptors"),
        queues,
        software_rss: software_rss.unwrap_or_default(),
        vrf,
        addresses,
        next_hop_mac: self::mac(&mut section, "next-hop-mac"),
        features,
    };
    section.finish();
    port
}

/// The explicit mapping of a port's queues to cores: every queue exactly once.
fn queues(value: &Value<'_>, rx_queues: u16, cores: &[u16]) -> Vec<QueueCore> {
    let mut mapped: Vec<QueueCore> = Vec::new();
    let mut complete = true;
    for item in value.list() {
        let Some(mut section) = item.section() else { continue };
        let last = u64::from(rx_queues.saturating_sub(1));
        let queue = section.required("queue", "NUMBER").and_then(|v| v.integer(0..=last, ""));
        let core = section.required("core", "NUMBER").and_then(|v| core(&v, cores));
        section.finish();
        let queue = queue.and_then(|queue| u16::try_from(queue).ok());
        let (Some(queue), Some(core)) = (queue, core) else {
            complete = false;
            continue;
        };
        if mapped.iter().any(|known| known.queue == queue) {
            let problem = format!("queue {queue} is mapped twice");
            item.wrong(problem, "give each queue one core".to_owned());
        } else {
            mapped.push(QueueCore { queue, core });
        }
    }
    for queue in 0..rx_queues {
        if complete && value.is_list() && !mapped.iter().any(|known| known.queue == queue) {
            let core = cores.first().copied().unwrap_or_default();
            let remedy = format!("add {{ queue = {queue}, core = {core} }}");
            value.wrong(format!("queue {queue} has no core"), remedy);
        }
    }
    mapped.sort_by_key(|known| known.queue);
    mapped
}

fn core(value: &Value<'_>, cores: &[u16]) -> Option<u16> {
    let core = u16::try_from(value.integer(0..=1_023, "")?).ok()?;
    if cores.contains(&core) {
        return Some(core);
    }
    let known: Vec<_> = cores.iter().take(64).map(ToString::to_string).collect();
    let remedy = format!("use one of {}, or add it to workers.cores", known.join(", "));
    value.wrong(format!("core {core} has no worker"), remedy);
    None
}

/// Cores that share a port by software RSS.
fn shared(value: &Value<'_>, rx_queues: u16, cores: &[u16]) -> Vec<u16> {
    let mut list: Vec<u16> = Vec::new();
    for item in value.list() {
        let Some(core) = core(&item, cores) else { continue };
        if list.contains(&core) {
            item.wrong(format!("core {core} is named twice"), "name it once".to_owned());
        } else {
            list.push(core);
        }
    }
    if rx_queues > 1 && !list.is_empty() {
        let problem = format!("is for ports with one queue, this one has {rx_queues}");
        let remedy = "set rx-queues = 1, or remove software-rss and spread queues over cores";
        value.wrong(problem, remedy.to_owned());
    }
    list
}

/// Reads the VLAN sub-interfaces.
pub(super) fn vlans(sections: Vec<Section<'_>>, report: &Report, names: &mut Names) -> Vec<Vlan> {
    let mut vlans: Vec<Vlan> = Vec::new();
    for section in sections {
        let vlan = vlan(section, report, names, &vlans);
        vlans.push(vlan);
    }
    vlans
}

fn vlan(mut section: Section<'_>, report: &Report, names: &mut Names, known: &[Vlan]) -> Vlan {
    let name = names.claim(report, &mut section, ("vlan", What::Vlan));
    let parent = section
        .required("port", "\"...\", the name of a port")
        .and_then(|value| names.resolve(&value, &[What::Port]).map(|p| (p.name.clone(), p.mtu)));
    let (port, most) = parent.unwrap_or((String::new(), MOST_MTU));
    // IEEE 802.1Q 9.6: 0 is no VLAN, 4095 is reserved.
    let id = section.required("id", "1 to 4094").and_then(|value| value.integer(1..=4_094, ""));
    let id = id.and_then(|id| u16::try_from(id).ok()).unwrap_or_default();
    if let Some(other) = known.iter().find(|v| id > 0 && v.port == port && v.id == id) {
        let problem = format!("{id} is the VLAN of '{}' on port '{port}' too", other.name);
        section.wrong("id", problem, "give each sub-interface of a port its own id".to_owned());
    }
    let mtu = mtu(&mut section, most.min(if port.is_empty() { 1_500 } else { most }));
    if mtu > most {
        let problem = format!("{mtu} is above the MTU of port '{port}'");
        section.wrong("mtu", problem, format!("use at most {most} bytes, or raise the port's"));
    }
    let vrf = names.vrf(&mut section);
    let addresses = addresses(&mut section, report, names, (&name, vrf.as_deref()), mtu);
    let features = features(&mut section);
    names.describe(&name, traits(mtu, &addresses, features, vrf.as_ref()));
    section.finish();
    Vlan { name, port, id, mtu, vrf, addresses, features }
}

pub(super) fn mac(section: &mut Section<'_>, key: &'static str) -> Option<MacAddr> {
    let value = section.value(key)?;
    let mac: MacAddr = value.parse()?;
    if mac.is_unicast() {
        return Some(mac);
    }
    let problem = format!("{mac} is not the address of one station");
    value.wrong(problem, "use one with an even first byte, as in 02:00:00:00:00:01".to_owned());
    None
}

pub(super) fn features(section: &mut Section<'_>) -> Features {
    Features { tcp_mss: section.optional_number("tcp-mss", SEGMENTS, "bytes") }
}

/// What others may know of an interface.
pub(super) fn traits(
    mtu: u16,
    addresses: &[InterfaceAddress],
    features: Features,
    vrf: Option<&String>,
) -> Traits {
    Traits { mtu, numbered: !addresses.is_empty(), features, in_vrf: vrf.is_some() }
}

pub(super) fn mtu(section: &mut Section<'_>, default: u16) -> u16 {
    section.number("mtu", default, u64::from(MTU4)..=u64::from(MOST_MTU), "bytes")
}

/// Reads the own addresses of an interface: its name and VRF.
pub(super) fn addresses(
    section: &mut Section<'_>,
    report: &Report,
    names: &mut Names,
    interface: (&str, Option<&str>),
    mtu: u16,
) -> Vec<InterfaceAddress> {
    let Some(value) = section.value("addresses") else { return Vec::new() };
    let mut addresses = Vec::new();
    for item in value.list() {
        let Some(address) = item.parse::<InterfaceAddress>() else { continue };
        if addresses.len() == MOST_ADDRESSES {
            let problem = format!("is beyond the {MOST_ADDRESSES} addresses of an interface");
            item.wrong(problem, "remove some".to_owned());
            break;
        }
        if let Some((problem, remedy)) = unusable(address) {
            item.wrong(format!("{address} {problem}"), remedy.to_owned());
        } else if names.number(report, &item, interface, address) {
            addresses.push(address);
        }
    }
    if mtu < MTU6 && addresses.iter().any(|a| a.address().is_ipv6()) {
        let problem = format!("{mtu} is too small for the interface's IPv6 addresses");
        section.wrong("mtu", problem, format!("use at least {MTU6} bytes, or remove them"));
    }
    addresses
}

/// Why an interface cannot have that address, and what to do.
fn unusable(address: InterfaceAddress) -> Option<(&'static str, &'static str)> {
    let ip = address.address();
    if ip.is_multicast() || ip.is_unspecified() || ip.is_loopback() {
        return Some(("is not the address of one host", "use a unicast address of the network"));
    }
    let IpAddr::V4(ip) = ip else { return None };
    if ip.is_broadcast() || ip.octets()[0] >= 240 || ip.octets()[0] == 0 {
        return Some(("is a reserved address", "use a unicast address of the network"));
    }
    if !address.has_broadcast(ip.into()) {
        return None;
    }
    let first = address.network().address() == ip;
    let what = if first { "is the network itself" } else { "is the network's broadcast address" };
    Some((what, "use an address between the first and the last of the network"))
}

/// VLAN ids of a list, for bridge members.
pub(super) fn vlan_ids(value: &Value<'_>) -> Vec<u16> {
    let mut ids = Vec::new();
    for item in value.list() {
        let Some(id) = item.integer(1..=4_094, "").and_then(|id| u16::try_from(id).ok()) else {
            continue;
        };
        if ids.contains(&id) {
            let problem = format!("VLAN {} is named twice", shortened(&id.to_string()));
            item.wrong(problem, "name it once".to_owned());
        } else {
            ids.push(id);
        }
    }
    ids
}
