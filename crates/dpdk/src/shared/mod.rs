//! Buffers whose bytes another process may read and write while a device or this process holds them.
//!
//! A [`SharedPool`] feeds one receive queue. Its buffers have memory of their own, like those of every pool, until
//! they are lent: then the bytes of each lie in a place of somebody's segment, and what the device receives lands
//! there. The books about a buffer (length, where the packet begins) stay in memory of ours alone.
//!
//! Nobody can stop the other process from writing at any time, so no reference into such memory is ever made:
//! a [`SharedBuffer`] can be copied, referred to and sent, not read.

mod buffer;
mod memory;
mod pool;

pub use buffer::SharedBuffer;
pub use memory::DeviceMemory;
pub use pool::{NoPlace, SharedPool};
