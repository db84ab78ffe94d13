//! Times and bounds of the neighbour state machine.

/// Times, with the names of RFC 4861 10. All in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Base of the time that an answer is believed; each time a random 0.5 to 1.5 of it.
    pub reachable_time: u64,
    /// Between two questions.
    pub retrans_timer: u64,
    /// Questions in a row, to all and to the one alike.
    pub max_probes: u8,
    /// How long a used stale neighbour may take to show life by itself.
    pub delay_first_probe: u64,
    /// How long an unused stale neighbour is kept.
    pub stale_time: u64,
    /// How long packets to one that did not answer are refused.
    pub negative_time: u64,
}

const SECOND: u64 = 1_000_000_000;

impl Default for Timing {
    fn default() -> Self {
        Self {
            reachable_time: 30 * SECOND,
            retrans_timer: SECOND,
            max_probes: 3,
            delay_first_probe: 5 * SECOND,
            stale_time: 600 * SECOND,
            negative_time: 3 * SECOND,
        }
    }
}

/// Bounds: what somebody on the link can make us keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Neighbours whose address is known; beyond, the stale one unused for longest goes.
    pub neighbors: usize,
    /// Neighbours that are being asked for or did not answer; beyond, one that did not answer goes,
    /// else packets to new ones are dropped.
    pub unresolved: usize,
    /// Packets that wait for one neighbour; beyond, the oldest is dropped.
    pub queue: usize,
    /// Packets that wait in all; beyond, new ones are dropped.
    pub waiting: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { neighbors: 65_536, unresolved: 1024, queue: 16, waiting: 4096 }
    }
}
