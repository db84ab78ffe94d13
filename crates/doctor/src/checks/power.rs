//! Frequency, turbo, idle states.

use super::paths;
use crate::change::Change;
use crate::cores::CoreSet;
use crate::finding::{Finding, Group, Remedy, Topic};
use crate::machine::{CorePower, Machine, Vendor};
use crate::root::Why;
use crate::setup::Setup;

const CPU: &str = "/sys/devices/system/cpu/cpu";
const BEST: &str = "performance";

/// Leaving such an idle state takes long: microseconds. C1 and C1E take 2 to 10, C6 30 and more.
const DEEP: u64 = 10;

const GOVERNOR: Topic = Topic {
    group: Group::Power,
    name: "P-states and governor",
    why: "A core whose frequency follows its load is slow when a burst begins; the rate of a worker follows the frequency. \
          'performance' keeps the highest.",
    source: "carriers' DPDK performance white paper V1.2 (P-states off or pinned); kernel: admin-guide/pm/cpufreq",
};

const TURBO: Topic = Topic {
    group: Group::Power,
    name: "turbo",
    why: "Turbo is faster, but how much depends on temperature and on what other cores do, so results of two runs differ.",
    source: "carriers' DPDK performance white paper V1.2 (off for measurements)",
};

const IDLE: Topic = Topic {
    group: Group::Power,
    name: "C-states",
    why: "A worker that sleeps because nothing came leaves a deep state only after its exit latency, and its caches may be cold: \
          the first packets after a pause wait.",
    source: "carriers' DPDK performance white paper V1.2 (C3 and C6 off); kernel: admin-guide/pm/cpuidle",
};

pub(super) fn check(machine: &Machine, setup: &Setup) -> Vec<Finding> {
    vec![governor(machine, setup), turbo(machine), idle(machine, setup)]
}

/// The worker cores.
fn of_workers<'a>(machine: &'a Machine, setup: &'a Setup) -> impl Iterator<Item = &'a CorePower> {
    machine.power.cores.iter().filter(|core| setup.workers.contains(core.number))
}

fn nothing_to_see(topic: Topic, machine: &Machine, what: &str, host: &str) -> Finding {
    if machine.is_virtual() {
        let is = format!("the host decides about {what}, and shows nothing of that here");
        return Finding::does_not_apply(topic, is).remedy(Remedy::Host(host.into()));
    }
    Finding::cannot_be_told(
        topic,
        format!(
            "the kernel shows no {what}: it has no driver for this processor, or BIOS hides it"
        ),
    )
}

fn governor(machine: &Machine, setup: &Setup) -> Finding {
    let mut slow = Vec::new();
    let mut driver = "unknown";
    for core in of_workers(machine, setup) {
        let governor = match &core.governor {
            Ok(governor) => governor,
            Err(unread) if unread.why == Why::Missing => {
                return nothing_to_see(
                    GOVERNOR,
                    machine,
                    "frequencies",
                    "set the governor 'performance' on the cores of this machine",
                );
            }
            Err(unread) => return Finding::unread(GOVERNOR, unread),
        };
        driver = core.driver.as_deref().unwrap_or(driver);
        if governor != BEST {
            slow.push((core, governor));
        }
    }
    if machine.power.cores.is_empty() || setup.workers.is_empty() {
        return Finding::cannot_be_told(GOVERNOR, "no core is known");
    }
    if slow.is_empty() {
        return Finding::good(
            GOVERNOR,
            format!("driver {driver}, '{BEST}' on worker {}", setup.workers.named()),
        );
    }
    let cores: CoreSet = slow.iter().map(|(core, _)| core.number).collect();
    let mut names: Vec<_> = slow.iter().map(|(_, governor)| format!("'{governor}'")).collect();
    names.sort_unstable();
    names.dedup();
    let is = format!("driver {driver}, {} on {}", names.join(" and "), cores.named());
    // intel_pstate's powersave follows the load; that of other drivers is the lowest frequency.
    let lowest = driver != "intel_pstate" && names.iter().any(|name| name == "'powersave'");
    let found = if lowest { Finding::bad } else { Finding::could_be_better };
    let offered = slow.iter().filter(|(core, _)| core.governors.iter().any(|name| name == BEST));
    let file = |core: u16| format!("{CPU}{core}/cpufreq/scaling_governor");
    let changes = offered.map(|(core, governor)| Change::write(file(core.number), BEST, governor));
    let command = format!("echo {BEST} | tee {}", paths(CPU, &cores, "cpufreq/scaling_governor"));
    found(GOVERNOR, is, format!("'{BEST}' on worker {}", setup.workers.named()))
        .remedy(Remedy::Command(command))
        .remedy(Remedy::KernelParameter("cpufreq.default_governor=performance".into()))
        .changes(changes)
}

fn turbo(machine: &Machine) -> Finding {
    match &machine.power.turbo {
        Ok(true) => Finding::choice(
            TURBO,
            "on",
            "off where rates must be the same each day; on for the highest rate",
        )
        .remedy(Remedy::Command(machine.power.turbo_off.into())),
        Ok(false) => Finding::good(TURBO, "off: rates repeat"),
        Err(unread) if unread.why == Why::Missing => nothing_to_see(
            TURBO,
            machine,
            "turbo",
            "decide on turbo in the host's BIOS or cpufreq/boost",
        ),
        Err(unread) => Finding::unread(TURBO, unread),
    }
}

fn idle(machine: &Machine, setup: &Setup) -> Finding {
    let (mut deep, mut cores, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    for core in of_workers(machine, setup) {
        let states = match &core.idle {
            Ok(states) => states,
            Err(unread) if unread.why == Why::Missing => {
                return nothing_to_see(
                    IDLE,
                    machine,
                    "idle states",
                    "keep the cores of this machine out of C3 and deeper",
                );
            }
            Err(unread) => return Finding::unread(IDLE, unread),
        };
        for state in states.iter().filter(|state| state.enabled && state.latency > DEEP) {
            deep.push((state.latency, state.name.clone()));
            cores.push(core.number);
            let path = format!("{CPU}{}/cpuidle/state{}/disable", core.number, state.number);
            changes.push(Change::write(path, 1, 0));
        }
    }
    if machine.power.cores.is_empty() || setup.workers.is_empty() {
        return Finding::cannot_be_told(IDLE, "no core is known");
    }
    let Some((latency, _)) = deep.iter().max().cloned() else {
        return Finding::good(IDLE, format!("no worker core sleeps deeper than {DEEP} us"));
    };
    if setup.busy {
        return Finding::good(IDLE, "deep ones are on, but workers that poll busily never sleep");
    }
    deep.sort_unstable();
    deep.dedup_by(|a, b| a.1 == b.1);
    let names: Vec<_> = deep.iter().map(|(_, name)| name.as_str()).collect();
    let cores: CoreSet = cores.into_iter().collect();
    let is = format!("{} on {}: waking takes up to {latency} us", names.join(", "), cores.named());
    let parameter = match machine.kernel.vendor {
        Vendor::Intel => "intel_idle.max_cstate=1 processor.max_cstate=1",
        _ => "processor.max_cstate=1",
    };
    // cpupower disables states of this latency, too.
    let command = format!("cpupower -c {cores} idle-set --disable-by-latency {}", DEEP + 1);
    Finding::could_be_better(IDLE, is, "none deeper than C1 on worker cores")
        .remedy(Remedy::Command(command))
        .remedy(Remedy::KernelParameter(parameter.into()))
        .changes(changes)
}
