//! Whether the devices of ports are there.

use crate::finding::{Finding, Group, Remedy, Topic};
use crate::machine::Machine;
use crate::setup::{Port, Setup};

const DEVICE: Topic = Topic {
    group: Group::Ports,
    name: "device",
    why: "A port whose card or interface is not there cannot be opened.",
    source: "docs/forward.md, [[port]]",
};

pub(super) fn check(machine: &Machine, setup: &Setup) -> Vec<Finding> {
    setup.ports.iter().filter_map(|port| of(machine, port)).collect()
}

/// `None`: its kind needs nothing that is there before.
fn of(machine: &Machine, port: &Port) -> Option<Finding> {
    let found = match port.kind.as_str() {
        "pci" => card(machine, port),
        "afxdp" | "afpacket" => interface(machine, port),
        _ => return None,
    };
    Some(found.about(format!("port {}", port.name)))
}

fn card(machine: &Machine, port: &Port) -> Finding {
    let address = port.argument.as_str();
    match &machine.devices {
        Err(unread) => Finding::unread(DEVICE, unread),
        Ok(all) if all.iter().any(|there| there.eq_ignore_ascii_case(address)) => {
            Finding::good(DEVICE, format!("{address} is on PCI"))
        }
        Ok(_) => {
            let nics = machine.nics.as_deref().unwrap_or_default();
            let cards: Vec<_> = nics.iter().map(|nic| format!("pci:{}", nic.address)).collect();
            missing(format!("there is no {address} on PCI"), &cards, "a network card")
                .remedy(Remedy::Command("echo 1 > /sys/bus/pci/rescan".into()))
        }
    }
}

fn interface(machine: &Machine, port: &Port) -> Finding {
    let name = &port.argument;
    match &machine.interfaces {
        Err(unread) => Finding::unread(DEVICE, unread),
        Ok(all) if all.contains(name) => Finding::good(DEVICE, format!("there is {name}")),
        Ok(all) => {
            let others = all.iter().filter(|other| *other != "lo");
            let others: Vec<_> = others.map(|other| format!("{}:{other}", port.kind)).collect();
            missing(format!("there is no interface {name}"), &others, "an interface")
        }
    }
}

/// `there`: what could be in its place.
fn missing(is: String, there: &[String], what: &str) -> Finding {
    let better = if there.is_empty() { what.to_owned() } else { there.join(", ") };
    Finding::bad(DEVICE, is, better)
        .remedy(Remedy::Configuration("device of the port: one that is there".into()))
}
