//! What else runs on worker cores.

use super::housekeeping;
use crate::change::Change;
use crate::cores::CoreSet;
use crate::finding::{Finding, Group, Remedy, Topic};
use crate::machine::Machine;
use crate::setup::Setup;

const ISOLATED: Topic = Topic {
    group: Group::Cores,
    name: "isolated cores",
    why: "The scheduler puts other threads on worker cores that are not isolated. Meanwhile packets pile up: at 10 Gbit/s and \
          64 B one arrives every 67 ns, and a ring of 1,024 is full after 69 us.",
    source: "carriers' DPDK performance white paper V1.2 (128 entries fill in 8.6 us)",
};

const TICK: Topic = Topic {
    group: Group::Cores,
    name: "tick",
    why: "The scheduler's tick interrupts a worker 100 to 1,000 times a second (CONFIG_HZ), at 300 cycles or more each time. \
          With nohz_full it comes once a second while a single thread runs.",
    source: "carriers' DPDK performance white paper V1.2; kernel: timers/no_hz",
};

const HOUSEKEEPING: Topic = Topic {
    group: Group::Cores,
    name: "housekeeping core",
    why: "Core 0 runs what the kernel pins nowhere else: timers, RCU, interrupts of devices that have just appeared. It cannot be \
          isolated in full (nohz_full needs a core that keeps the time).",
    source: "kernel: timers/no_hz, admin-guide/kernel-parameters",
};

const WATCHDOG: Topic = Topic {
    group: Group::Cores,
    name: "lockup watchdogs",
    why: "On each watched core a thread wakes every 4 s, and a non-maskable interrupt comes every 10 s of busy time and takes a \
          performance counter: pauses of some microseconds.",
    source: "carriers' DPDK performance white paper V1.2; kernel: admin-guide/lockup-watchdogs",
};

const STOLEN: Topic = Topic {
    group: Group::Cores,
    name: "time taken by the host",
    why: "While the host runs something else on the core under a virtual one, a worker stands still without noticing, and rings \
          overflow.",
    source: "carriers' DPDK performance white paper V1.2 (vCPU threads pinned); proc_stat(5)",
};

/// Stolen time that nobody minds: a ten-thousandth.
const LITTLE: f64 = 1e-4;

pub(super) fn check(machine: &Machine, setup: &Setup) -> Vec<Finding> {
    let mut findings = vec![
        isolated(machine, setup),
        tick(machine, setup),
        core_zero(machine, setup),
        watchdog(machine, setup),
    ];
    if machine.is_virtual() {
        findings.push(stolen(machine));
    }
    findings
}

fn isolated(machine: &Machine, setup: &Setup) -> Finding {
    let isolated = match &machine.topology.isolated {
        Ok(isolated) => isolated,
        Err(unread) => return Finding::unread(ISOLATED, unread),
    };
    if machine.topology.cores.len() < 2 {
        return Finding::does_not_apply(ISOLATED, "a single core cannot be isolated");
    }
    let open = setup.workers.without(isolated);
    if open.is_empty() {
        return Finding::good(ISOLATED, format!("worker {} isolated", are(setup.workers.named())));
    }
    let workers = worker_list(setup, machine, isolated);
    let is = match isolated.len() {
        0 => format!("no core is isolated; workers run on {}", setup.workers.named()),
        _ => format!("{} isolated; {} with workers not", are(isolated.named()), are(open.named())),
    };
    let finding =
        Finding::could_be_better(ISOLATED, is, format!("{} isolated", setup.workers.named()));
    match workers {
        Some(list) => {
            finding.remedy(Remedy::KernelParameter(format!("isolcpus=managed_irq,domain,{list}")))
        }
        None => finding
            .remedy(Remedy::Configuration("[workers] cores: leave core 0 to the kernel".into())),
    }
}

fn tick(machine: &Machine, setup: &Setup) -> Finding {
    let quiet = match &machine.topology.nohz_full {
        Ok(quiet) => quiet,
        Err(unread) if unread.why == crate::root::Why::Missing => {
            let reason =
                "this kernel cannot stop the tick of busy cores (built without CONFIG_NO_HZ_FULL)";
            return Finding::does_not_apply(TICK, reason);
        }
        Err(unread) => return Finding::unread(TICK, unread),
    };
    let ticking = setup.workers.without(quiet);
    if ticking.is_empty() {
        return Finding::good(
            TICK,
            format!("stopped on worker {} while a worker runs alone", setup.workers.named()),
        );
    }
    let is = format!("runs on {}", ticking.named());
    let finding =
        Finding::could_be_better(TICK, is, format!("stopped on {}", setup.workers.named()));
    match worker_list(setup, machine, quiet) {
        Some(list) => {
            finding.remedy(Remedy::KernelParameter(format!("nohz_full={list} rcu_nocbs={list}")))
        }
        None => finding
            .remedy(Remedy::Configuration("[workers] cores: leave core 0 to the kernel".into())),
    }
}

fn core_zero(machine: &Machine, setup: &Setup) -> Finding {
    if machine.topology.cores.len() < 2 {
        return Finding::does_not_apply(HOUSEKEEPING, "there is one core for everything");
    }
    if setup.workers.contains(0) {
        let is = "core 0 has a worker";
        return Finding::could_be_better(HOUSEKEEPING, is, "core 0 without a worker").remedy(
            Remedy::Configuration(
                "[workers] cores: leave 0 out (millrace doctor plan proposes cores)".into(),
            ),
        );
    }
    Finding::good(HOUSEKEEPING, "core 0 has no worker")
}

fn watchdog(machine: &Machine, setup: &Setup) -> Finding {
    let watchdog = &machine.kernel.watchdog;
    let (nmi, soft, watched) = match (&watchdog.nmi, &watchdog.soft, &watchdog.cores) {
        (Err(a), Err(b), _)
            if [a, b].iter().all(|unread| unread.why == crate::root::Why::Missing) =>
        {
            return Finding::does_not_apply(WATCHDOG, "this kernel has none");
        }
        (Err(unread), Err(_), _) => return Finding::unread(WATCHDOG, unread),
        (nmi, soft, watched) => {
            (*nmi.as_ref().unwrap_or(&0), *soft.as_ref().unwrap_or(&0), watched)
        }
    };
    if nmi == 0 && soft == 0 {
        return Finding::good(WATCHDOG, "off");
    }
    let kinds = match (nmi, soft) {
        (0, _) => "threads",
        (_, 0) => "non-maskable interrupts",
        _ => "threads and non-maskable interrupts",
    };
    let watched = match watched {
        Ok(watched) => watched,
        Err(unread) => return Finding::unread(WATCHDOG, unread),
    };
    let on_workers = watched.common(&setup.workers);
    if on_workers.is_empty() {
        return Finding::good(WATCHDOG, "watch no worker core");
    }
    let others = housekeeping(machine, setup).common(watched);
    let is = format!("{kinds} watch {}", on_workers.named());
    let finding = Finding::could_be_better(WATCHDOG, is, "no worker core watched");
    if others.is_empty() {
        // An empty mask is refused by the kernel.
        return finding.remedy(Remedy::KernelParameter("nmi_watchdog=0 nosoftlockup".into()));
    }
    let change = Change::write("/proc/sys/kernel/watchdog_cpumask", &others, watched);
    finding
        .remedy(Remedy::Command(format!("sysctl kernel.watchdog_cpumask={others}")))
        .remedy(Remedy::KernelParameter("nmi_watchdog=0 nosoftlockup".into()))
        .changes([change])
}

fn stolen(machine: &Machine) -> Finding {
    let share = match &machine.topology.stolen {
        Ok(share) => *share,
        Err(unread) => return Finding::unread(STOLEN, unread),
    };
    let is = format!("{:.3} % since boot", share * 100.0);
    if share < LITTLE {
        return Finding::good(STOLEN, is);
    }
    Finding::could_be_better(STOLEN, is, "none").remedy(Remedy::Host(
        "give each virtual core a core of its own: virsh vcpupin DOMAIN VCPU CORE, and keep others off it".into(),
    ))
}

/// Worker cores for a kernel parameter, which replaces the one that is there: those that the kernel can do without, and those
/// that it has already.
fn worker_list(setup: &Setup, machine: &Machine, already: &CoreSet) -> Option<String> {
    let zero = CoreSet::from_iter([0]);
    let list = setup.workers.with(already).without(&zero);
    let others = !machine.topology.online().without(&list).is_empty();
    (others && !list.is_empty()).then(|| list.to_string())
}

/// `core 3 is`, `cores 2-5 are`.
fn are(named: String) -> String {
    if named.starts_with("cores") { format!("{named} are") } else { format!("{named} is") }
}
