//! Routes, neighbours and flows of `millraced`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use measure::frame::{Transport, Vary};

use super::DENIED;
use crate::failure::Failure;
use crate::rfc2544::addresses::{NAMES, PORTS, TESTER_MACS, network, nth, subnets};
use crate::rfc2544::scenario::{Millraced, Scenario};

/// What a line of a flow file has.
const COLUMNS: &str = "source,destination,protocol,source_port,destination_port,egress_port";

/// A route for the data path: what a port gets leaves by the other one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// As in 198.19.0.0/16.
    pub(super) prefix: String,
    pub(super) next_hops: Vec<IpAddr>,
}

/// The routes, and next hops with numbers from `first` on: routes of each way share the network of its destinations evenly.
pub(super) fn all_routes<'a>(
    scenario: &'a Scenario,
    daemon: &'a Millraced,
    first: u32,
) -> impl Iterator<Item = Route> + 'a {
    let versions = scenario.frames.versions().into_iter();
    versions.flat_map(move |ipv6| {
        let length = scenario.network_length(ipv6) + daemon.routes.ilog2();
        let bits = if ipv6 { 128 } else { 32 };
        let ways = subnets(ipv6).into_iter().rev().zip(scenario.addresses(ipv6));
        ways.flat_map(move |(next, [_, destination])| {
            let base = network(destination, scenario.network_length(ipv6));
            (0..daemon.routes).map(move |number| {
                let prefix = within(base, u128::from(number) << (bits - length));
                let next_hops = (first..first + daemon.next_hops).map(|hop| next.next_hop(hop));
                Route { prefix: format!("{prefix}/{length}"), next_hops: next_hops.collect() }
            })
        })
    })
}

/// Writes the routes, and gives what the configuration says of them, of neighbours and of an access list.
pub(super) fn routes(
    scenario: &Scenario,
    daemon: &Millraced,
    config: &Path,
) -> Result<String, Failure> {
    let path = config.with_extension("routes");
    let mut file = BufWriter::new(File::create(&path)?);
    for Route { prefix, next_hops } in all_routes(scenario, daemon, 0) {
        let next_hops: Vec<String> = next_hops.iter().map(ToString::to_string).collect();
        writeln!(file, "{prefix} via {}", next_hops.join(" "))?;
    }
    file.flush()?;
    let mut text = String::from("\n[limits]\n");
    for ipv6 in scenario.frames.versions() {
        let family = if ipv6 { 6 } else { 4 };
        // Those of its own networks besides.
        let _ = writeln!(text, "routes{family} = {}", daemon.routes * 2 + 64);
        if daemon.acl > 0 {
            let _ = writeln!(text, "flows{family} = {}", daemon.acl * 2);
        }
    }
    let _ = write!(text, "\n[routes]\nfiles = [{path:?}]\n");
    text += &neighbors(scenario, daemon);
    if daemon.acl > 0 {
        let path = config.with_extension("csv");
        write_access_list(scenario, daemon.acl, &path)?;
        let _ = write!(
            text,
            "\n[flows]\nfiles = [{path:?}]\n\n[[port]]\nname = \"{DENIED}\"\ndevice = \"null,no-rx=1\"\nnext-hop-mac = \"{}\"\n",
            TESTER_MACS[0]
        );
    }
    Ok(text)
}

/// The tester's addresses as neighbours on both sides: what is measured must not depend on when they are asked for.
fn neighbors(scenario: &Scenario, daemon: &Millraced) -> String {
    let suffix = if scenario.frames.vlan.is_some() { "-vlan" } else { "" };
    // While routes change there are two sets of next hops, of which one begins with the second.
    let count = daemon.next_hops + u32::from(daemon.updates > 0);
    let mut text = String::new();
    for ipv6 in scenario.frames.versions() {
        for ((name, subnet), mac) in NAMES.iter().zip(subnets(ipv6)).zip(TESTER_MACS) {
            for hop in 0..count {
                let address = subnet.next_hop(hop);
                let _ = write!(
                    text,
                    "\n[[neighbor]]\ninterface = \"{name}{suffix}\"\naddress = \"{address}\"\nmac = \"{mac}\"\n"
                );
            }
        }
    }
    text
}

/// Writes entries for flows of the other protocol: each test frame is looked up among them, and none is found.
fn write_access_list(scenario: &Scenario, count: u32, path: &Path) -> Result<(), Failure> {
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "{COLUMNS}")?;
    let protocol = if scenario.frames.transport() == Transport::Tcp { "udp" } else { "tcp" };
    let [source_port, destination_port] = PORTS;
    for ipv6 in scenario.frames.versions() {
        for [source, destination] in scenario.addresses(ipv6) {
            for entry in 0..count {
                let to = nth(destination, entry);
                writeln!(
                    file,
                    "{source},{to},{protocol},{source_port},{destination_port},{DENIED}"
                )?;
            }
        }
    }
    Ok(file.flush()?)
}

/// Writes an entry for each flow of each way, and gives what the configuration says of them.
pub(super) fn flows(scenario: &Scenario, config: &Path) -> Result<String, Failure> {
    let path = config.with_extension("csv");
    let mut file = BufWriter::new(File::create(&path)?);
    let protocol = if scenario.frames.transport() == Transport::Tcp { "tcp" } else { "udp" };
    writeln!(file, "{COLUMNS}")?;
    let mut text = String::from("\n[limits]\n");
    for ipv6 in scenario.frames.versions() {
        let family = if ipv6 { 6 } else { 4 };
        let _ = writeln!(text, "flows{family} = {}", scenario.flows.count * 2);
        for (egress, [source, destination]) in NAMES.iter().rev().zip(scenario.addresses(ipv6)) {
            for flow in 0..scenario.flows.count {
                let (mut from, mut to, mut both) = (source, destination, PORTS);
                match scenario.flows.vary() {
                    Vary::Source => from = nth(source, flow),
                    Vary::Destination => to = nth(destination, flow),
                    Vary::Ports => both = ports_of(flow),
                }
                let [source_port, destination_port] = both;
                writeln!(file, "{from},{to},{protocol},{source_port},{destination_port},{egress}")?;
            }
        }
    }
    file.flush()?;
    let _ = write!(text, "\n[flows]\nfiles = [{path:?}]\n");
    Ok(text)
}

/// An address so much further on.
fn within(base: IpAddr, offset: u128) -> IpAddr {
    match base {
        IpAddr::V4(four) => Ipv4Addr::from_bits(four.to_bits().wrapping_add(offset as u32)).into(),
        IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits().wrapping_add(offset)).into(),
    }
}

/// Source and destination port of a flow, whose number is added to both as one number of 32 bits.
fn ports_of(flow: u32) -> [u16; 2] {
    let [source, destination] = PORTS;
    let both = (u32::from(source) << 16 | u32::from(destination)).wrapping_add(flow);
    [(both >> 16) as u16, both as u16]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_those_of_the_frames() {
        let second = within("198.19.0.0".parse().unwrap(), 1 << 8);
        assert_eq!(second.to_string(), "198.19.1.0");
        assert_eq!(ports_of(0), PORTS);
        assert_eq!(ports_of(65_536 - u32::from(PORTS[1])), [PORTS[0] + 1, 0]);
    }
}
