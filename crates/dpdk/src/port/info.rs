//! What a device can do, what it counts, and how it is.

/// What a device can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortInfo {
    /// DPDK's driver.
    pub driver: String,
    /// Most receive queues.
    pub max_rx_queues: u16,
    /// Most transmit queues.
    pub max_tx_queues: u16,
    /// Lowest MTU: bytes.
    pub min_mtu: u16,
    /// Highest MTU: bytes.
    pub max_mtu: u16,
    /// NUMA node, where the device is on one.
    pub socket: Option<u32>,
    /// Receive offloads: `RTE_ETH_RX_OFFLOAD_*`.
    pub rx_offloads: u64,
    /// Transmit offloads: `RTE_ETH_TX_OFFLOAD_*`.
    pub tx_offloads: u64,
    /// Whether it spreads flows over its receive queues.
    pub rss: bool,
}

/// What a port has counted since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortStats {
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets that the device dropped because nobody took them in time.
    pub rx_missed: u64,
    /// Packets received with errors.
    pub rx_errors: u64,
    /// Packets that could not be sent.
    pub tx_errors: u64,
    /// Packets dropped because the buffer pool was empty.
    pub rx_no_buffer: u64,
}

/// A port's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Whether there is one.
    pub up: bool,
    /// Its speed, where known: Mbit/s.
    pub speed: Option<u32>,
}

/// Whether a port can carry packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It can.
    Up,
    /// Not now; it will by itself when the cause is gone.
    Down(Cause),
    /// Never again: close it, and open it anew when the device is back.
    Gone(Cause),
}

/// Why a port carries no packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The kernel's interface is set down.
    InterfaceDown,
    /// The kernel's interface has no carrier: its other end is down.
    NoCarrier,
    /// The kernel's interface was deleted, or another one has its name.
    InterfaceDeleted,
    /// The other process is not connected.
    NoPeer,
    /// The device reports no link.
    NoLink,
    /// The device was unplugged.
    Removed,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::InterfaceDown => "the interface is set down",
            Self::NoCarrier => "the interface has no carrier",
            Self::InterfaceDeleted => "the interface was deleted",
            Self::NoPeer => "no peer is connected",
            Self::NoLink => "no link",
            Self::Removed => "the device was removed",
        })
    }
}
