//! Counters of one worker. The worker alone writes them; any thread may read them.

use std::sync::atomic::{AtomicU64, Ordering};

use dpdk::Taken;

use crate::Reason;

/// One number with one writer: adding is a plain load and store, no locked instruction.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Only the owning worker may call this: a second writer would lose counts.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// The count so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What went through one node.
#[derive(Debug, Default)]
pub struct NodeCounters {
    /// Calls of the node.
    pub vectors: Counter,
    /// Packets given to it.
    pub packets: Counter,
    /// Packets among those whose cycles were measured (one vector in 16).
    pub sampled_packets: Counter,
    /// TSC cycles spent on the sampled packets.
    pub sampled_cycles: Counter,
}

/// What went through one port on this worker.
#[derive(Debug, Default)]
pub struct PortCounters {
    /// Packets received.
    pub rx_packets: Counter,
    /// Bytes received.
    pub rx_bytes: Counter,
    /// Packets handed to the driver.
    pub tx_packets: Counter,
    /// Bytes handed to the driver.
    pub tx_bytes: Counter,
    /// Packets that the driver did not take.
    pub tx_dropped: Counter,
}

impl PortCounters {
    /// Counts what the driver took.
    #[inline]
    pub(crate) fn sent(&self, Taken { packets, bytes }: Taken) {
        self.tx_packets.add(packets as u64);
        self.tx_bytes.add(bytes);
    }
}

/// All counters of one worker.
#[derive(Debug)]
pub struct Counters {
    /// By node, in the graph's order.
    pub nodes: Box<[NodeCounters]>,
    /// By drop reason.
    pub drops: [Counter; Reason::COUNT],
    /// By port.
    pub ports: Box<[PortCounters]>,
    /// Rounds of the worker's loop.
    pub rounds: Counter,
    /// Rounds that found no packet.
    pub idle_rounds: Counter,
    /// TSC cycles spent in rounds that found packets.
    pub busy_cycles: Counter,
    /// TSC cycles spent polling for nothing.
    pub idle_cycles: Counter,
    /// TSC cycles spent asleep.
    pub sleep_cycles: Counter,
    /// Packets received from devices and rings.
    pub packets: Counter,
    /// Packets handed to the control thread.
    pub punts: Counter,
    /// Times that the worker slept.
    pub sleeps: Counter,
    /// ICMP errors that were due, and not sent because of their rate limit.
    pub icmp_limited: Counter,
    /// Receive bursts by size: 0 packets, 1, 2-3, 4-7, ... 128-255, 256.
    pub bursts: [Counter; BURST_SIZES],
}

/// Classes in [`Counters::bursts`].
pub const BURST_SIZES: usize = 10;

impl Counters {
    /// Counters for a graph of `nodes` nodes and `ports` ports, all zero.
    #[must_use]
    pub fn new(nodes: usize, ports: usize) -> Self {
        Self {
            nodes: (0..nodes).map(|_| NodeCounters::default()).collect(),
            drops: std::array::from_fn(|_| Counter::default()),
            ports: (0..ports).map(|_| PortCounters::default()).collect(),
            rounds: Counter::default(),
            idle_rounds: Counter::default(),
            busy_cycles: Counter::default(),
            idle_cycles: Counter::default(),
            sleep_cycles: Counter::default(),
            packets: Counter::default(),
            punts: Counter::default(),
            sleeps: Counter::default(),
            icmp_limited: Counter::default(),
            bursts: std::array::from_fn(|_| Counter::default()),
        }
    }

    /// Counts a receive burst by its size.
    #[inline]
    pub(crate) fn burst(&self, packets: usize) {
        let class = (usize::BITS - packets.leading_zeros()) as usize;
        self.bursts[class.min(BURST_SIZES - 1)].add(1);
    }
}
