//! The kernel as a router, in a network namespace of its own, between two veth pairs.

use std::net::IpAddr;

use wire::MacAddr;

use super::addresses::{DEVICE_MACS, TESTER_MACS, prefix};
use super::scenario::Scenario;
use crate::failure::Failure;
use crate::namespace::{inside, make, outside};
use crate::process::Running;

/// Its interfaces.
const NAMES: [&str; 2] = ["left", "right"];
/// Its addresses on both sides, the tester's, and the length of the networks.
const FOUR: [[&str; 2]; 2] = [["192.0.2.1", "192.0.2.2"], ["192.0.2.129", "192.0.2.130"]];
const SIX: [[&str; 2]; 2] =
    [["2001:db8:1::1", "2001:db8:1::2"], ["2001:db8:2::1", "2001:db8:2::2"]];

/// Makes it. Gives the namespace's process, with which it ends, and the tester's interfaces.
pub(super) fn start(scenario: &Scenario) -> Result<(Running, [String; 2]), Failure> {
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::UnderTest("making network namespaces needs root".into()));
    }
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
        outside(&["ip", "link", "set", our, "up", "arp", "off", "mtu", "9200"])?;
        inside(&namespace, &["ip", "link", "set", name, "up", "mtu", "9200"])?;
        let interface = vlan(&namespace, scenario, name)?;
        for (addresses, length) in [(FOUR[number], 25), (SIX[number], 64)] {
            let [own, tester] = addresses;
            let own = format!("{own}/{length}");
            inside(&namespace, &["ip", "address", "add", &own, "dev", &interface, "nodad"])?;
            inside(
                &namespace,
                &["ip", "neighbor", "add", tester, "lladdr", &mac_of(number), "dev", &interface],
            )?;
        }
    }
    for (number, [_, destination]) in scenario.addresses().into_iter().enumerate() {
        // What the left port sends leaves by the right one.
        let via = [1, 0][number];
        let gateway = match destination {
            IpAddr::V4(_) => FOUR[via][1],
            IpAddr::V6(_) => SIX[via][1],
        };
        inside(
            &namespace,
            &["ip", "route", "add", &prefix(scenario, destination), "via", gateway],
        )?;
    }
    Ok((namespace, ours))
}

fn mac_of(tester: usize) -> String {
    TESTER_MACS.get(tester).map(MacAddr::to_string).unwrap_or_default()
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
