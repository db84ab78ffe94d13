//! The kernel: its command line, watchdogs, clock, protections.

use crate::cores::CoreSet;
use crate::root::{Fact, Root};

/// The kernel and its settings.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Its release.
    pub release: Fact<String>,
    /// Its command line.
    pub command_line: Fact<String>,
    /// The processor's name.
    pub processor: Option<String>,
    /// Who makes the processor.
    pub vendor: Vendor,
    /// Whether it runs in a virtual machine.
    pub hypervisor: bool,
    /// Whether the time-stamp counter counts at one rate in every state.
    pub steady_tsc: bool,
    /// The watchdogs that look for lockups.
    pub watchdog: Watchdog,
    /// The clock.
    pub clock: Fact<Clock>,
    /// Weaknesses of the processor, each with what the kernel does about it.
    pub vulnerabilities: Fact<Vec<(String, String)>>,
    /// IOMMU groups.
    pub iommu_groups: Fact<usize>,
    /// SELinux: whether it enforces; none: it is off.
    pub selinux: Option<bool>,
    /// Whether a kernel is loaded that takes over after a crash (kdump).
    pub crash_kernel: Fact<u64>,
}

/// Who makes the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    /// Intel.
    Intel,
    /// AMD, or Hygon.
    Amd,
    /// Anybody else.
    Other,
}

/// The watchdogs that look for lockups.
#[derive(Debug, Clone)]
pub struct Watchdog {
    /// Whether non-maskable interrupts watch each core.
    pub nmi: Fact<u64>,
    /// Whether a thread watches each core.
    pub soft: Fact<u64>,
    /// The cores that are watched.
    pub cores: Fact<CoreSet>,
}

/// The clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clock {
    /// Where the time comes from.
    pub current: String,
    /// Where it could come from.
    pub available: Vec<String>,
}

impl Kernel {
    pub(super) fn read(root: &Root) -> Self {
        let processor = root.text("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = processor.lines().find(|line| line.starts_with(name))?;
            line.split_once(':').map(|(_, value)| value.trim())
        };
        let flags: Vec<_> = field("flags").unwrap_or_default().split_whitespace().collect();
        let hypervisor = flags.contains(&"hypervisor") || root.exists("/sys/hypervisor/type");
        let groups = root.entries("/sys/kernel/iommu_groups");
        Self {
            release: root.text("/proc/sys/kernel/osrelease"),
            command_line: root.text("/proc/cmdline"),
            processor: field("model name").map(str::to_owned),
            vendor: match field("vendor_id") {
                Some("GenuineIntel") => Vendor::Intel,
                Some("AuthenticAMD" | "HygonGenuine") => Vendor::Amd,
                _ => Vendor::Other,
            },
            hypervisor,
            steady_tsc: ["constant_tsc", "nonstop_tsc"].iter().all(|flag| flags.contains(flag)),
            watchdog: Watchdog {
                nmi: root.value("/proc/sys/kernel/nmi_watchdog"),
                soft: root.value("/proc/sys/kernel/soft_watchdog"),
                cores: root.value("/proc/sys/kernel/watchdog_cpumask"),
            },
            clock: clock(root),
            vulnerabilities: vulnerabilities(root),
            iommu_groups: groups.map(|groups| groups.len()),
            crash_kernel: root.value("/sys/kernel/kexec_crash_loaded"),
            selinux: root.value::<u64>("/sys/fs/selinux/enforce").ok().map(|enforce| enforce != 0),
        }
    }

    /// The value of a parameter of the command line: the last one counts; empty for one without value.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let words = self.command_line.as_ref().ok()?.split_whitespace();
        let value = |word| match str::split_once(word, '=') {
            Some((key, value)) => (key == name).then_some(value),
            None => (word == name).then_some(""),
        };
        words.filter_map(value).next_back()
    }
}

fn clock(root: &Root) -> Fact<Clock> {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0";
    let available = root.text(&format!("{SOURCE}/available_clocksource"))?;
    Ok(Clock {
        current: root.text(&format!("{SOURCE}/current_clocksource"))?,
        available: available.split_whitespace().map(str::to_owned).collect(),
    })
}

fn vulnerabilities(root: &Root) -> Fact<Vec<(String, String)>> {
    const FOLDER: &str = "/sys/devices/system/cpu/vulnerabilities";
    let read = |name: String| Ok((root.text(&format!("{FOLDER}/{name}"))?, name));
    let swap = |(state, name): (String, String)| (name, state);
    root.entries(FOLDER)?.into_iter().map(|name| read(name).map(swap)).collect()
}
