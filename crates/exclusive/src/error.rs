//! What can go wrong, and what to do then.

use dpdk::{DeviceError, EalError, PoolError, PortError};

use crate::Packet;

/// Why devices could not be opened. Nothing is left open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// None, or too many.
    #[error("{0} devices: 1 to 255 can be opened")]
    Devices(usize),
    /// None, or too many.
    #[error("{0} queues: there is one for each thread, 1 to 64")]
    Queues(u16),
    /// Two ports of one name.
    #[error("two ports are called {0}: give each a name of its own")]
    Name(String),
    /// A device string that cannot be understood, or a device that is not there.
    #[error("port {name}: {source}")]
    Device {
        /// The port.
        name: String,
        /// What is wrong with its device string.
        source: DeviceError,
    },
    /// The device could not be opened.
    #[error("port {name}: {source}")]
    Port {
        /// The port.
        name: String,
        /// Why.
        source: PortError,
    },
    /// The device cannot give every thread a receive queue.
    #[error(
        "port {name} has {has} of {asked} receive queues, and each thread needs one of its own: open {has}, or bind \
         ports to threads (Dispatch::Port)"
    )]
    ReceiveQueues {
        /// The port.
        name: String,
        /// Receive queues that the device has.
        has: usize,
        /// Threads.
        asked: u16,
    },
    /// The device cannot give every thread a transmit queue.
    #[error(
        "port {name} has {has} of {asked} transmit queues, and each thread needs one of its own: open {has}"
    )]
    TransmitQueues {
        /// The port.
        name: String,
        /// Transmit queues that the device has.
        has: usize,
        /// Threads.
        asked: u16,
    },
    /// DPDK did not start.
    #[error(transparent)]
    Eal(#[from] EalError),
    /// Too little memory for the buffers.
    #[error(transparent)]
    Pool(#[from] PoolError),
}

/// Why a packet was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The device has not sent what it was given before; or it cannot send a packet as long as this one.
    #[error("the port's ring is full: send again later, or drop the packet")]
    Full,
    /// No port has that number.
    #[error("there is no port {0}: numbers are those of Devices::ports, from 0")]
    NoPort(u8),
    /// None or too many bytes.
    #[error("a packet of {length} bytes cannot be made: 1 to {most} are possible")]
    Length {
        /// Asked for.
        length: usize,
        /// Bytes that a buffer holds.
        most: usize,
    },
    /// The pool is empty.
    #[error("no buffer is free: release packets, or open the devices with more (Options::buffers)")]
    NoBuffer,
}

/// A packet that was not sent: it is still the caller's, to try again or to release.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Unsent {
    /// The packet.
    pub packet: Packet,
    /// Why.
    pub error: SendError,
}
