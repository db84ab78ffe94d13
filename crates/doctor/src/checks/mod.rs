//! The checks: pure functions of a machine and of what it is to do.

mod clock;
mod cores;
mod devices;
mod firmware;
mod interrupts;
mod kernel;
mod limits;
mod memory;
mod nics;
mod power;
mod rings;
mod services;
mod sharing;
mod smt;

use crate::cores::CoreSet;
use crate::finding::Finding;
use crate::machine::Machine;
use crate::setup::Setup;

/// Every finding, group by group.
#[must_use]
pub fn all(machine: &Machine, setup: &Setup) -> Vec<Finding> {
    let groups = [
        cores::check,
        smt::check,
        power::check,
        memory::check,
        devices::check,
        nics::check,
        rings::check,
        interrupts::check,
        services::check,
        kernel::check,
        clock::check,
        limits::check,
        sharing::check,
        firmware::check,
    ];
    let mut findings: Vec<_> = groups.iter().flat_map(|check| check(machine, setup)).collect();
    findings.sort_by_key(|finding| finding.group);
    findings
}

/// Paths that differ by a core's number, for the shell: `/sys/.../cpu{2,3}/...`.
fn paths(folder: &str, cores: &CoreSet, file: &str) -> String {
    let numbers: Vec<_> = cores.iter().map(|core| core.to_string()).collect();
    match numbers.as_slice() {
        [number] => format!("{folder}{number}/{file}"),
        _ => format!("{folder}{{{}}}/{file}", numbers.join(",")),
    }
}

/// The cores that the kernel's own work belongs on: without workers, and without their siblings as long as there are others.
fn housekeeping(machine: &Machine, setup: &Setup) -> CoreSet {
    let without = machine.topology.online().without(&setup.workers);
    let siblings = setup
        .workers
        .iter()
        .flat_map(|core| machine.topology.siblings(core).iter().collect::<Vec<_>>());
    let quiet = without.without(&siblings.collect());
    if quiet.is_empty() { without } else { quiet }
}
