//! Interrupts of devices, and the cores that may take them.

use crate::cores::CoreSet;
use crate::root::{Fact, Root};

const INTERRUPTS: &str = "/proc/irq";

/// An interrupt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupt {
    /// Its number.
    pub number: u16,
    /// Who waits for it, as in `eth1-rx-0`.
    pub names: Vec<String>,
    /// Cores that may take it.
    pub allowed: CoreSet,
    /// Cores that do; where the kernel does not say: those that may.
    pub effective: CoreSet,
    /// Whether the kernel alone decides about that: nobody may write its file.
    pub managed: bool,
}

impl Interrupt {
    /// The file that says which cores may take it.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{INTERRUPTS}/{}/smp_affinity_list", self.number)
    }

    fn read(root: &Root, number: u16) -> Fact<Option<Self>> {
        let folder = format!("{INTERRUPTS}/{number}");
        // A folder bears the name of each action; an interrupt without one never comes.
        let names = root.entries(&folder)?;
        let actions =
            names.into_iter().filter(|name| root.place(&format!("{folder}/{name}")).is_dir());
        let names: Vec<_> = actions.collect();
        if names.is_empty() {
            return Ok(None);
        }
        let list = format!("{folder}/smp_affinity_list");
        let allowed: CoreSet = root.value(&list)?;
        let effective: Fact<CoreSet> = root.value(&format!("{folder}/effective_affinity_list"));
        let effective = effective.ok().filter(|cores| !cores.is_empty());
        let effective = effective.unwrap_or_else(|| allowed.clone());
        let managed = root.is_read_only(&list);
        Ok(Some(Self { number, names, allowed, effective, managed }))
    }
}

pub(super) fn read(root: &Root) -> Fact<Vec<Interrupt>> {
    let numbers = root.numbered(INTERRUPTS, "")?;
    numbers.into_iter().filter_map(|number| Interrupt::read(root, number).transpose()).collect()
}
