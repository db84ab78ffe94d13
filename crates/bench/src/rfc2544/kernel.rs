//! The kernel as a router, in a network namespace of its own, between two veth pairs.

use super::addresses::{DEVICE_MACS, FOUR, NAMES, SIX, TESTER_MACS, prefix, subnets};
use super::scenario::Scenario;
use crate::failure::Failure;
use crate::namespace::{inside, make, outside};
use crate::process::Running;

/// Makes it, as root. Gives the namespace's process, with which it ends, and the tester's interfaces.
pub(super) fn start(scenario: &Scenario) -> Result<(Running, [String; 2]), Failure> {
    let namespace = make()?;
    let process = namespace.id().to_string();
    // Names of the tester's ends are at most 15 bytes.
    let ours = ["l", "r"].map(|side| format!("mb{}{side}", std::process::id()));
    for setting in ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"] {
        inside(&namespace, &["sysctl", "-q", "-w", setting])?;
    }
    for (number, (name, our)) in NAMES.iter().zip(&ours).enumerate() {
        let (mac, tester) = (DEVICE_MACS[number].to_string(), TESTER_MACS[number].to_string());
        outside(&[
            "ip", "link", "add", our, "address", &tester, "type", "veth", "peer", "name", name,
            "address", &mac, "netns", &process,
        ])?;
        // The kernel must say nothing of its own on the tester's end. One without IPv6 has no such setting.
        let _ = outside(&["sysctl", "-q", "-w", &format!("net.ipv6.conf.{our}.disable_ipv6=1")]);
        outside(&["ip", "link", "set", our, "up", "arp", "off", "mtu", "9216"])?;
        inside(&namespace, &["ip", "link", "set", name, "up", "mtu", "9216"])?;
        let interface = vlan(&namespace, scenario, name)?;
        for subnet in [FOUR[number], SIX[number]] {
            let (own, tester_address) = (subnet.of_device(), subnet.next_hop(0).to_string());
            inside(&namespace, &["ip", "address", "add", &own, "dev", &interface, "nodad"])?;
            inside(
                &namespace,
                &["ip", "neighbor", "add", &tester_address, "lladdr", &tester, "dev", &interface],
            )?;
        }
    }
    for ipv6 in scenario.frames.versions() {
        let next = subnets(ipv6).into_iter().rev();
        for (subnet, [_, destination]) in next.zip(scenario.addresses(ipv6)) {
            let (prefix, tester) = (prefix(scenario, destination), subnet.next_hop(0).to_string());
            inside(&namespace, &["ip", "route", "add", &prefix, "via", &tester])?;
        }
    }
    Ok((namespace, ours))
}

/// The interface that has the addresses: a VLAN's, if frames are tagged.
fn vlan(namespace: &Running, scenario: &Scenario, name: &str) -> Result<String, Failure> {
    let Some(id) = scenario.frames.vlan else { return Ok(name.to_owned()) };
    let (own, id) = (format!("{name}.{id}"), id.to_string());
    inside(
        namespace,
        &["ip", "link", "add", "link", name, "name", &own, "type", "vlan", "id", &id],
    )?;
    inside(namespace, &["ip", "link", "set", &own, "up"])?;
    Ok(own)
}
