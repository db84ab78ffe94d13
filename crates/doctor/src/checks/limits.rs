//! Limits of the daemon's process.

use crate::finding::{Finding, Group, Remedy, Topic};
use crate::machine::{Bound, Machine};
use crate::setup::Setup;

/// Files that sessions and clients of some users need together: one for each process, each carrier and each link.
const FILES: u64 = 65_536;

const MEMORY: Topic = Topic {
    group: Group::Limits,
    name: "memlock",
    why: "Memory that cards write into is locked: vfio counts the daemon's buffers against this limit, and before Linux 5.11 \
          AF_XDP and BPF did. A port cannot be opened when it is too low. Processes with CAP_IPC_LOCK, such as root's, are exempt.",
    source: "kernel: driver-api/vfio; getrlimit(2)",
};

const OPEN: Topic = Topic {
    group: Group::Limits,
    name: "open files",
    why: "The daemon holds some files for each client and each program on its stacks; beyond the limit it refuses new ones.",
    source: "docs/forward.md, [sessions] and [clients]",
};

pub(super) fn check(machine: &Machine, setup: &Setup) -> Vec<Finding> {
    let limits = match &machine.limits {
        Ok(limits) => limits,
        Err(unread) => return vec![Finding::unread(MEMORY, unread), Finding::unread(OPEN, unread)],
    };
    let whose = if setup.process.is_some() { "the daemon" } else { "programs started here" };
    let needed = setup.hugepage_bytes();
    let memory = match limits.memory {
        Bound::Unlimited => Finding::good(MEMORY, format!("unlimited for {whose}")),
        Bound::At(bytes) if bytes >= needed => {
            Finding::good(MEMORY, format!("{} MB for {whose}", bytes >> 20))
        }
        Bound::At(bytes) => {
            let is = format!("{} KB for {whose}", bytes >> 10);
            Finding::could_be_better(MEMORY, is, "unlimited")
                .remedy(Remedy::Manual(
                    "in the unit: LimitMEMLOCK=infinity, as in Millrace's own".into(),
                ))
                .remedy(Remedy::Command(shell(
                    "ulimit -l unlimited",
                    "memlock=unlimited:unlimited",
                    setup,
                )))
        }
    };
    let open = match limits.files {
        Bound::Unlimited => Finding::good(OPEN, format!("unlimited for {whose}")),
        Bound::At(files) if files >= FILES => Finding::good(OPEN, format!("{files} for {whose}")),
        Bound::At(files) => Finding::could_be_better(
            OPEN,
            format!("{files} for {whose}"),
            format!("{FILES} or more"),
        )
        .remedy(Remedy::Manual("in the unit: LimitNOFILE=1048576, as in Millrace's own".into()))
        .remedy(Remedy::Command(shell(
            "ulimit -n 1048576",
            "nofile=1048576:1048576",
            setup,
        ))),
    };
    vec![memory, open]
}

/// For the daemon that runs, or for the shell that will start it.
fn shell(ulimit: &str, prlimit: &str, setup: &Setup) -> String {
    match setup.process {
        Some(process) => format!("prlimit --pid {process} --{prlimit}"),
        None => ulimit.to_owned(),
    }
}
