//! The kernel's side of a port: what a filter names goes to a tap, and what comes from the tap leaves by the
//! port.

use std::sync::Arc;

use dpdk::{Buffer, BufferPool};

use crate::{Exits, Filter, Function, PortId, Reason};

/// Knows frames that stay on this side whatever a filter says.
pub trait Served: std::fmt::Debug + Send + Sync {
    /// Whether a stack is to get what is in the frame.
    fn serves(&self, frame: &[u8]) -> bool;
}

/// What goes to the kernel.
#[derive(Debug, Clone)]
pub struct KernelFilter {
    /// Which frames.
    pub filter: Filter,
    /// The kernel gets a copy, and the frame goes on.
    pub copy: bool,
}

/// A port and its tap, on one worker.
#[derive(Debug, Clone)]
pub struct KernelSide {
    /// The port.
    pub port: PortId,
    /// The port whose device is the tap.
    pub tap: PortId,
    /// What goes to the tap.
    pub filters: Vec<KernelFilter>,
    /// So do frames of protocols that the router does not know.
    pub others: bool,
    /// What stacks serve goes to the kernel as a copy at most.
    pub served: Option<Arc<dyn Served>>,
    /// For copies.
    pub pool: BufferPool,
}

impl KernelSide {
    /// Whether the frame goes to the kernel, and whether as a copy.
    fn verdict(&self, frame: &[u8]) -> Option<bool> {
        let found = self.filters.iter().find(|one| one.filter.matches(self.port, frame));
        let served = || self.served.as_ref().is_some_and(|served| served.serves(frame));
        match found {
            Some(one) => (one.copy || !served()).then_some(one.copy),
            None => (self.others && Filter::is_foreign(frame)).then_some(false),
        }
    }
}

impl Function for KernelSide {
    fn receive(
        &mut self,
        port: PortId,
        packets: &mut [Option<Buffer>],
        exits: &mut Exits,
        now: u64,
    ) {
        if port == self.tap {
            for buffer in packets.iter_mut().filter_map(Option::take) {
                exits.transmit(buffer, self.port, now);
            }
        } else if port == self.port {
            for place in packets {
                let Some(copy) = place.as_ref().and_then(|one| self.verdict(one.data())) else {
                    continue;
                };
                let buffer = if copy {
                    place.as_ref().and_then(|buffer| buffer.copy(&self.pool))
                } else {
                    place.take()
                };
                match buffer {
                    Some(buffer) => exits.transmit(buffer, self.tap, now),
                    // The frame itself goes on.
                    None => exits.counters.drops[Reason::NoBuffer as usize].add(1),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{Outside, own_pool, packet};

    fn frame(ether_type: u16, protocol: u8) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        bytes.extend(ether_type.to_be_bytes());
        bytes.extend([0x45, 0, 0, 20, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.resize(60, 0);
        bytes
    }

    #[test]
    fn the_kernel_gets_what_is_its_own_and_the_wire_what_it_sends() {
        let pool = own_pool("kernel", 63);
        let mut outside = Outside::new(2, 0, 64);
        let one = |protocol: &str, copy| KernelFilter {
            filter: Filter { protocol: Some(protocol.parse().unwrap()), ..Filter::default() },
            copy,
        };
        let filters = vec![one("tcp", false), one("icmp", true)];
        let served = None;
        let mut side = KernelSide {
            port: PortId::new(0),
            tap: PortId::new(1),
            filters,
            others: true,
            served,
            pool,
        };
        let frames = [frame(0x0800, 6), frame(0x0800, 1), frame(0x0800, 17), frame(0x88cc, 0)];
        let mut packets: Vec<_> = frames.iter().map(|bytes| Some(packet(&pool, bytes))).collect();
        side.receive(PortId::new(0), &mut packets, &mut outside.exits, 0);
        let left: Vec<_> = packets.iter().map(Option::is_some).collect();
        assert_eq!(left, [false, true, true, false]);
        let mut from_tap = [Some(packet(&pool, &frame(0x0800, 17)))];
        side.receive(PortId::new(1), &mut from_tap, &mut outside.exits, 0);
        let mut elsewhere = [Some(packet(&pool, &frame(0x0800, 6)))];
        side.receive(PortId::new(5), &mut elsewhere, &mut outside.exits, 0);
        assert!(from_tap[0].is_none() && elsewhere[0].is_some());
        let counters = std::sync::Arc::clone(&outside.counters);
        outside.exits.output.flush(&counters);
        assert_eq!((outside.sent(1).len(), outside.sent(0).len()), (3, 1));
        drop((packets, elsewhere));
        assert_eq!(pool.available(), 63);
    }

    /// Serves TCP.
    #[derive(Debug)]
    struct Tcp;

    impl Served for Tcp {
        fn serves(&self, frame: &[u8]) -> bool {
            frame[14 + 9] == 6
        }
    }

    #[test]
    fn what_stacks_serve_goes_to_the_kernel_as_a_copy_at_most() {
        let pool = own_pool("kernel-served", 63);
        let mut outside = Outside::new(2, 0, 64);
        let all = |copy| KernelFilter { filter: Filter::default(), copy };
        let side = |copy| KernelSide {
            port: PortId::new(0),
            tap: PortId::new(1),
            filters: vec![all(copy)],
            others: true,
            served: Some(Arc::new(Tcp)),
            pool,
        };
        for (copy, left_in_place, to_kernel) in [(false, [true, false], 1), (true, [true, true], 2)]
        {
            let frames = [frame(0x0800, 6), frame(0x0800, 17)];
            let mut packets = frames.map(|bytes| Some(packet(&pool, &bytes)));
            side(copy).receive(PortId::new(0), &mut packets, &mut outside.exits, 0);
            assert_eq!(packets.each_ref().map(Option::is_some), left_in_place);
            let counters = Arc::clone(&outside.counters);
            outside.exits.output.flush(&counters);
            assert_eq!(outside.sent(1).len(), to_kernel);
        }
        assert_eq!(pool.available(), 63);
    }
}
