//! From the configuration to the limits, times and switches of the forwarder.

use std::time::Duration;

use control::Config;
use control::config::Miss;
use forward::flow::FlowLimits;
use forward::neighbor::{Bounds, Timing};
use forward::rib;
use forward::state::Settings;

/// A number of the configuration as a size.
pub(crate) fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Varies the times at which neighbours are asked, from one start to the next.
pub(crate) fn seed() -> u64 {
    dpdk::tsc() ^ u64::from(std::process::id()).rotate_left(32)
}

/// Times of the neighbour state machine.
pub(crate) fn timing(config: &Config) -> Timing {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let neighbors = &config.neighbors;
    Timing {
        reachable_time: nanoseconds(neighbors.reachable_time),
        retrans_timer: nanoseconds(neighbors.retrans_timer),
        max_probes: neighbors.max_probes,
        delay_first_probe: nanoseconds(neighbors.delay_first_probe),
        stale_time: nanoseconds(neighbors.stale_time),
        ..Timing::default()
    }
}

/// What neighbours may take up.
pub(crate) fn bounds(config: &Config) -> Bounds {
    Bounds {
        neighbors: size(config.limits.neighbors),
        unresolved: size(config.limits.unresolved),
        queue: usize::from(config.neighbors.queue),
        // A quarter of the buffers may wait, so that the rest keeps packets going.
        waiting: size(config.memory.buffers / 4),
    }
}

/// Capacities of the flow tables.
pub(crate) fn flow_limits(config: &Config) -> FlowLimits {
    let (flows4, flows6) = (size(config.limits.flows4), size(config.limits.flows6));
    FlowLimits { flows4, flows6, translations: flows4.saturating_add(flows6).min(1 << 20) }
}

/// Capacities of the route tables.
pub(crate) fn limits(config: &Config) -> rib::Limits {
    let limits = &config.limits;
    let next_hops = size(limits.next_hops).saturating_add(size(limits.neighbors));
    rib::Limits {
        routes4: size(limits.routes4),
        routes6: size(limits.routes6),
        next_hops,
        groups: size(limits.next_hops).min(1 << 16),
    }
}

/// What a look-up miss does.
pub(crate) fn miss(config: &Config) -> rib::Miss {
    match config.forwarding.miss {
        Miss::Unreachable => rib::Miss::Unreachable,
        Miss::Drop => rib::Miss::Drop,
        Miss::Reflect => rib::Miss::Reflect,
    }
}

/// Switches that nodes read. `seed`: for ECMP, unless the configuration has one.
pub(crate) fn settings(config: &Config, seed: u64) -> Settings {
    Settings {
        martians: config.forwarding.martians,
        directed_broadcast: config.forwarding.directed_broadcast,
        icmp_rate: config.limits.icmp_rate,
        hash_seed: config.forwarding.ecmp_seed.map_or(seed, u64::from),
        flows4: config.limits.flows4 > 0,
        flows6: config.limits.flows6 > 0,
        tsc_hz: dpdk::tsc_hz(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn flows_are_spread_by_the_routers_own_seed_or_the_configurations() {
        let seeds = |text: &str| [3, 4].map(|own| settings(&testing::config(text), own).hash_seed);
        assert_eq!(seeds(""), [3, 4]);
        assert_eq!(seeds("[forwarding]\necmp-seed = 7\n"), [7, 7]);
        assert_eq!(seeds("[forwarding]\necmp-seed = 0\n"), [0, 0]);
    }
}
