//! Rings of descriptors between network cards and workers.

use crate::finding::{Finding, Group, Remedy, Topic};
use crate::machine::Machine;
use crate::setup::{Port, Setup};

/// Where loss matters.
const PLENTY: u16 = 2_048;
/// The daemon's default.
const USUAL: u16 = 1_024;

const RINGS: Topic = Topic {
    group: Group::Ports,
    name: "ring sizes",
    why: "A ring holds what arrives while its worker does something else: at 14.88 Mpps, 128 entries fill in 8.6 us, 1,024 in 69 \
          and 2,048 in 138. Larger rings touch more memory than the cache share that cards write into (DDIO).",
    source: "carriers' DPDK performance white paper V1.2 (2,048 where loss matters)",
};

pub(super) fn check(_: &Machine, setup: &Setup) -> Vec<Finding> {
    let on_cards: Vec<_> = setup.ports.iter().filter(|port| port.kind == "pci").collect();
    if on_cards.is_empty() {
        let reason = match setup.ports.is_empty() {
            true => "no port is known; run it beside the daemon, or with --config",
            false => "no port drives a network card itself",
        };
        return vec![Finding::does_not_apply(RINGS, reason)];
    }
    on_cards.into_iter().map(of_port).collect()
}

fn of_port(port: &Port) -> Finding {
    let (receive, transmit) = (port.rx_descriptors, port.tx_descriptors);
    let is = format!("{receive} descriptors to receive, {transmit} to transmit");
    let better = format!("{PLENTY} where loss matters");
    let found = match receive.min(transmit) {
        least if least >= PLENTY => Finding::good(RINGS, is),
        least if least >= USUAL => Finding::choice(RINGS, is, better),
        _ => Finding::could_be_better(RINGS, is, better),
    };
    let found = found.about(format!("port {}", port.name));
    match receive.min(transmit) {
        least if least >= PLENTY => found,
        _ => found.remedy(Remedy::Configuration(format!(
            "port {}: rx-descriptors = {}, tx-descriptors = {}",
            port.name,
            receive.max(PLENTY),
            transmit.max(PLENTY)
        ))),
    }
}
