//! Reads the sections about the kernel's side of ports.

use super::names::{Names, What};
use super::section::{Section, Value};
use crate::config::{KernelFilter, KernelSide, Port};
use crate::net::shortened;

/// Filters of one port at most: each is looked at for each packet.
const MOST: usize = 64;

pub(super) fn sides(
    sections: Vec<Section<'_>>,
    names: &mut Names,
    ports: &[Port],
) -> Vec<KernelSide> {
    let mut sides: Vec<KernelSide> = Vec::new();
    for section in sections {
        let side = side(section, names, ports, &sides);
        sides.extend(side);
    }
    sides
}

fn side(
    mut section: Section<'_>,
    names: &mut Names,
    ports: &[Port],
    others: &[KernelSide],
) -> Option<KernelSide> {
    let port = section.required("port", "\"...\", the name of a port");
    let name =
        port.and_then(|value| Some((names.resolve(&value, &[What::Port])?.name.clone(), value)));
    let tap = section.required("tap", "\"...\", the name of a port whose device is a tap");
    let tap =
        tap.and_then(|value| Some((names.resolve(&value, &[What::Port])?.name.clone(), value)));
    if let Some((tap, value)) = &tap {
        let device = ports.iter().find(|port| port.name == *tap).map(|port| port.device.as_str());
        if !device.is_some_and(|device| device.starts_with("tap:")) {
            let problem = format!("'{tap}' is no tap");
            value.wrong(problem, "give that port a device such as \"tap:left-k\"".to_owned());
        }
        names.take(value, tap, "the kernel's side of a port");
    }
    if let Some((port, value)) = &name {
        let known = others.iter().any(|other| other.port == *port || other.tap == *port);
        if known || tap.as_ref().is_some_and(|(tap, _)| tap == port) {
            let problem = format!("'{port}' has a kernel's side, or is one");
            value.wrong(problem, "give each port one [[kernel]] section".to_owned());
        }
        if ports.iter().any(|known| known.name == *port && known.vrf.is_some()) {
            let problem = format!("'{port}' has vrf, and the kernel's side is of the default VRF");
            value.wrong(problem, "remove the port's vrf, or name another port".to_owned());
        }
    }
    let addresses = section.value("addresses").map(|value| {
        value.list().iter().filter_map(Value::parse).collect::<Vec<std::net::IpAddr>>()
    });
    let addresses = addresses.unwrap_or_default();
    let filters = section.value("filters").map(|value| {
        let items = value.list();
        if items.len() > MOST {
            value.wrong(format!("has {} filters", items.len()), format!("use at most {MOST}"));
        }
        let read = |item: &Value<'_>| Some(filter(item.section()?));
        items.iter().take(MOST).filter_map(read).collect::<Vec<_>>()
    });
    let side = KernelSide {
        addresses,
        filters: filters.unwrap_or_default(),
        others: section.flag("others", false),
        port: name.map(|(name, _)| name).unwrap_or_default(),
        tap: tap.map(|(tap, _)| tap).unwrap_or_default(),
    };
    if side.addresses.is_empty() && side.filters.is_empty() && !side.others {
        let remedy = "give addresses, filters or others = true".to_owned();
        section.wrong("addresses", "nothing would go to the kernel".to_owned(), remedy);
    }
    section.finish();
    Some(side)
}

fn filter(mut section: Section<'_>) -> KernelFilter {
    let port = |section: &mut Section<'_>, key: &'static str| {
        let number = section.value(key)?.integer(0..=65_535, "")?;
        u16::try_from(number).ok()
    };
    let filter = KernelFilter {
        ether_type: port(&mut section, "ether-type"),
        protocol: section.value("protocol").and_then(protocol),
        host: section.value("host").and_then(|value| value.parse()),
        source_port: port(&mut section, "source-port"),
        destination_port: port(&mut section, "destination-port"),
        copy: section.flag("copy", false),
    };
    section.finish();
    filter
}

fn protocol(value: Value<'_>) -> Option<String> {
    let text = value.text()?;
    let known =
        ["tcp", "udp", "icmp", "icmp6", "arp"].contains(&text) || text.parse::<u8>().is_ok();
    if !known {
        let problem = format!("'{}' is no protocol", shortened(text));
        let remedy = "use tcp, udp, icmp, icmp6, arp or a number from 0 to 255".to_owned();
        value.wrong(problem, remedy);
    }
    known.then(|| text.to_owned())
}
