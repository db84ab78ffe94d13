//! Letting a port's device reach memory of others.

use shm::Region;

use super::{Port, PortError};
use crate::{DeviceKind, DeviceMemory, ffi};

impl Port {
    /// Lets the device reach `region`: whole pages, for a device that reaches memory by itself.
    ///
    /// # Errors
    /// [`PortError::Unsupported`] for drivers that only take packets in memory of their own; [`PortError::Driver`] where
    /// there is no IOMMU that would keep the device to it.
    pub fn reach(&self, region: Region) -> Result<DeviceMemory, PortError> {
        match self.device().kind() {
            // The drivers copy packets, from the kernel's memory or a peer's.
            DeviceKind::AfPacket
            | DeviceKind::Tap
            | DeviceKind::Memif
            | DeviceKind::VhostUser
            | DeviceKind::Pcap
            | DeviceKind::Null => Ok(DeviceMemory::new(region, None)),
            // AF_XDP sockets have the pool itself for their memory, virtio's other end has maps of DPDK's.
            DeviceKind::AfXdp | DeviceKind::VirtioUser => Err(PortError::Unsupported {
                port: self.device().to_string(),
                operation: "receive into memory of others",
            }),
            DeviceKind::Pci => {
                let length = DeviceMemory::length(&region);
                // SAFETY: the port is open, and the region is mapped for as long as the value that we return lives.
                let rc = unsafe {
                    ffi::millrace_dma_map(self.id(), region.base().as_ptr().cast(), length)
                };
                self.handle.result(rc, "reach memory of others (that needs an IOMMU, vfio-pci)")?;
                Ok(DeviceMemory::new(region, Some(self.id())))
            }
        }
    }
}
