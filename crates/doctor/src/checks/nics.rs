//! Network cards: their NUMA node and their slot.

use crate::cores::CoreSet;
use crate::finding::{Finding, Group, Remedy, Topic};
use crate::machine::{Machine, Nic};
use crate::setup::{Port, Setup};

/// Bytes that a frame of 64 B takes on the wire, with preamble and gap, and on PCIe, with its descriptor written back.
const WIRE: f64 = 84.0;
const BUS: f64 = 192.0;

/// Share of a PCIe link that is left for data: headers of 24 to 28 bytes go with 256 bytes.
const PAYLOAD: f64 = 0.9;

const NODE: Topic = Topic {
    group: Group::Ports,
    name: "NUMA node of the card",
    why: "A core of another socket fetches each packet across the link between sockets: zero-loss rate at 66 B fell from 93 % of \
          line rate to 65 with the core there, to 77 with the card there, and to 5 % for a virtual switch.",
    source: "carriers' DPDK performance white paper V1.2",
};

const SLOT: Topic = Topic {
    group: Group::Ports,
    name: "PCIe link",
    why: "Every packet crosses the slot once each way. A frame of 64 B costs 192 B there (data, header, descriptor), so small \
          frames need 2.3 times the port's rate.",
    source: "a study of DMA with minimum overhead; carriers' DPDK performance white paper V1.2 (enough lanes)",
};

pub(super) fn check(machine: &Machine, setup: &Setup) -> Vec<Finding> {
    let nics = match &machine.nics {
        Ok(nics) => nics,
        Err(unread) => return vec![Finding::unread(NODE, unread), Finding::unread(SLOT, unread)],
    };
    let used: Vec<_> = used(machine, setup).collect();
    if used.is_empty() {
        let reason = match setup.ports.is_empty() {
            true => "there is no network card on PCI",
            false => "no port is on a network card of PCI",
        };
        return [NODE, SLOT].map(|topic| Finding::does_not_apply(topic, reason)).into();
    }
    let name = |nic: &Nic, port: Option<&Port>| match port {
        Some(port) => format!("port {} ({})", port.name, nic.name()),
        None => nic.name(),
    };
    let both = |(nic, port): &(&Nic, Option<&Port>)| {
        [node(machine, setup, nic, *port), slot(machine, setup, nics, nic)]
            .map(|f| f.about(name(nic, *port)))
    };
    used.iter().flat_map(both).collect()
}

/// Cards that carry ports; all, while no port is known.
pub(super) fn used<'a>(
    machine: &'a Machine,
    setup: &'a Setup,
) -> impl Iterator<Item = (&'a Nic, Option<&'a Port>)> {
    let nics = machine.nics.as_deref().unwrap_or_default();
    nics.iter().filter_map(|nic| {
        let port = setup.ports.iter().find(|port| port.is_on(nic));
        (port.is_some() || setup.ports.is_empty()).then_some((nic, port))
    })
}

fn node(machine: &Machine, setup: &Setup, nic: &Nic, port: Option<&Port>) -> Finding {
    if machine.topology.nodes.len() < 2 {
        return Finding::does_not_apply(NODE, "there is one node");
    }
    let Some(node) = nic.node else {
        return Finding::cannot_be_told(
            NODE,
            format!("the firmware does not say to which node {} belongs", nic.address),
        );
    };
    let cores = port.map_or(&setup.workers, |port| &port.cores);
    let far: CoreSet =
        cores.iter().filter(|core| machine.topology.node_of(*core) != node).collect();
    if far.is_empty() {
        return Finding::good(NODE, format!("node {node}, like {}", cores.named()));
    }
    let is = format!(
        "node {node}; {} on another",
        if far.len() > 1 { format!("{} are", far.named()) } else { format!("{} is", far.named()) }
    );
    let here = machine.topology.nodes.iter().find(|(number, _)| *number == node);
    let here = here.map(|(_, cores)| cores.named()).unwrap_or_default();
    let better = format!("its queues on node {node}: {here}");
    let remedy = Remedy::Configuration(
        "[workers] cores, and queues of the port: take what millrace doctor plan proposes".into(),
    );
    // Without a port on it, nobody knows yet which worker will poll it.
    let found = if port.is_some() { Finding::bad } else { Finding::could_be_better };
    found(NODE, is, better).remedy(remedy)
}

fn slot(machine: &Machine, setup: &Setup, nics: &[Nic], nic: &Nic) -> Finding {
    if nic.is_virtual {
        return Finding::does_not_apply(SLOT, "a virtual function uses the link of its card");
    }
    let Some(link) = nic.link else {
        let reason = format!("{} shows no PCIe link", nic.address);
        return match machine.is_virtual() {
            true => Finding::does_not_apply(SLOT, reason)
                .remedy(Remedy::Host("look at the card's link there".into())),
            false => Finding::cannot_be_told(SLOT, reason),
        };
    };
    let speed = |nic: &Nic| {
        let port = setup.ports.iter().find(|port| port.is_on(nic));
        nic.speed.or(port.and_then(|port| port.speed)).filter(|speed| *speed > 0)
    };
    let functions = nics.iter().filter(|other| other.slot() == nic.slot() && !other.is_virtual);
    let rate = functions.filter_map(speed).map(f64::from).sum::<f64>() / 1_000.0;
    let width = format!(
        "{} lanes at {} GT/s, {:.0} Gbit/s each way",
        link.width,
        link.speed,
        link.gigabits()
    );
    let more = nic.capable.filter(|most| most.gigabits() > link.gigabits() * 1.01);
    let better = match more {
        Some(most) => format!("{} lanes at {} GT/s, as the card can", most.width, most.speed),
        None => "a slot, or a card, with more lanes".to_owned(),
    };
    let reseat = Remedy::Manual("look for a slot with all lanes wired (lspci -vv: LnkCap, LnkSta), and at the slot's speed in BIOS".into());
    if rate > link.gigabits() * PAYLOAD {
        let is = format!("{width}; ports of {rate:.0} Gbit/s");
        return Finding::bad(SLOT, is, better).remedy(reseat);
    }
    if more.is_some() {
        return Finding::could_be_better(SLOT, width, better).remedy(reseat);
    }
    if rate == 0.0 {
        return Finding::cannot_be_told(
            SLOT,
            format!(
                "{width}; the port's speed is not known while the kernel does not drive it and no daemon runs"
            ),
        );
    }
    let small = (link.gigabits() / (rate * BUS / WIRE) * 100.0).min(100.0);
    Finding::good(
        SLOT,
        format!("{width}; ports of {rate:.0} Gbit/s: enough for {small:.0} % of line rate at 64 B"),
    )
}
