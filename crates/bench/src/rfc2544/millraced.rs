//! The configuration of `millraced` as a device under test: a router, or a flow table, between two ports.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use measure::frame::{Transport, Vary};

use super::addresses::{
    DEVICE_MACS, FOUR, NAMES, PORTS, SIX, Subnet, TESTER_MACS, network, subnets,
};
use super::scenario::{Device, Forwarding, Scenario};
use crate::failure::Failure;

/// Writes it; `core`: for its worker, if the scenario names none.
pub(super) fn configure(
    scenario: &Scenario,
    core: usize,
    sockets: &[PathBuf; 2],
    config: &Path,
) -> Result<(), Failure> {
    let Device::Millraced { cores, buffers, forwarding, routes } = &scenario.device else {
        return Ok(());
    };
    let cores = if cores.is_empty() { vec![core] } else { cores.clone() };
    let mut text = format!("[workers]\ncores = {cores:?}\npoll = \"busy\"\n");
    if let Some(buffers) = buffers {
        let _ = write!(text, "\n[memory]\nbuffers = {buffers}\n");
    }
    text += &ports(scenario, sockets, &cores, *forwarding);
    match forwarding {
        Forwarding::Bridge => {
            let _ = write!(text, "\n[[bridge]]\nname = \"switch\"\nmembers = {NAMES:?}\n");
        }
        Forwarding::Routes => {
            let file = config.with_extension("routes");
            let count = routes.unwrap_or(1);
            write_routes(scenario, count, &file)?;
            let family = if scenario.frames.layout().ipv6 { 6 } else { 4 };
            // Those of its own networks besides.
            let limit = count * 2 + 64;
            let _ = write!(
                text,
                "\n[limits]\nroutes{family} = {limit}\n\n[routes]\nfiles = [{file:?}]\n"
            );
            text += &neighbors(scenario);
        }
        Forwarding::FlowTable => {
            let flows = config.with_extension("csv");
            write_flows(scenario, &flows)?;
            let family = if scenario.frames.layout().ipv6 { 6 } else { 4 };
            let count = scenario.flows.count * 2;
            let _ = write!(
                text,
                "\n[limits]\nflows{family} = {count}\n\n[flows]\nfiles = [{flows:?}]\n"
            );
        }
    }
    Ok(std::fs::write(config, text)?)
}

/// Writes routes for each way, which share the network of its destinations evenly: what the left port gets leaves by the
/// right one.
fn write_routes(scenario: &Scenario, count: u32, path: &Path) -> Result<(), Failure> {
    let mut file = BufWriter::new(File::create(path)?);
    let length = scenario.network_length() + count.ilog2();
    let bits = if scenario.frames.layout().ipv6 { 128 } else { 32 };
    let next = subnets(scenario).into_iter().rev();
    for (Subnet { tester, .. }, [_, destination]) in next.zip(scenario.addresses()) {
        let base = network(destination, scenario.network_length());
        for number in 0..count {
            let prefix = within(base, u128::from(number) << (bits - length));
            writeln!(file, "{prefix}/{length} via {tester}")?;
        }
    }
    Ok(file.flush()?)
}

/// The tester as a neighbour on both sides: it answers no ARP.
fn neighbors(scenario: &Scenario) -> String {
    let suffix = if scenario.frames.vlan.is_some() { "-vlan" } else { "" };
    let all = NAMES.iter().zip(subnets(scenario)).zip(TESTER_MACS);
    all.map(|((name, Subnet { tester, .. }), mac)| {
        format!("\n[[neighbor]]\ninterface = \"{name}{suffix}\"\naddress = \"{tester}\"\nmac = \"{mac}\"\n")
    })
    .collect()
}

/// An address so much further on.
fn within(base: IpAddr, offset: u128) -> IpAddr {
    match base {
        IpAddr::V4(four) => Ipv4Addr::from_bits(four.to_bits().wrapping_add(offset as u32)).into(),
        IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits().wrapping_add(offset)).into(),
    }
}

/// Ports; with several workers each port's packets are spread over all of them.
fn ports(
    scenario: &Scenario,
    sockets: &[PathBuf; 2],
    cores: &[usize],
    forwarding: Forwarding,
) -> String {
    let mut text = String::new();
    for (number, name) in NAMES.iter().enumerate() {
        let (socket, mac, next) =
            (sockets[number].display(), DEVICE_MACS[number], TESTER_MACS[number]);
        let addresses = [FOUR[number], SIX[number]].map(Subnet::of_device);
        let addresses = format!("addresses = {addresses:?}\n");
        // A bridge forwards tagged frames as they are, and its members have no addresses.
        let bridged = forwarding == Forwarding::Bridge;
        let vlan = scenario.frames.vlan.filter(|_| !bridged);
        let own = if bridged || vlan.is_some() { "" } else { &addresses };
        let spread =
            if cores.len() > 1 { format!("software-rss = {cores:?}\n") } else { String::new() };
        let _ = write!(
            text,
            "\n[[port]]\nname = \"{name}\"\ndevice = \"memif:{socket},role=server\"\nmac = \"{mac}\"\n\
             next-hop-mac = \"{next}\"\n{spread}{own}"
        );
        if let Some(id) = vlan {
            let _ = write!(
                text,
                "\n[[vlan]]\nname = \"{name}-vlan\"\nport = \"{name}\"\nid = {id}\n{addresses}"
            );
        }
    }
    text
}

/// Writes an entry for each flow of each way.
fn write_flows(scenario: &Scenario, path: &Path) -> Result<(), Failure> {
    let mut file = BufWriter::new(File::create(path)?);
    let protocol = if scenario.frames.transport() == Transport::Tcp { "tcp" } else { "udp" };
    writeln!(file, "source,destination,protocol,source_port,destination_port,egress_port")?;
    for (egress, [source, destination]) in NAMES.iter().rev().zip(scenario.addresses()) {
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
    Ok(file.flush()?)
}

/// The address of a flow: its number is added to the low 32 bits, as test frames have it.
fn nth(first: IpAddr, flow: u32) -> IpAddr {
    match first {
        IpAddr::V4(four) => Ipv4Addr::from_bits(four.to_bits().wrapping_add(flow)).into(),
        IpAddr::V6(six) => {
            let (high, low) = (six.to_bits() >> 32 << 32, six.to_bits() as u32);
            Ipv6Addr::from_bits(high | u128::from(low.wrapping_add(flow))).into()
        }
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
        let at = |text: &str, flow| nth(text.parse().unwrap(), flow).to_string();
        assert_eq!(at("198.19.0.0", 65_535), "198.19.255.255");
        assert_eq!(at("2001:2::1:0:0", 65_536), "2001:2::1:1:0");
        let second = within("198.19.0.0".parse().unwrap(), 1 << 8);
        assert_eq!(second.to_string(), "198.19.1.0");
        assert_eq!(ports_of(0), PORTS);
        assert_eq!(ports_of(65_536 - u32::from(PORTS[1])), [PORTS[0] + 1, 0]);
    }
}
