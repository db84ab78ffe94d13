//! Hugepages of each node, and what the kernel does with other pages.

use std::collections::BTreeSet;

use crate::change::Change;
use crate::finding::{Finding, Group, Remedy, Topic};
use crate::machine::{Machine, Pool};
use crate::root::Why;
use crate::setup::{Hugepages, Setup};

const TRANSPARENT_FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const MERGING_FILE: &str = "/sys/kernel/mm/ksm/run";
const BALANCING_FILE: &str = "/proc/sys/kernel/numa_balancing";

const HUGEPAGES: Topic = Topic {
    group: Group::Memory,
    name: "hugepages",
    why: "Packet buffers in pages of 4 KiB cost a TLB miss for nearly every packet. A queue's buffers lie on its port's node, so \
          each node with a worker or a port needs its own. More than 128 MB had no further effect.",
    source: "a study of layer-3 forwarding on DPDK at 10 GbE (2016); carriers' DPDK performance white paper V1.2",
};

const TRANSPARENT: Topic = Topic {
    group: Group::Memory,
    name: "transparent huge pages",
    why: "Millrace's tables ask for huge pages themselves (madvise): a look-up among a million routes touches pages at random. With \
          'never' it gets none, and each access may miss the TLB; with 'always' page faults and khugepaged of all programs compact \
          memory, and the mappings that they change interrupt workers.",
    source: "kernel: admin-guide/mm/transhuge",
};

const MERGING: Topic = Topic {
    group: Group::Memory,
    name: "KSM",
    why: "Kernel same-page merging scans memory all the time and write-protects what it merges: it takes cores, caches and memory \
          bandwidth, and the next write faults.",
    source: "carriers' DPDK performance white paper V1.2 (ksm off); kernel: admin-guide/mm/ksm",
};

const BALANCING: Topic = Topic {
    group: Group::Memory,
    name: "NUMA balancing",
    why: "The kernel unmaps pages from time to time to see who uses them, so that workers fault on tables that lie where they \
          belong already.",
    source: "kernel: admin-guide/sysctl/kernel (numa_balancing)",
};

pub(super) fn check(machine: &Machine, setup: &Setup) -> Vec<Finding> {
    let mut findings = hugepages(machine, setup);
    findings.extend([transparent(machine), merging(machine), balancing(machine)]);
    findings
}

fn hugepages(machine: &Machine, setup: &Setup) -> Vec<Finding> {
    if setup.hugepages == Hugepages::Never {
        let reason = "the configuration does without: memory.hugepages = \"never\"";
        return vec![Finding::does_not_apply(HUGEPAGES, reason)];
    }
    let pools = match &machine.memory.pools {
        Ok(pools) if !pools.is_empty() => pools,
        Ok(_) => {
            return vec![Finding::does_not_apply(
                HUGEPAGES,
                "this kernel has no pools of hugepages",
            )];
        }
        Err(unread) => return vec![Finding::unread(HUGEPAGES, unread)],
    };
    let workers = setup.workers.iter().map(|core| machine.topology.node_of(core));
    let ports = super::nics::used(machine, setup).filter_map(|(nic, _)| nic.node);
    let nodes: BTreeSet<u16> = workers.chain(ports).collect();
    nodes.into_iter().map(|node| of_node(node, pools, setup)).collect()
}

fn of_node(node: u16, pools: &[Pool], setup: &Setup) -> Finding {
    let about = |finding: Finding| finding.about(format!("node {node}"));
    let here: Vec<_> = pools.iter().filter(|pool| pool.node == node).collect();
    let reserved = here.iter().fold(0_u64, |sum, pool| sum.saturating_add(pool.bytes()));
    let free = here
        .iter()
        .map(|pool| pool.free.saturating_mul(pool.page) >> 10)
        .fold(0, u64::saturating_add);
    let needed = setup.hugepage_bytes();
    let is = format!("{} MB reserved, {free} MB of them free", reserved >> 20);
    if reserved >= needed && (setup.process.is_some() || free >= needed >> 20) {
        return about(Finding::good(HUGEPAGES, is));
    }
    if reserved >= needed {
        let is = format!("{is}; that is enough if a daemon that runs already has the others");
        return about(Finding::cannot_be_told(HUGEPAGES, is));
    }
    let found = match setup.hugepages {
        Hugepages::Require => Finding::bad,
        _ => Finding::could_be_better,
    };
    let better = format!(
        "{} MB at least, for {} buffers of {} B",
        needed >> 20,
        setup.buffers,
        setup.buffer_size
    );
    let finding = about(found(HUGEPAGES, is, better));
    // The smallest page: it fits best, and can still be had when memory is fragmented.
    let Some(pool) = here.first() else { return finding };
    let page = pool.page.saturating_mul(1_024).max(1);
    let total = pool.total.saturating_add((needed - reserved).div_ceil(page));
    let (path, size) = (pool.path(), pool.page);
    let parameter = format!("hugepagesz={} hugepages={node}:{total}", words(size));
    finding
        .remedy(Remedy::Command(format!("echo {total} > {path}")))
        .remedy(Remedy::KernelParameter(parameter))
        .changes([Change::write(path, total, pool.total)])
}

/// A page's size as the kernel's parameters have it.
fn words(kibibytes: u64) -> String {
    match kibibytes {
        size if size % (1 << 20) == 0 => format!("{}G", size >> 20),
        size if size % (1 << 10) == 0 => format!("{}M", size >> 10),
        size => format!("{size}K"),
    }
}

fn transparent(machine: &Machine) -> Finding {
    match machine.memory.transparent.as_deref() {
        Ok("madvise") => Finding::good(TRANSPARENT, "'madvise'"),
        Ok(word) => {
            let change = Change::write(TRANSPARENT_FILE, "madvise", word);
            Finding::could_be_better(TRANSPARENT, format!("'{word}'"), "'madvise'")
                .remedy(Remedy::Command(format!("echo madvise > {TRANSPARENT_FILE}")))
                .remedy(Remedy::KernelParameter("transparent_hugepage=madvise".into()))
                .changes([change])
        }
        Err(unread) if unread.why == Why::Missing => {
            Finding::does_not_apply(TRANSPARENT, "this kernel has none")
        }
        Err(unread) => Finding::unread(TRANSPARENT, unread),
    }
}

fn merging(machine: &Machine) -> Finding {
    match &machine.memory.merging {
        Ok(1) => Finding::could_be_better(MERGING, "runs", "stopped")
            .remedy(Remedy::Command(format!("echo 0 > {MERGING_FILE}")))
            .changes([Change::write(MERGING_FILE, 0, 1)]),
        Ok(_) => Finding::good(MERGING, "stopped"),
        Err(unread) if unread.why == Why::Missing => {
            Finding::does_not_apply(MERGING, "this kernel has none")
        }
        Err(unread) => Finding::unread(MERGING, unread),
    }
}

fn balancing(machine: &Machine) -> Finding {
    if machine.topology.nodes.len() < 2 {
        return Finding::does_not_apply(BALANCING, "there is one node");
    }
    match &machine.memory.balancing {
        Ok(0) => Finding::good(BALANCING, "off"),
        Ok(on) => Finding::could_be_better(BALANCING, "on", "off")
            .remedy(Remedy::Command("sysctl kernel.numa_balancing=0".into()))
            .remedy(Remedy::KernelParameter("numa_balancing=disable".into()))
            .changes([Change::write(BALANCING_FILE, 0, on)]),
        Err(unread) if unread.why == Why::Missing => {
            Finding::does_not_apply(BALANCING, "this kernel has none")
        }
        Err(unread) => Finding::unread(BALANCING, unread),
    }
}
