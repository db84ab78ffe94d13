//! Memory of others that a port's device may fill.

use shm::Region;

use crate::ffi;

/// Bytes of a page of a segment.
const PAGE: usize = 4096;

/// Memory that the device of a port may write packets into: for [`SharedPool::lend`](super::SharedPool::lend). To be
/// dropped when no buffer lies in it any more.
#[derive(Debug)]
pub struct DeviceMemory {
    region: Region,
    /// The port of a device that reaches memory by itself.
    mapped: Option<u16>,
}

impl DeviceMemory {
    /// Memory that the device of port `mapped` reaches by itself, which was told of it; `None`: a driver copies.
    pub(crate) fn new(region: Region, mapped: Option<u16>) -> Self {
        Self { region, mapped }
    }

    /// Bytes of its whole pages.
    pub(crate) fn length(region: &Region) -> usize {
        region.length() / PAGE * PAGE
    }

    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// Whether devices that reach memory by themselves reach it.
    pub(crate) fn is_mapped(&self) -> bool {
        self.mapped.is_some()
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if let Some(port) = self.mapped {
            let length = Self::length(&self.region);
            // SAFETY: takes back what `reach` did; a port that is gone meanwhile is no error.
            unsafe { ffi::millrace_dma_unmap(port, self.region.base().as_ptr().cast(), length) };
        }
    }
}
