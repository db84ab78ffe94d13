//! Physical cores that two threads share.

use crate::cores::CoreSet;
use crate::finding::{Finding, Group, Remedy, Topic};
use crate::machine::Machine;
use crate::setup::Setup;

const SIBLINGS: Topic = Topic {
    group: Group::Cores,
    name: "SMT siblings",
    why: "Two threads of one physical core share its execution units and caches: forwarding and transmitting on siblings gave 10.5 \
          Mpps instead of 14.5.",
    source: "a study of layer-3 forwarding on DPDK at 10 GbE (2016)",
};

pub(super) fn check(machine: &Machine, setup: &Setup) -> Vec<Finding> {
    vec![siblings(machine, setup)]
}

fn siblings(machine: &Machine, setup: &Setup) -> Finding {
    let topology = &machine.topology;
    if topology.cores.iter().all(|core| core.siblings.len() < 2) {
        let reason = match machine.is_virtual() {
            true => {
                "no siblings are shown; the host knows whether virtual cores share physical ones"
            }
            false => "every physical core has one thread",
        };
        return Finding::does_not_apply(SIBLINGS, reason);
    }
    let idle = idle_siblings(machine, setup);
    if let Some(pairs) = shared(machine, setup) {
        let is = format!("workers share physical cores: {pairs}");
        return Finding::bad(SIBLINGS, is, "one worker per physical core").remedy(
            Remedy::Configuration(
                "[workers] cores: take what millrace doctor plan proposes".into(),
            ),
        );
    }
    let open = match &topology.isolated {
        Ok(isolated) => idle.without(isolated),
        Err(unread) => return Finding::unread(SIBLINGS, unread),
    };
    if open.is_empty() {
        return Finding::good(
            SIBLINGS,
            "no two workers share a physical core, and nothing else runs on their siblings",
        );
    }
    let is = format!("the kernel may run other threads beside workers, on {}", open.named());
    let isolated = topology.isolated.clone().unwrap_or_default();
    let list = idle.with(&setup.workers).with(&isolated).without(&CoreSet::from_iter([0]));
    Finding::could_be_better(
        SIBLINGS,
        is,
        "siblings of worker cores idle: isolated like them, or SMT off",
    )
    .remedy(Remedy::KernelParameter(format!("isolcpus=managed_irq,domain,{list}")))
    .remedy(Remedy::Command("echo off > /sys/devices/system/cpu/smt/control".into()))
}

/// Siblings of worker cores without a worker.
fn idle_siblings(machine: &Machine, setup: &Setup) -> CoreSet {
    let siblings = setup.workers.iter().flat_map(|core| {
        machine.topology.core(core).into_iter().flat_map(|core| core.siblings.iter())
    });
    siblings.collect::<CoreSet>().without(&setup.workers)
}

/// Groups of workers on one physical core, as in `2 and 18`.
fn shared(machine: &Machine, setup: &Setup) -> Option<String> {
    let groups = setup.workers.iter().filter_map(|core| {
        let siblings = &machine.topology.core(core)?.siblings;
        let workers: Vec<_> = siblings.common(&setup.workers).iter().collect();
        // Each group once: at its lowest.
        let is_group = workers.len() > 1 && workers.first() == Some(&core);
        is_group.then(|| workers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and "))
    });
    let groups: Vec<_> = groups.collect();
    (!groups.is_empty()).then(|| groups.join(", "))
}
