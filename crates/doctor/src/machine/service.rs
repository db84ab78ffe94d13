//! Services that are known to disturb, found by their processes.

use crate::root::{Fact, Root};

/// A service that disturbs.
#[derive(Debug)]
pub struct KnownService {
    /// The name of its process, as in `/proc/PID/comm`: 15 bytes at most.
    pub process: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What it does to a data plane.
    pub why: &'static str,
    /// Whether it can be stopped, and started again, without harm to anything but its own job.
    pub harmless: bool,
}

/// The services that the white paper turns off, and the graphical ones.
pub const KNOWN_SERVICES: &[KnownService] = &[
    known(
        "irqbalance",
        "irqbalance.service",
        "It moves interrupts back to worker cores every 10 s.",
        true,
    ),
    known(
        "ksmtuned",
        "ksmtuned.service",
        "It starts the merging of equal pages, which scans memory.",
        true,
    ),
    known(
        "bluetoothd",
        "bluetooth.service",
        "A server has no use for it, and its work wakes cores.",
        true,
    ),
    known(
        "tuned",
        "tuned.service",
        "It sets governor, THP and watchdogs by a profile of its own, over what is set here.",
        false,
    ),
    known(
        "firewalld",
        "firewalld.service",
        "Its rules cost the kernel's packets time, not those of DPDK ports; without it the kernel's side is open.",
        false,
    ),
    known(
        "auditd",
        "auditd.service",
        "It records system calls; workers that poll make hardly any.",
        false,
    ),
    known(
        "NetworkManager",
        "NetworkManager.service",
        "It may configure interfaces that are meant for ports; mark those unmanaged, or use systemd-networkd.",
        false,
    ),
    known(
        "gnome-shell",
        "graphical.target",
        "A graphical session takes cores and memory bandwidth.",
        false,
    ),
    known(
        "Xorg",
        "graphical.target",
        "A graphical session takes cores and memory bandwidth.",
        false,
    ),
    known(
        "gdm",
        "graphical.target",
        "A graphical session takes cores and memory bandwidth.",
        false,
    ),
    known(
        "sddm",
        "graphical.target",
        "A graphical session takes cores and memory bandwidth.",
        false,
    ),
    known(
        "lightdm",
        "graphical.target",
        "A graphical session takes cores and memory bandwidth.",
        false,
    ),
];

const fn known(
    process: &'static str,
    unit: &'static str,
    why: &'static str,
    harmless: bool,
) -> KnownService {
    KnownService { process, unit, why, harmless }
}

/// A service that runs.
#[derive(Debug, Clone, Copy)]
pub struct Service {
    /// What is known about it.
    pub known: &'static KnownService,
    /// Whether systemd runs it under that unit, so that `systemctl` can stop it.
    pub by_systemd: bool,
}

pub(super) fn read(root: &Root) -> Fact<Vec<Service>> {
    let mut found: Vec<Service> = Vec::new();
    let processes = root.entries("/proc")?;
    for process in processes.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
        // A process may end while it is looked at.
        let Ok(name) = root.text(&format!("/proc/{process}/comm")) else { continue };
        let Some(known) = KNOWN_SERVICES.iter().find(|known| known.process == name) else {
            continue;
        };
        if found.iter().any(|service| service.known.unit == known.unit) {
            continue;
        }
        // Any user may give a process any name; what systemd runs is in the unit's cgroup.
        let cgroup = root.text(&format!("/proc/{process}/cgroup")).unwrap_or_default();
        let place = format!("/system.slice/{}", known.unit);
        let by_systemd = cgroup.lines().any(|line| line.ends_with(&place));
        found.push(Service { known, by_systemd });
    }
    Ok(found)
}
