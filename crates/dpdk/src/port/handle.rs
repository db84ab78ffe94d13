//! A DPDK port number and the duty to give it back.

use std::ffi::{CString, c_int};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

use super::bursts::Bursts;
use super::bus::Bus;
use super::xdp::{self, Socket};
use super::{PortConfig, PortError};
use crate::device::{combined_queues, interface_index};
use crate::{Device, DeviceError, DeviceKind, ffi};

/// Every port's.
static BUS: Bus = Bus::new();
/// How long another device may have the bus before one is not opened: as long as its driver may take to close it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Virtual devices get a new name each time, so that an old one's remains are never met.
static NAMES: AtomicU32 = AtomicU32::new(0);

/// The device whose driver has DPDK's bus now: no other one is opened or closed meanwhile.
#[must_use]
pub fn bus_holder() -> Option<String> {
    BUS.holder()
}

/// An open port: its queues and its [`Port`](super::Port) share it, the last one closes it.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) id: u16,
    pub(super) device: Device,
    /// Index of the kernel's interface when the port was opened.
    pub(super) interface: Option<u32>,
    /// The descriptor of a tap whose kernel's end is in another network namespace; -1: not known.
    pub(super) tap: AtomicI32,
    /// AF_XDP sockets that opening it made.
    pub(super) sockets: Vec<Socket>,
    bus: &'static str,
    name: CString,
}

impl Handle {
    /// Creates the device (`pci`: finds it) for what `config` asks.
    pub(super) fn create(device: &Device, config: &PortConfig) -> Result<Self, PortError> {
        device.check()?;
        let (bus, name, arguments) = match device.kind() {
            DeviceKind::Pci => ("pci", device.argument().to_owned(), String::new()),
            kind => {
                let number = NAMES.fetch_add(1, Ordering::Relaxed);
                let (mut queues, ring) = (config.rx_queues, config.rx_descriptors);
                if kind == DeviceKind::AfXdp {
                    let start = device.option("start_queue").and_then(|text| text.parse().ok());
                    let all = combined_queues(device.argument());
                    // The driver refuses more than there are instead of taking those.
                    queues = queues.min(all.saturating_sub(start.unwrap_or(0)).max(1));
                }
                let arguments = device.arguments(queues, ring, config.mtu);
                ("vdev", format!("{}{number}", kind.driver()), arguments)
            }
        };
        let driver_error = |reason: String| DeviceError::Driver {
            kind: device.kind(),
            argument: device.argument().to_owned(),
            reason,
        };
        let c_string = |text: String| {
            CString::new(text).map_err(|_| driver_error("it holds a NUL byte".to_owned()))
        };
        let c_name = c_string(name)?;
        let c_arguments = c_string(arguments)?;
        let c_bus = c_string(bus.to_owned())?;
        let turn = BUS.take_within(PATIENCE, device.to_string()).map_err(|holder| {
            DeviceError::Waiting { device: device.to_string(), holder, seconds: PATIENCE.as_secs() }
        })?;
        let mut id = by_name(&c_name);
        if id.is_none() {
            // SAFETY: EAL runs (the caller has checked), and the strings outlive the call.
            let rc = unsafe {
                ffi::rte_eal_hotplug_add(c_bus.as_ptr(), c_name.as_ptr(), c_arguments.as_ptr())
            };
            if rc < 0 && device.kind() != DeviceKind::Pci {
                return Err(if driver_installed(device.kind()) {
                    driver_error(words(rc)).into()
                } else {
                    DeviceError::NoDriver { kind: device.kind() }.into()
                });
            }
            id = by_name(&c_name);
        }
        // Whoever drops a handle closes the port, with the queues of the other one.
        if id.is_some_and(|id| !turn.open(id)) {
            let address = device.argument().to_owned();
            return Err(DeviceError::InUse { address }.into());
        }
        drop(turn);
        let id = id.ok_or_else(|| match device.kind() {
            DeviceKind::Pci => DeviceError::NoPciPort { address: device.argument().to_owned() },
            _ => driver_error("it made no port".to_owned()),
        })?;
        let interface = device.interface().and_then(interface_index);
        let (tap, sockets) = (AtomicI32::new(-1), Vec::new());
        Ok(Self { id, device: device.clone(), interface, tap, sockets, bus, name: c_name })
    }

    /// For a new queue, where the driver needs to know of its bursts.
    pub(super) fn bursts(&self) -> Option<Bursts> {
        (self.device.kind() == DeviceKind::Memif).then(Bursts::new)
    }

    /// Turns a driver's return code into a result.
    pub(super) fn result(&self, rc: c_int, operation: &'static str) -> Result<(), PortError> {
        if rc >= 0 {
            return Ok(());
        }
        let port = self.device.to_string();
        Err(if rc == -libc::ENOTSUP || rc == -libc::ENOSYS {
            PortError::Unsupported { port, operation }
        } else {
            PortError::Driver { port, operation, reason: words(rc) }
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the port is ours alone, as `create` saw, and no queue of it is left; stopping a port that is not started
        // does nothing.
        unsafe { ffi::rte_eth_dev_stop(self.id) };
        let turn = BUS.take(self.device.to_string());
        // SAFETY: as above, and the bus is ours; removing a device that closing has already removed fails harmlessly.
        unsafe {
            ffi::rte_eth_dev_close(self.id);
            if let Ok(bus) = CString::new(self.bus) {
                ffi::rte_eal_hotplug_remove(bus.as_ptr(), self.name.as_ptr());
            }
        }
        turn.close(self.id);
        drop(turn);
        if !self.sockets.is_empty() {
            xdp::close(&self.sockets);
        }
    }
}

fn by_name(name: &CString) -> Option<u16> {
    let mut id = 0;
    // SAFETY: a C string and a number that outlive the call.
    let rc = unsafe { ffi::rte_eth_dev_get_port_by_name(name.as_ptr(), &mut id) };
    (rc == 0).then_some(id)
}

fn words(rc: c_int) -> String {
    std::io::Error::from_raw_os_error(rc.saturating_neg()).to_string()
}

/// Whether the driver's library is mapped: EAL loads all that the distribution has installed.
fn driver_installed(kind: DeviceKind) -> bool {
    let library = match kind {
        DeviceKind::VirtioUser => "librte_net_virtio.so".to_owned(),
        kind => format!("librte_{}.so", kind.driver()),
    };
    std::fs::read_to_string("/proc/self/maps").map_or(true, |maps| maps.contains(&library))
}
