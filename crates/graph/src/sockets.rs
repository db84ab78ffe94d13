//! The kernel sockets behind virtual devices, so that a worker can sleep until one has a packet.
//!
//! DPDK's drivers for `afpacket`, `afxdp` and `tap` have no receive interrupts, but the sockets that
//! they read from can be polled like any other. A timer instead costs a wake-up each time.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsFd, OwnedFd, RawFd};

use rustix::net::{AddressFamily, sockopt::socket_domain};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

/// The process's file descriptors at one moment.
#[derive(Debug)]
pub struct Sockets {
    open: BTreeSet<RawFd>,
}

impl Sockets {
    /// Those that are open now: to be called before a device is opened.
    #[must_use]
    pub fn now() -> Self {
        Self { open: descriptors() }
    }

    /// The sockets of a device that was opened since, one for each of its `queues` receive queues
    /// in order. Empty when it has none that can be told apart: then its queues have to be polled.
    #[must_use]
    pub fn opened_since(&self, queues: usize) -> Vec<OwnedFd> {
        let Ok(process) = pidfd_open(getpid(), PidfdFlags::empty()) else { return Vec::new() };
        let (mut found, mut tap) = (Vec::new(), None);
        for fd in descriptors().difference(&self.open) {
            // A duplicate: the driver may close its own at any time.
            let copy = || pidfd_getfd(&process, *fd, PidfdGetfdFlags::empty()).ok();
            if is_tap(*fd) {
                // The first one only keeps the device alive; the queue's come after it.
                tap = copy().or(tap);
            } else {
                found.extend(copy().filter(|copy| delivers_packets(copy)));
            }
        }
        match tap {
            Some(tap) if queues == 1 => vec![tap],
            None if found.len() == queues => found,
            _ => Vec::new(),
        }
    }
}

fn descriptors() -> BTreeSet<RawFd> {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return BTreeSet::new() };
    let mut open: BTreeSet<RawFd> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    // The descriptor that read the list was in it, and is closed now.
    open.retain(|fd| fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok());
    open
}

fn delivers_packets(fd: impl AsFd) -> bool {
    matches!(socket_domain(fd), Ok(AddressFamily::PACKET | AddressFamily::XDP))
}

/// Whether it belongs to a TAP device that exists: its name is told.
fn is_tap(fd: RawFd) -> bool {
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
    about.lines().filter_map(|line| line.strip_prefix("iff:")).any(|name| !name.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{SocketType, socket};

    #[test]
    fn finds_only_new_sockets_that_deliver_packets() {
        let udp = || socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
        let before = Sockets::now();
        let _other = udp();
        assert!(before.opened_since(1).is_empty());
        // Needs CAP_NET_RAW, as the drivers do.
        let Ok(packet) = socket(AddressFamily::PACKET, SocketType::RAW, None) else { return };
        assert_eq!(before.opened_since(1).len(), 1);
        assert!(before.opened_since(2).is_empty(), "which queue's it is cannot be told");
        assert!(Sockets::now().opened_since(1).is_empty());
        drop(packet);
        assert!(before.opened_since(1).is_empty());
    }
}
