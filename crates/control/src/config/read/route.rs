//! Reads static routes and neighbours.

use std::collections::HashMap;
use std::net::IpAddr;

use super::report::Report;
use super::section::{Section, Value};
use crate::config::vrf::named;
use crate::config::{MOST_DISTANCE, NextHop, Route, RouteTarget, Source, StaticNeighbor};
use crate::net::{Prefix, shortened};

/// Something with the section that it was read from.
pub(super) type Placed<'a, T> = (T, Section<'a>);

/// Reads the routes; whether they fit is checked when all interfaces are known.
pub(super) fn routes<'a>(
    sections: Vec<Section<'a>>,
    report: &Report,
    most: [u32; 2],
) -> Vec<Placed<'a, Route>> {
    let mut lines: HashMap<(Option<String>, Prefix, u8), usize> = HashMap::new();
    let mut counts = [0; 2];
    let mut routes = Vec::new();
    for mut section in sections {
        let vrf = named(text_of(&mut section, "vrf"));
        let prefix = prefix(&mut section);
        let target = target(&mut section);
        let furthest = u64::from(MOST_DISTANCE);
        let distance = section.number("distance", Source::STATIC.distance(), 0..=furthest, "");
        let metric = section.number("metric", 0, 0..=u64::from(u32::MAX), "");
        section.finish_reading();
        let (Some(prefix), Some(target)) = (prefix, target) else { continue };
        let line = report.line(section.at());
        if let Some(first) = lines.insert((vrf.clone(), prefix, distance), line) {
            let problem = format!("{prefix} is the route on line {first} too");
            let remedy = "give one of them another distance; up to 64 next hops go into one via";
            section.wrong("prefix", problem, remedy.to_owned());
            continue;
        }
        let family = usize::from(prefix.address().is_ipv6());
        let (count, most, key) = match family {
            0 => (&mut counts[0], most[0], "routes4"),
            _ => (&mut counts[1], most[1], "routes6"),
        };
        *count += 1;
        if *count == most.saturating_add(1) {
            let problem = format!("is beyond the {most} routes of limits.{key}");
            section.wrong("prefix", problem, "raise the limit, or remove routes".to_owned());
        }
        routes.push((Route { vrf, distance, metric, ..Route::new(prefix, target) }, section));
    }
    routes
}

/// `prefix = "10.0.0.0/8"`, or `prefix = "10.0.0.0"` with `mask = "255.0.0.0"`.
fn prefix(section: &mut Section<'_>) -> Option<Prefix> {
    let mask = section.value("mask");
    let value = section.required("prefix", "\"ADDRESS/LENGTH\"")?;
    let Some(mask) = mask else { return value.parse() };
    let text = value.text()?;
    let Ok(address) = text.parse::<IpAddr>() else {
        let problem = format!("'{}' is not an address to go with the mask", shortened(text));
        value.wrong(problem, "write it without a length, as in 10.0.0.0".to_owned());
        return None;
    };
    let mask: IpAddr = address_of(&mask)?;
    Prefix::with_mask(address, mask).map_err(|error| section.wrong_text("mask", &error)).ok()
}

fn target(section: &mut Section<'_>) -> Option<RouteTarget> {
    let via = section.value("via");
    let port = section.value("port");
    let lookup = section.value("lookup");
    let kind = section.value("kind");
    match (via, port, lookup, kind) {
        (Some(via), None, None, None) => next_hops(&via).map(RouteTarget::Via),
        (None, Some(port), None, None) => {
            port.text().map(|name| RouteTarget::Port(name.to_owned()))
        }
        (None, None, Some(vrf), None) => {
            vrf.text().map(|name| RouteTarget::Lookup(name.to_owned()))
        }
        (None, None, None, Some(kind)) => {
            let words = [("blackhole", 0), ("unreachable", 1), ("local", 2)];
            Some(match kind.word(&words)? {
                0 => RouteTarget::Blackhole,
                1 => RouteTarget::Unreachable,
                _ => RouteTarget::Local,
            })
        }
        (None, None, None, None) => {
            let remedy =
                "add via = \"ADDRESS\", port = \"NAME\", lookup = \"VRF\" or kind = \"blackhole\"";
            section.wrong("via", "is missing".to_owned(), remedy.to_owned());
            None
        }
        _ => {
            let keys = ["via", "port", "lookup"];
            let key = keys.into_iter().find(|key| section.has(key)).unwrap_or("kind");
            let problem = "stands beside another target".to_owned();
            section.wrong(
                key,
                problem,
                "keep exactly one of via, port, lookup and kind".to_owned(),
            );
            None
        }
    }
}

/// The text of a key, where it is there.
fn text_of(section: &mut Section<'_>, key: &'static str) -> Option<String> {
    Some(section.value(key)?.text()?.to_owned())
}

/// One address, or a list of addresses and tables.
fn next_hops(value: &Value<'_>) -> Option<Vec<NextHop>> {
    if value.is_text() {
        return address_of(value).map(|address| vec![NextHop::new(address)]);
    }
    if !value.is_list() {
        let remedy = "use \"ADDRESS\" or a list of { address = \"...\", weight = 1 }";
        value.wrong("is not a next hop".to_owned(), remedy.to_owned());
        return None;
    }
    let items = value.list();
    let count = items.len();
    let hops: Vec<_> = items.iter().filter_map(next_hop).collect();
    (hops.len() == count).then_some(hops)
}

fn next_hop(value: &Value<'_>) -> Option<NextHop> {
    if value.is_text() {
        return address_of(value).map(NextHop::new);
    }
    let mut section = value.section()?;
    let address = section.required("address", "\"ADDRESS\"").and_then(|v| address_of(&v));
    let interface = section.value("interface").and_then(|v| v.text());
    let weight = section.number("weight", 1, 1..=64, "");
    section.finish();
    Some(NextHop { address: address?, interface: interface.map(str::to_owned), weight })
}

fn address_of(value: &Value<'_>) -> Option<IpAddr> {
    let text = value.text()?;
    let address = text.parse().ok();
    if address.is_none() {
        let problem = format!("'{}' is not an address", shortened(text));
        value.wrong(problem, "write one as in 192.0.2.2 or 2001:db8::2".to_owned());
    }
    address
}

/// Reads the static neighbours.
pub(super) fn neighbors(sections: Vec<Section<'_>>) -> Vec<Placed<'_, StaticNeighbor>> {
    let mut neighbors: Vec<Placed<'_, StaticNeighbor>> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for mut section in sections {
        let interface = section.required("interface", "\"NAME\"").and_then(|v| v.text());
        let address = section.required("address", "\"ADDRESS\"").and_then(|v| address_of(&v));
        let mac = section.required("mac", "\"02:00:00:00:00:09\"").and_then(|v| v.parse());
        section.finish_reading();
        let (Some(interface), Some(address), Some(mac)) = (interface, address, mac) else {
            continue;
        };
        if known.insert((interface, address)) {
            let interface = interface.to_owned();
            neighbors.push((StaticNeighbor { interface, address, mac }, section));
        } else {
            let problem = format!("{address} on '{interface}' is given twice");
            section.wrong("address", problem, "give each neighbour once".to_owned());
        }
    }
    neighbors
}
