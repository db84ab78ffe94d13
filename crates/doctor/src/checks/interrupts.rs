//! Interrupts on worker cores.

use super::housekeeping;
use crate::change::Change;
use crate::finding::{Finding, Group, Remedy, Topic};
use crate::machine::{Interrupt, Machine};
use crate::setup::Setup;

/// How many are named.
const SHOWN: usize = 6;

const AFFINITY: Topic = Topic {
    group: Group::Interrupts,
    name: "IRQ affinity",
    why: "An interrupt costs the worker on its core 300 cycles or more, as much as several packets, and what it touches evicts the \
          worker's tables from the cache.",
    source: "carriers' DPDK performance white paper V1.2",
};

pub(super) fn check(machine: &Machine, setup: &Setup) -> Vec<Finding> {
    vec![affinity(machine, setup)]
}

fn affinity(machine: &Machine, setup: &Setup) -> Finding {
    let interrupts = match &machine.interrupts {
        Ok(interrupts) => interrupts,
        Err(unread) => return Finding::unread(AFFINITY, unread),
    };
    let others = housekeeping(machine, setup);
    if others.is_empty() {
        return Finding::does_not_apply(
            AFFINITY,
            "every core has a worker, so interrupts have no other place",
        );
    }
    let there = |irq: &&Interrupt| !irq.effective.common(&setup.workers).is_empty();
    let disturbing: Vec<_> = interrupts.iter().filter(there).collect();
    if disturbing.is_empty() {
        return Finding::good(
            AFFINITY,
            format!("none of {} goes to a worker core", interrupts.len()),
        );
    }
    let named = |irq: &&Interrupt| format!("{} ({})", irq.number, irq.names.join(", "));
    let mut names: Vec<_> = disturbing.iter().take(SHOWN).map(named).collect();
    if disturbing.len() > SHOWN {
        names.push("...".to_owned());
    }
    let is = format!(
        "{} of {} go to worker cores: {}",
        disturbing.len(),
        interrupts.len(),
        names.join(", ")
    );
    let (managed, movable): (Vec<&Interrupt>, Vec<_>) =
        disturbing.into_iter().partition(|irq| irq.managed);
    // One that has been moved goes on where it was until it comes again.
    let to_move = movable.iter().filter(|irq| irq.allowed != others);
    let changes: Vec<_> =
        to_move.map(|irq| Change::write(irq.path(), &others, &irq.allowed)).collect();
    let better = format!("all of them on {}", others.named());
    let mut finding = Finding::could_be_better(AFFINITY, is, better).changes(changes);
    if !movable.is_empty() {
        let command = format!(
            "for irq in {}; do echo {others} > /proc/irq/$irq/smp_affinity_list; done",
            numbers(&movable)
        );
        finding = finding
            .remedy(Remedy::Command(command))
            .remedy(Remedy::KernelParameter(format!("irqaffinity={others}")));
    }
    if !managed.is_empty() {
        finding = finding.remedy(Remedy::Manual(format!(
            "isolate the worker cores with isolcpus=managed_irq: only that keeps {} off them, whose cores the kernel manages itself",
            numbers(&managed)
        )));
    }
    finding
}

fn numbers(interrupts: &[&Interrupt]) -> String {
    let numbers: Vec<_> = interrupts.iter().map(|irq| irq.number.to_string()).collect();
    numbers.join(" ")
}
