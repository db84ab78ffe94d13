//! Counters of ports, added and subtracted.

use control::api::PortCounters;

/// Both together.
pub(crate) fn add(a: &PortCounters, b: &PortCounters) -> PortCounters {
    join(a, b, u64::saturating_add)
}

/// What `a` has more than `b`.
pub(crate) fn less(a: &PortCounters, b: &PortCounters) -> PortCounters {
    join(a, b, u64::saturating_sub)
}

fn join(a: &PortCounters, b: &PortCounters, with: fn(u64, u64) -> u64) -> PortCounters {
    PortCounters {
        rx_packets: with(a.rx_packets, b.rx_packets),
        rx_bytes: with(a.rx_bytes, b.rx_bytes),
        rx_missed: with(a.rx_missed, b.rx_missed),
        rx_errors: with(a.rx_errors, b.rx_errors),
        rx_no_buffer: with(a.rx_no_buffer, b.rx_no_buffer),
        tx_packets: with(a.tx_packets, b.tx_packets),
        tx_bytes: with(a.tx_bytes, b.tx_bytes),
        tx_dropped: with(a.tx_dropped, b.tx_dropped),
        tx_errors: with(a.tx_errors, b.tx_errors),
    }
}
