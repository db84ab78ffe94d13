//! IOMMU and protections.

use crate::finding::{Finding, Group, Remedy, Topic};
use crate::machine::{Machine, Vendor};
use crate::setup::Setup;

const IOMMU: Topic = Topic {
    group: Group::Kernel,
    name: "IOMMU",
    why: "vfio-pci, which hands a card to DPDK, needs an IOMMU to keep the card's writes inside the daemon's memory. Devices that \
          the kernel drives should bypass it (iommu=pt): each mapping costs time.",
    source: "carriers' DPDK performance white paper V1.2 (VT-d on, iommu=pt); kernel: driver-api/vfio",
};

const MITIGATIONS: Topic = Topic {
    group: Group::Kernel,
    name: "mitigations",
    why: "Defences against processor weaknesses make each entry into the kernel dearer. A busy worker makes hardly any, so \
          forwarding gains little without them; programs that use the kernel, and sleeping workers, gain more.",
    source: "kernel: admin-guide/hw-vuln; no figure of ours",
};

const SELINUX: Topic = Topic {
    group: Group::Kernel,
    name: "SELinux",
    why: "It checks system calls. Packets of DPDK ports meet none, so turning it off, as the white paper does, gains nothing for \
          them.",
    source: "carriers' DPDK performance white paper V1.2 (selinux=0)",
};

pub(super) fn check(machine: &Machine, setup: &Setup) -> Vec<Finding> {
    let mut findings = vec![iommu(machine, setup), mitigations(machine)];
    findings.push(match machine.kernel.selinux {
        Some(true) => Finding::choice(SELINUX, "enforcing", "as the machine's security asks"),
        Some(false) => Finding::good(SELINUX, "permissive"),
        None => Finding::good(SELINUX, "off"),
    });
    findings
}

fn iommu(machine: &Machine, setup: &Setup) -> Finding {
    let kernel = &machine.kernel;
    let groups = match &kernel.iommu_groups {
        Ok(groups) => *groups,
        Err(unread) if unread.why == crate::root::Why::Missing => 0,
        Err(unread) => return Finding::unread(IOMMU, unread),
    };
    let parameters = match kernel.vendor {
        Vendor::Intel => "intel_iommu=on iommu=pt",
        Vendor::Amd => "amd_iommu=on iommu=pt",
        Vendor::Other => "iommu.passthrough=1",
    };
    if groups == 0 {
        let needed = setup.ports.iter().any(|port| port.kind == "pci");
        let nics = machine.nics.as_deref().unwrap_or_default();
        if !needed && (nics.is_empty() || !setup.ports.is_empty()) {
            return Finding::does_not_apply(IOMMU, "off, and no port drives a network card itself");
        }
        if machine.is_virtual() {
            let host = "give this machine a virtual IOMMU, or accept vfio without one (enable_unsafe_noiommu_mode)";
            return Finding::could_be_better(IOMMU, "off: this virtual machine has none", "on")
                .remedy(Remedy::Host(host.into()));
        }
        return Finding::could_be_better(IOMMU, "off", "on, with iommu=pt")
            .remedy(Remedy::Firmware("VT-d (Intel) or AMD-Vi: on".into()))
            .remedy(Remedy::KernelParameter(parameters.into()));
    }
    let direct = kernel.parameter("iommu") == Some("pt")
        || kernel.parameter("iommu.passthrough") == Some("1");
    let nics = machine.nics.as_deref().unwrap_or_default();
    let types: Vec<_> = nics.iter().filter_map(|nic| nic.iommu.as_deref()).collect();
    let identity = !types.is_empty() && types.iter().all(|kind| *kind == "identity");
    if direct || identity {
        return Finding::good(
            IOMMU,
            format!("on, {groups} groups; the kernel's devices bypass it"),
        );
    }
    let is = format!("on, {groups} groups; the kernel's devices go through it");
    Finding::could_be_better(IOMMU, is, "iommu=pt")
        .remedy(Remedy::KernelParameter(parameters.into()))
}

fn mitigations(machine: &Machine) -> Finding {
    let kernel = &machine.kernel;
    let list = match &kernel.vulnerabilities {
        Ok(list) => list,
        Err(unread) => return Finding::unread(MITIGATIONS, unread),
    };
    let active: Vec<_> = list
        .iter()
        .filter(|(_, state)| state.starts_with("Mitigation"))
        .map(|(name, _)| name.as_str())
        .collect();
    let open = list.iter().filter(|(_, state)| state.starts_with("Vulnerable")).count();
    if active.is_empty() {
        let is = match open {
            0 => "this processor needs none".to_owned(),
            _ => format!("off, with {open} weaknesses open: run nothing here that is not trusted"),
        };
        return Finding::good(MITIGATIONS, is);
    }
    let is = format!("{} on: {}", active.len(), active.join(", "));
    Finding::choice(MITIGATIONS, is, "on; off only where every program of the machine is trusted")
        .remedy(Remedy::KernelParameter("mitigations=off".into()))
}
