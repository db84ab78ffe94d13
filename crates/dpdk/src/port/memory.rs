//! Memory of others that a port's device may fill.

use shm::Region;

use super::{Port, PortError};
use crate::{DeviceKind, ffi};

/// Bytes of a page of a segment.
const PAGE: usize = 4096;

/// Memory that the device of a port may write packets into: for [`SharedPool::lend`](crate::SharedPool::lend). To be
/// dropped when no buffer lies in it any more.
#[derive(Debug)]
pub struct DeviceMemory {
    region: Region,
    /// The port of a device that reaches memory by itself.
    mapped: Option<u16>,
}

impl DeviceMemory {
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// Whether devices that reach memory by themselves reach it.
    pub(crate) fn is_mapped(&self) -> bool {
        self.mapped.is_some()
    }
}

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
            | DeviceKind::Null => Ok(DeviceMemory { region, mapped: None }),
            // AF_XDP sockets have the pool itself for their memory, virtio's other end has maps of DPDK's.
            DeviceKind::AfXdp | DeviceKind::VirtioUser => Err(PortError::Unsupported {
                port: self.device().to_string(),
                operation: "receive into memory of others",
            }),
            DeviceKind::Pci => {
                let length = region.length() / PAGE * PAGE;
                // SAFETY: the port is open, and the region is mapped for as long as the value that we return lives.
                let rc = unsafe {
                    ffi::millrace_dma_map(self.id(), region.base().as_ptr().cast(), length)
                };
                self.handle.result(rc, "reach memory of others (that needs an IOMMU, vfio-pci)")?;
                Ok(DeviceMemory { region, mapped: Some(self.id()) })
            }
        }
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if let Some(port) = self.mapped {
            let length = self.region.length() / PAGE * PAGE;
            // SAFETY: takes back what `reach` did; a port that is gone meanwhile is no error.
            unsafe { ffi::millrace_dma_unmap(port, self.region.base().as_ptr().cast(), length) };
        }
    }
}
