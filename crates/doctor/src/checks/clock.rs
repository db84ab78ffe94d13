//! The clock.

use crate::change::Change;
use crate::finding::{Finding, Group, Remedy, Topic};
use crate::machine::Machine;
use crate::setup::Setup;

const FILE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Sources that programs read without entering the kernel.
const IN_USER_SPACE: [&str; 4] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

const CLOCK: Topic = Topic {
    group: Group::Kernel,
    name: "clock source",
    why: "Workers measure time by the time-stamp counter, and everything else asks the kernel. With 'tsc' that takes some tens of \
          nanoseconds in user space; with 'hpet' or 'acpi_pm' it is a system call and a slow read of a device.",
    source: "kernel: timers/timekeeping; vdso(7)",
};

pub(super) fn check(machine: &Machine, _: &Setup) -> Vec<Finding> {
    vec![clock(machine)]
}

fn clock(machine: &Machine) -> Finding {
    let clock = match &machine.kernel.clock {
        Ok(clock) => clock,
        Err(unread) => return Finding::unread(CLOCK, unread),
    };
    let current = clock.current.as_str();
    if IN_USER_SPACE.contains(&current) {
        return Finding::good(CLOCK, format!("'{current}'"));
    }
    let found = Finding::bad(CLOCK, format!("'{current}'"), "'tsc'");
    if clock.available.iter().any(|source| source == "tsc") {
        return found
            .remedy(Remedy::Command(format!("echo tsc > {FILE}")))
            .remedy(Remedy::KernelParameter("clocksource=tsc".into()))
            .changes([Change::write(FILE, "tsc", current)]);
    }
    if !machine.kernel.steady_tsc {
        return found.remedy(Remedy::Manual("look in the kernel's log why it does not trust the TSC: this processor's may change its rate".into()));
    }
    found
        .remedy(Remedy::Manual(
            "look in the kernel's log why it gave the TSC up (dmesg | grep -i tsc); update BIOS"
                .into(),
        ))
        .remedy(Remedy::KernelParameter("tsc=reliable".into()))
}
