//! Services that disturb.

use crate::change::Change;
use crate::finding::{Finding, Group, Remedy, Topic};
use crate::machine::{Machine, Service};
use crate::setup::Setup;

const SOURCE: &str = "carriers' DPDK performance white paper V1.2 (services off)";

const SERVICES: Topic = Topic {
    group: Group::Services,
    name: "service",
    why: "Services that move interrupts, scan memory or set frequencies undo what is set here; others take cores and memory \
          bandwidth.",
    source: SOURCE,
};

const CRASH: Topic = Topic {
    group: Group::Services,
    name: "crash kernel",
    why: "kdump keeps memory reserved for a second kernel (crashkernel=), which is missing for hugepages; it takes no time.",
    source: SOURCE,
};

pub(super) fn check(machine: &Machine, _: &Setup) -> Vec<Finding> {
    let mut findings: Vec<_> = match &machine.services {
        Ok(services) if services.is_empty() => {
            vec![
                Finding::good(SERVICES, "none of those runs that are known to disturb")
                    .about("all"),
            ]
        }
        Ok(services) => services.iter().map(running).collect(),
        Err(unread) => vec![Finding::unread(SERVICES, unread).about("all")],
    };
    if machine.kernel.crash_kernel == Ok(1) {
        let command = Remedy::Command("systemctl disable --now kdump kdump-tools".into());
        findings
            .push(Finding::choice(CRASH, "loaded", "none where memory is short").remedy(command));
    }
    findings
}

fn running(service: &Service) -> Finding {
    let known = service.known;
    let topic = Topic { why: known.why, ..SERVICES };
    let command = match known.unit {
        "graphical.target" => {
            "systemctl set-default multi-user.target && systemctl isolate multi-user.target"
                .to_owned()
        }
        unit => format!("systemctl disable --now {unit}"),
    };
    let found = match known.harmless {
        true => Finding::could_be_better(topic, "runs", "stopped"),
        false => Finding::choice(topic, "runs", "stopped on machines that only forward"),
    };
    let found = found.about(known.unit).remedy(Remedy::Command(command));
    let stop =
        (known.harmless && service.by_systemd).then(|| Change::Stop { unit: known.unit.into() });
    found.changes(stop)
}
