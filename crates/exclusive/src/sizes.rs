//! How many buffers the devices need, and how much memory those take.

use dpdk::{Device, DeviceKind, HEADROOM};

use crate::{Dispatch, Options};

/// Buffers that a thread keeps at hand.
pub(crate) const CACHE: u32 = 256;
/// What a thread holds in its cache and in a burst at most: 1.5 caches, and some.
const PER_THREAD: u32 = 512;
/// What an AF_XDP queue lends the kernel, and as much again, below which the binding makes a pool of its own.
const XDP: u32 = 4096;
/// An mbuf and the pool's own book-keeping: bytes.
const BOOK_KEEPING: u64 = 192;
/// DPDK itself, and the rings of a port: MB.
const BASE: u64 = 64;
const PER_PORT: u64 = 4;

/// Receive queues of each device.
pub(crate) fn receive_queues(queues: u16, dispatch: Dispatch) -> u16 {
    match dispatch {
        Dispatch::RoundRobin => queues,
        Dispatch::Port => 1,
    }
}

/// Buffers: all rings full, all caches full, and what the program holds.
pub(crate) fn buffers(devices: &[Device], queues: u16, options: &Options) -> u32 {
    let queues_in = u32::from(receive_queues(queues, options.dispatch));
    let rings = (queues_in + u32::from(queues)) * u32::from(options.descriptors);
    let port = |device: &Device| match device.kind() {
        DeviceKind::AfXdp => rings.saturating_add(queues_in * XDP),
        _ => rings,
    };
    let own = u32::from(queues) * PER_THREAD;
    devices.iter().map(port).fold(own.saturating_add(options.buffers), u32::saturating_add)
}

/// Memory for DPDK: MB.
pub(crate) fn megabytes(devices: &[Device], buffers: u32, options: &Options) -> u32 {
    let buffer = u64::from(options.capacity) + u64::from(HEADROOM) + BOOK_KEEPING;
    let pool = (u64::from(buffers) * buffer).div_ceil(1 << 20);
    u32::try_from(BASE + pool + PER_PORT * devices.len() as u64).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ring_and_thread_has_its_buffers() {
        let device = |text: &str| text.parse::<Device>().unwrap();
        let mut options = Options { descriptors: 100, buffers: 7, ..Options::default() };
        let two = [device("null"), device("null")];
        assert_eq!(buffers(&two, 3, &options), 2 * (3 + 3) * 100 + 3 * 512 + 7);
        options.dispatch = Dispatch::Port;
        assert_eq!(buffers(&two, 3, &options), 2 * (1 + 3) * 100 + 3 * 512 + 7);
        let lent = buffers(&[device("afxdp:lo")], 3, &options);
        assert_eq!(lent, (1 + 3) * 100 + 4096 + 3 * 512 + 7);
        options.buffers = u32::MAX;
        assert_eq!(buffers(&two, 64, &options), u32::MAX, "the pool refuses that");
        // 2,048 bytes, 128 of headroom, 192 of book-keeping.
        assert_eq!(megabytes(&two, 1 << 20, &options), 64 + 2368 + 8);
    }
}
