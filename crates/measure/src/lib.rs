//! What a benchmark of network devices is made of: test frames, offered loads, what became of each frame, and the
//! searches of RFC 2544. No I/O and no clock: frames and times come in as arguments.
//!
//! | module | job |
//! | --- | --- |
//! | `frame` | frames that say when they were sent and whether they are intact |
//! | `load` | frame sizes, flows, and when each frame is due |
//! | `outcome` | lost, duplicated, reordered, corrupted; latency |
//! | `search` | throughput, frame loss rate, back-to-back frames (RFC 2544 26, RFC 9004) |
#![forbid(unsafe_code)]

pub mod frame;
pub mod load;
pub mod outcome;
pub mod search;
