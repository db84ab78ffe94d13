//! What BIOS decides and the kernel does not show.

use crate::finding::{Finding, Group, Remedy, Topic};
use crate::machine::{Machine, Vendor};
use crate::setup::Setup;

const SOURCE: &str = "carriers' DPDK performance white paper V1.2";

const PREFETCHERS: Topic = Topic {
    group: Group::Firmware,
    name: "hardware prefetchers",
    why: "They bring the next cache lines of a packet and of a vector's arrays ahead of use.",
    source: SOURCE,
};

const DDIO: Topic = Topic {
    group: Group::Firmware,
    name: "DDIO",
    why: "Cards write packets straight into the last-level cache, so that the worker's first look does not wait for memory.",
    source: SOURCE,
};

const CHANNELS: Topic = Topic {
    group: Group::Firmware,
    name: "memory channels",
    why: "Modules in all channels share the load of packets and tables. One to four channels made no difference at 10 Gbit/s; with \
          large tables and faster ports they do.",
    source: "carriers' DPDK performance white paper V1.2; a study of layer-3 forwarding on DPDK at 10 GbE (2016)",
};

pub(super) fn check(machine: &Machine, _: &Setup) -> Vec<Finding> {
    let mut topics = vec![(
        PREFETCHERS,
        "the kernel does not show them (they are in model-specific registers)",
        "on",
        "hardware and adjacent-line prefetchers: on",
    )];
    if machine.kernel.vendor == Vendor::Intel {
        topics.push((DDIO, "the kernel does not show it", "on", "Intel DDIO: auto, or on"));
    }
    let mut findings: Vec<_> = topics.into_iter().map(|topic| hidden(machine, topic)).collect();
    findings.push(match &machine.memory.channels {
        Ok(channels) => Finding::good(
            CHANNELS,
            format!("{channels} have modules; compare with what the board offers"),
        ),
        Err(_) => hidden(
            machine,
            (
                CHANNELS,
                "no memory controller reports them (EDAC)",
                "modules in all channels of each socket",
                "see dmidecode --type memory for which slots are filled",
            ),
        ),
    });
    findings
}

fn hidden(
    machine: &Machine,
    (topic, reason, better, setting): (Topic, &str, &str, &str),
) -> Finding {
    if machine.is_virtual() {
        return Finding::does_not_apply(topic, "the host's BIOS decides")
            .remedy(Remedy::Host(setting.into()));
    }
    Finding::cannot_be_told(topic, reason).better(better).remedy(Remedy::Firmware(setting.into()))
}
