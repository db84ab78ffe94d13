//! What the daemon needs to share memory with processes that it does not trust.

use crate::change::Change;
use crate::finding::{Finding, Group, Remedy, Topic};
use crate::machine::Machine;
use crate::setup::Setup;

/// Instances that the daemon has itself.
const OWN: u64 = 1;
/// What the kernel gives a user unless it is told otherwise: instances; and watches at least, since Linux 5.11.
const INSTANCES: u64 = 128;
const WATCHES: u64 = 8_192;

/// The first Linux whose memory files can be made immutable.
const MAJOR: u32 = 6;

const INOTIFY: Topic = Topic {
    group: Group::Limits,
    name: "inotify",
    why: "The daemon watches memory that it has handed to processes until nobody holds it. It takes one instance, without which no \
          process gets memory, and up to half of the watches. Other programs of root share both limits.",
    source: "docs/security.md; inotify(7)",
};

const IMMUTABLE: Topic = Topic {
    group: Group::Limits,
    name: "immutable memory",
    why: "Processes cannot take pages out of memory that is immutable from its first byte. Without CAP_LINUX_IMMUTABLE it is sealed \
          only later, and a process can keep the daemon from ending.",
    source: "docs/security.md; capabilities(7)",
};

pub(super) fn check(machine: &Machine, setup: &Setup) -> Vec<Finding> {
    vec![inotify(machine), immutable(machine, setup)]
}

fn inotify(machine: &Machine) -> Finding {
    let (instances, watches) = match (&machine.sharing.instances, &machine.sharing.watches) {
        (Ok(instances), Ok(watches)) => (*instances, *watches),
        (Err(unread), _) | (_, Err(unread)) => return Finding::unread(INOTIFY, unread),
    };
    let is = format!("{instances} instances and {watches} watches for each user");
    let limits =
        [("max_user_instances", instances, INSTANCES), ("max_user_watches", watches, WATCHES)];
    let low: Vec<_> = limits.into_iter().filter(|(_, is, least)| is < least).collect();
    if low.is_empty() {
        return Finding::good(INOTIFY, is);
    }
    let better = format!("{INSTANCES} instances and {WATCHES} watches, or more");
    let found = if instances < OWN {
        Finding::bad(INOTIFY, is, better)
    } else {
        Finding::could_be_better(INOTIFY, is, better)
    };
    low.into_iter().fold(found, |found, (name, is, least)| {
        let change = Change::write(format!("/proc/sys/fs/inotify/{name}"), least, is);
        let command = format!("sysctl -w fs.inotify.{name}={least}");
        found.remedy(Remedy::Command(command)).changes([change])
    })
}

fn immutable(machine: &Machine, setup: &Setup) -> Finding {
    let release = machine.kernel.release.as_deref().unwrap_or_default();
    let major = release.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major < MAJOR) {
        let reason = format!("Linux {release} has no such memory files; {MAJOR}.0 has");
        return Finding::does_not_apply(IMMUTABLE, reason);
    }
    let who = if setup.process.is_some() { "the daemon" } else { "a daemon started here" };
    match &machine.sharing.immutable {
        Err(unread) => Finding::unread(IMMUTABLE, unread),
        Ok(true) => Finding::good(IMMUTABLE, format!("{who} may make its files immutable")),
        Ok(false) => Finding::could_be_better(
            IMMUTABLE,
            format!("{who} has no CAP_LINUX_IMMUTABLE"),
            "CAP_LINUX_IMMUTABLE",
        )
        .remedy(Remedy::Manual(
            "in the unit: CAP_LINUX_IMMUTABLE in CapabilityBoundingSet, as in Millrace's own"
                .into(),
        )),
    }
}
