//! Ports: a device, configured and started, with its queues.
//!
//! What the drivers of DPDK 22.11 do when the other side goes away, and what [`Port::health`] makes
//! of it. All kinds work in hugepages and in ordinary memory.
//!
//! | kind | driver | [`Health`] | afterwards |
//! | --- | --- | --- | --- |
//! | `afpacket`, interface deleted | link stays up, receives 0, counts `tx_errors` | `Gone` | open again |
//! | `afxdp`, interface deleted | link stays up, receives 0, counts packets as sent and keeps their buffers | `Gone` | open again |
//! | both, interface or its peer set down | link stays up | `Down` | works again by itself |
//! | `memif`, peer gone | link down, receives 0, sends 0 | `Down` | connects again by itself |
//! | `vhost-user`; `virtio-user,server=1` | link down, receives 0, sends 0 | `Down` | connects again by itself |
//! | `virtio-user` as client | link down | `Gone` | open again |
//!
//! What a `memif` port shared with a peer that has gone is unmapped once no burst is under way that could read it (`bursts`).
//!
//! `afxdp` keeps 2048 buffers of its pool for each queue at every close; see `Opening::pool_for`.
//! Receive interrupts exist for `pci`, `tap`, `vhost-user` and `virtio-user`.

mod bursts;
mod bus;
mod config;
mod handle;
mod health;
mod info;
mod memory;
mod open;
mod queue;
mod xdp;

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

pub use config::{Adjustment, PortConfig, PortError};
pub use handle::bus_holder;
pub use info::{Cause, Health, Link, PortInfo, PortStats};
pub use queue::{RxQueue, Taken, TxQueue};

use crate::{Device, ffi};
use handle::Handle;

/// An open port: its control side. The queues are handles of their own.
///
/// It can move to another thread but not be shared: drivers do not lock their control paths.
#[derive(Debug)]
pub struct Port {
    handle: Arc<Handle>,
    info: PortInfo,
    one_thread: PhantomData<Cell<()>>,
}

/// A port that was just opened.
#[derive(Debug)]
pub struct Opened {
    /// Its control side.
    pub port: Port,
    /// Its receive queues in order.
    pub rx: Vec<RxQueue>,
    /// Its transmit queues in order.
    pub tx: Vec<TxQueue>,
    /// Where the device could not do what was asked.
    pub adjustments: Vec<Adjustment>,
}

impl Port {
    /// DPDK's port number, as in [`Buffer::port`](crate::Buffer::port).
    #[must_use]
    pub fn id(&self) -> u16 {
        self.handle.id
    }

    /// The device that it was opened on.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.handle.device
    }

    /// What the device can do.
    #[must_use]
    pub fn info(&self) -> &PortInfo {
        &self.info
    }

    /// Stops the port and removes its virtual device. Dropping it and its queues does the same;
    /// this tells when queues are left.
    ///
    /// # Errors
    /// [`PortError::Busy`] while queues of it exist: it closes when the last of them is dropped.
    pub fn close(self) -> Result<(), PortError> {
        let queues = Arc::strong_count(&self.handle) - 1;
        if queues == 0 {
            return Ok(());
        }
        Err(PortError::Busy { port: self.handle.device.to_string(), queues })
    }

    /// The MAC address.
    ///
    /// # Errors
    /// [`PortError::Driver`] when the device is gone.
    pub fn mac(&self) -> Result<[u8; 6], PortError> {
        let mut mac = [0; 6];
        // SAFETY: the port is open while `handle` lives; six bytes are written.
        let rc = unsafe { ffi::rte_eth_macaddr_get(self.id(), &mut mac) };
        self.handle.result(rc, "read the MAC address").map(|()| mac)
    }

    /// Changes the MAC address.
    ///
    /// # Errors
    /// [`PortError::Unsupported`] where the device keeps its own, or [`PortError::Driver`].
    pub fn set_mac(&mut self, mut mac: [u8; 6]) -> Result<(), PortError> {
        // SAFETY: the port is open while `handle` lives; six bytes are read.
        let rc = unsafe { ffi::rte_eth_dev_default_mac_addr_set(self.id(), &mut mac) };
        self.handle.result(rc, "change the MAC address")
    }

    /// The MTU: bytes of the network-layer packet.
    ///
    /// # Errors
    /// [`PortError::Driver`] when the device is gone.
    pub fn mtu(&self) -> Result<u16, PortError> {
        let mut mtu = 0;
        // SAFETY: the port is open while `handle` lives; one number is written.
        let rc = unsafe { ffi::rte_eth_dev_get_mtu(self.id(), &mut mtu) };
        self.handle.result(rc, "read the MTU").map(|()| mtu)
    }

    /// Changes the MTU while packets flow.
    ///
    /// # Errors
    /// [`PortError::Mtu`] out of the device's range, [`PortError::Unsupported`] where it cannot,
    /// [`PortError::Driver`] where it cannot while started.
    pub fn set_mtu(&mut self, mtu: u16) -> Result<(), PortError> {
        let (min, max) = (self.info.min_mtu, self.info.max_mtu);
        if !(min..=max).contains(&mtu) {
            let port = self.handle.device.to_string();
            return Err(PortError::Mtu { port, mtu, min, max });
        }
        // SAFETY: the port is open while `handle` lives.
        let rc = unsafe { ffi::rte_eth_dev_set_mtu(self.id(), mtu) };
        self.handle.result(rc, "change the MTU")
    }

    /// Receive every frame, or only those for the port's MAC address and groups.
    ///
    /// # Errors
    /// [`PortError::Unsupported`] or [`PortError::Driver`].
    pub fn set_promiscuous(&mut self, on: bool) -> Result<(), PortError> {
        // SAFETY: the port is open while `handle` lives.
        let rc = unsafe {
            if on {
                ffi::rte_eth_promiscuous_enable(self.id())
            } else {
                ffi::rte_eth_promiscuous_disable(self.id())
            }
        };
        self.handle.result(rc, "change promiscuous mode")
    }

    /// Receive every multicast frame, or only those asked for.
    ///
    /// # Errors
    /// [`PortError::Unsupported`] or [`PortError::Driver`].
    pub fn set_all_multicast(&mut self, on: bool) -> Result<(), PortError> {
        // SAFETY: the port is open while `handle` lives.
        let rc = unsafe {
            if on {
                ffi::rte_eth_allmulticast_enable(self.id())
            } else {
                ffi::rte_eth_allmulticast_disable(self.id())
            }
        };
        self.handle.result(rc, "change all-multicast mode")
    }

    /// The link as the driver sees it; [`health`](Self::health) knows more.
    ///
    /// # Errors
    /// [`PortError::Unsupported`] or [`PortError::Driver`].
    pub fn link(&self) -> Result<Link, PortError> {
        let mut speed = 0;
        // SAFETY: the port is open while `handle` lives; one number is written.
        let rc = unsafe { ffi::millrace_port_link(self.id(), &mut speed) };
        self.handle.result(rc, "read the link")?;
        let known = speed != 0 && speed != u32::MAX;
        Ok(Link { up: rc == 1, speed: known.then_some(speed) })
    }

    /// What the device has counted.
    ///
    /// # Errors
    /// [`PortError::Unsupported`] or [`PortError::Driver`].
    pub fn stats(&self) -> Result<PortStats, PortError> {
        let mut stats = ffi::Stats::default();
        // SAFETY: the port is open while `handle` lives; the shim fills the structure.
        let rc = unsafe { ffi::millrace_port_stats(self.id(), &mut stats) };
        self.handle.result(rc, "read the counters")?;
        Ok(PortStats {
            rx_packets: stats.rx_packets,
            tx_packets: stats.tx_packets,
            rx_bytes: stats.rx_bytes,
            tx_bytes: stats.tx_bytes,
            rx_missed: stats.rx_missed,
            rx_errors: stats.rx_errors,
            tx_errors: stats.tx_errors,
            rx_no_buffer: stats.rx_no_buffer,
        })
    }
}
