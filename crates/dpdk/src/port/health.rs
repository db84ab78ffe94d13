//! Whether a port still works: what the drivers do not report by themselves.

use std::sync::atomic::{AtomicI32, Ordering};

use super::{Cause, Health, Port};
use crate::device::{interface_flags, interface_index};
use crate::{DeviceKind, ffi};

impl Port {
    /// Whether the port can carry packets now. A few system calls; meant to be asked about several
    /// times a second.
    #[must_use]
    pub fn health(&self) -> Health {
        let handle = &self.handle;
        match handle.device.kind() {
            DeviceKind::AfXdp | DeviceKind::AfPacket | DeviceKind::Tap => self.interface_health(),
            DeviceKind::Memif | DeviceKind::VhostUser => match self.link() {
                Ok(link) if link.up => Health::Up,
                _ => Health::Down(Cause::NoPeer),
            },
            DeviceKind::VirtioUser => match self.link() {
                Ok(link) if link.up => Health::Up,
                // As a client it connects once, when it is opened.
                _ if handle.device.option("server") == Some("1") => Health::Down(Cause::NoPeer),
                _ => Health::Gone(Cause::NoPeer),
            },
            DeviceKind::Pci => {
                // SAFETY: the port is open.
                if unsafe { ffi::rte_eth_dev_is_removed(handle.id) } == 1 {
                    return Health::Gone(Cause::Removed);
                }
                match self.link() {
                    Ok(link) if link.up => Health::Up,
                    _ => Health::Down(Cause::NoLink),
                }
            }
            DeviceKind::Pcap | DeviceKind::Null => Health::Up,
        }
    }

    /// af_packet and af_xdp report a link that is up even when the interface is deleted, so the
    /// kernel is asked.
    fn interface_health(&self) -> Health {
        let Some(name) = self.handle.device.interface() else { return Health::Up };
        if interface_index(name) != self.handle.interface {
            // The kernel's end of a tap may have moved to another network namespace.
            return match self.handle.device.kind() {
                DeviceKind::Tap if tap_exists(name, &self.handle.tap) => Health::Up,
                _ => Health::Gone(Cause::InterfaceDeleted),
            };
        }
        match interface_flags(name) {
            None => Health::Gone(Cause::InterfaceDeleted),
            Some(flags) if flags & libc::IFF_UP == 0 => Health::Down(Cause::InterfaceDown),
            Some(flags) if flags & libc::IFF_RUNNING == 0 => Health::Down(Cause::NoCarrier),
            Some(_) => Health::Up,
        }
    }
}

/// Whether one of our file descriptors belongs to a tap of this name: it does until the kernel's end
/// is deleted, wherever that is. `last`: the one that did when this was asked before.
fn tap_exists(name: &str, last: &AtomicI32) -> bool {
    let belongs = |fd: i32| {
        let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
        text.lines().any(|line| line.strip_prefix("iff:").is_some_and(|of| of.trim() == name))
    };
    if belongs(last.load(Ordering::Relaxed)) {
        return true;
    }
    let Ok(descriptors) = std::fs::read_dir("/proc/self/fdinfo") else { return false };
    let mut numbers =
        descriptors.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let found = numbers.find(|fd| belongs(*fd));
    last.store(found.unwrap_or(-1), Ordering::Relaxed);
    found.is_some()
}
