//! What a process asks of its devices.

use dpdk::Memory;

/// How the devices' receive queues are given to the threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dispatch {
    /// Every device has as many receive queues as there are threads, dealt out in turn: each thread gets one of
    /// every port, and the device spreads flows over them.
    #[default]
    RoundRobin,
    /// Every device has one receive queue, and the devices are dealt out in turn: all that a port receives is one
    /// thread's.
    Port,
}

/// How devices are opened. The default: each thread receives from every port, rings of 1,024 descriptors, buffers
/// of 2,048 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Which thread receives from which port.
    pub dispatch: Dispatch,
    /// Descriptors of each receive and transmit queue.
    pub descriptors: u16,
    /// Largest network-layer packet: bytes. `None` leaves what each device has.
    pub mtu: Option<u16>,
    /// Packets that the threads together hold between receiving and sending, at most. When they hold more, devices
    /// run out of buffers and drop.
    pub buffers: u32,
    /// Bytes of packet that a buffer holds, at most 65,407. Longer packets take several, where the device can.
    pub capacity: u16,
    /// Which pages the buffers lie in.
    pub memory: Memory,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dispatch: Dispatch::RoundRobin,
            descriptors: 1024,
            mtu: None,
            buffers: 4096,
            capacity: 2048,
            memory: Memory::Auto,
        }
    }
}
