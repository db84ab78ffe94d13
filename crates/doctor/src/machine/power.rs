//! Frequencies, turbo and idle states.

use crate::root::{Fact, Root};

const CPUS: &str = "/sys/devices/system/cpu";

/// How the cores save power.
#[derive(Debug, Clone)]
pub struct Power {
    /// Each core, in order.
    pub cores: Vec<CorePower>,
    /// Whether a core may exceed its nominal frequency.
    pub turbo: Fact<bool>,
    /// The command that turns turbo off.
    pub turbo_off: &'static str,
}

/// How a core saves power.
#[derive(Debug, Clone)]
pub struct CorePower {
    /// Number of the core.
    pub number: u16,
    /// Driver of its frequency.
    pub driver: Fact<String>,
    /// Who chooses its frequency.
    pub governor: Fact<String>,
    /// Who could.
    pub governors: Vec<String>,
    /// What it may sleep in.
    pub idle: Fact<Vec<IdleState>>,
}

/// An idle state of a core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleState {
    /// Its number.
    pub number: u16,
    /// Its name, as in `C6`.
    pub name: String,
    /// Time to leave it: microseconds.
    pub latency: u64,
    /// Whether it may be entered.
    pub enabled: bool,
}

impl Power {
    pub(super) fn read(root: &Root) -> Self {
        let numbers = root.numbered(CPUS, "cpu").unwrap_or_default();
        let (turbo, turbo_off) = turbo(root);
        Self {
            cores: numbers.into_iter().map(|core| CorePower::read(root, core)).collect(),
            turbo,
            turbo_off,
        }
    }
}

impl CorePower {
    fn read(root: &Root, number: u16) -> Self {
        let frequency = format!("{CPUS}/cpu{number}/cpufreq");
        let governors = root.text(&format!("{frequency}/scaling_available_governors"));
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect();
        Self {
            number,
            driver: root.text(&format!("{frequency}/scaling_driver")),
            governor: root.text(&format!("{frequency}/scaling_governor")),
            governors: governors.map(words).unwrap_or_default(),
            idle: idle(root, &format!("{CPUS}/cpu{number}/cpuidle")),
        }
    }
}

fn idle(root: &Root, folder: &str) -> Fact<Vec<IdleState>> {
    let state = |number: u16| {
        let file = |name: &str| format!("{folder}/state{number}/{name}");
        Ok(IdleState {
            number,
            name: root.text(&file("name"))?,
            latency: root.value(&file("latency"))?,
            enabled: root.value::<u64>(&file("disable"))? == 0,
        })
    };
    root.numbered(folder, "state")?.into_iter().map(state).collect()
}

/// intel_pstate has a switch of its own; other drivers share one.
fn turbo(root: &Root) -> (Fact<bool>, &'static str) {
    let off: Fact<u8> = root.value("/sys/devices/system/cpu/intel_pstate/no_turbo");
    match off {
        Ok(off) => (Ok(off == 0), "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo"),
        Err(_) => {
            let on: Fact<u8> = root.value("/sys/devices/system/cpu/cpufreq/boost");
            (on.map(|on| on != 0), "echo 0 > /sys/devices/system/cpu/cpufreq/boost")
        }
    }
}
