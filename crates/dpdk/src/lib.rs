//! The binding to DPDK: environment, ports, buffer pools and buffers.
//!
//! | file | job |
//! | --- | --- |
//! | `shim` | what is inline in DPDK's headers or differs between its releases |
//! | `eal` | DPDK's environment: one per process, hugepages or not |
//! | `thread` | a buffer cache for a thread |
//! | `clock` | the time-stamp counter |
//! | `pool`, `buffer`, `segments` | packets and where they come from |
//! | `shared` | packets in memory that another process may write |
//! | `device` | device strings and their drivers |
//! | `yardstick` | feature `yardsticks`: what the bench compares with |
//! | `port` | a device, configured and started, with its queues |

mod buffer;
mod clock;
mod device;
mod eal;
mod ffi;
mod pool;
mod port;
mod segments;
mod shared;
mod thread;
#[cfg(feature = "yardsticks")]
pub mod yardstick;

pub use buffer::{Buffer, Checksum};
pub use clock::{tsc, tsc_hz};
pub use device::{Device, DeviceError, DeviceKind};
pub use eal::{Eal, EalError, EalOptions, Memory, close_on_exec};
pub use pool::{BufferPool, HEADROOM, PoolError, free_bulk};
pub use port::{
    Adjustment, Cause, Health, Link, Opened, Port, PortConfig, PortError, PortInfo, PortStats,
    RxQueue, Taken, TxQueue, bus_holder,
};
pub use segments::{Segment, Segments};
pub use shared::{DeviceMemory, NoPlace, SharedBuffer, SharedPool};
pub use thread::{Registration, ThreadError, lcore_id, register_thread};
