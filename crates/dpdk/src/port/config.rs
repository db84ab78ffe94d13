//! How a port is to be opened, and what can go wrong.

use std::fmt;

use crate::{BufferPool, DeviceError, EalError, PoolError};

/// How a port is to be opened.
#[derive(Debug, Clone)]
pub struct PortConfig {
    /// Receive queues, at least 1.
    pub rx_queues: u16,
    /// Transmit queues, at least 1.
    pub tx_queues: u16,
    /// Descriptors of each receive queue.
    pub rx_descriptors: u16,
    /// Descriptors of each transmit queue.
    pub tx_descriptors: u16,
    /// Largest network-layer packet: bytes. `None` leaves what the device has.
    pub mtu: Option<u16>,
    /// Where receive queue `i` gets its buffers: pool `i` modulo their number. Take pools of the
    /// device's NUMA node.
    pub pools: Vec<BufferPool>,
    /// Spread flows over the receive queues in hardware, where the device can.
    pub rss: bool,
    /// Receive every frame, whatever its destination MAC address.
    pub promiscuous: bool,
    /// Prepare receive interrupts, where the device has them.
    pub rx_interrupts: bool,
}

impl PortConfig {
    /// One queue pair with 1024 descriptors each, fed from `pool`, promiscuous.
    #[must_use]
    pub fn new(pool: BufferPool) -> Self {
        Self {
            rx_queues: 1,
            tx_queues: 1,
            rx_descriptors: 1024,
            tx_descriptors: 1024,
            mtu: None,
            pools: vec![pool],
            rss: true,
            promiscuous: true,
            rx_interrupts: false,
        }
    }
}

/// What the port has instead of what was asked for, because the device can do no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adjustment {
    /// Receive queues: asked, given.
    RxQueues(u16, u16),
    /// Transmit queues: asked, given.
    TxQueues(u16, u16),
    /// Receive descriptors: asked, given.
    RxDescriptors(u16, u16),
    /// Transmit descriptors: asked, given.
    TxDescriptors(u16, u16),
    /// Several receive queues, but the device does not spread flows over them by RSS.
    NoRss,
    /// The device cannot be put into promiscuous mode.
    NotPromiscuous,
    /// The device has no receive interrupts.
    NoInterrupts,
    /// The device cannot change its MTU: asked, given.
    Mtu(u16, u16),
}

impl fmt::Display for Adjustment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RxQueues(asked, given) => write!(f, "{given} receive queues, not {asked}"),
            Self::TxQueues(asked, given) => write!(f, "{given} transmit queues, not {asked}"),
            Self::RxDescriptors(asked, given) => {
                write!(f, "{given} receive descriptors, not {asked}")
            }
            Self::TxDescriptors(asked, given) => {
                write!(f, "{given} transmit descriptors, not {asked}")
            }
            Self::NoRss => f.write_str("no RSS in hardware"),
            Self::NotPromiscuous => f.write_str("no promiscuous mode"),
            Self::NoInterrupts => f.write_str("no receive interrupts"),
            Self::Mtu(asked, given) => write!(f, "MTU {given}, not {asked}"),
        }
    }
}

/// Why a port operation failed.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum PortError {
    /// EAL does not run.
    #[error(transparent)]
    Eal(#[from] EalError),
    /// The device is not there or its driver refused it.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A buffer pool that the port needs of its own could not be made.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The configuration cannot work on any device.
    #[error("port {port}: {problem}")]
    Config {
        /// The device string.
        port: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The MTU is out of the device's range.
    #[error("port {port}: an MTU of {mtu} is out of range: the device takes {min} to {max}")]
    Mtu {
        /// The device string.
        port: String,
        /// Asked for.
        mtu: u16,
        /// Lowest possible.
        min: u16,
        /// Highest possible.
        max: u16,
    },
    /// Frames of the MTU do not fit into a buffer, and the device cannot scatter them.
    #[error(
        "port {port}: a frame of {frame} bytes does not fit into buffers of {room}: lower the MTU \
         or give the port a pool of larger buffers"
    )]
    Buffers {
        /// The device string.
        port: String,
        /// Longest frame: bytes.
        frame: u32,
        /// A buffer's data room: bytes.
        room: u16,
    },
    /// Queues of the port are still in use: it closes when the last of them is dropped.
    #[error("port {port}: {queues} of its queues are still in use")]
    Busy {
        /// The device string.
        port: String,
        /// How many.
        queues: usize,
    },
    /// The driver does not have this function.
    #[error("port {port}: the driver cannot {operation}")]
    Unsupported {
        /// The device string.
        port: String,
        /// What was asked.
        operation: &'static str,
    },
    /// The driver failed.
    #[error("port {port}: cannot {operation}: {reason}")]
    Driver {
        /// The device string.
        port: String,
        /// What was asked.
        operation: &'static str,
        /// The error's words.
        reason: String,
    },
}
