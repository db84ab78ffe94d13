//! Per-(core, port) transmit buffers with a drain time.

use dpdk::{Buffer, TxQueue};

use crate::{Counters, Handoff, HandoffSender, PortId, Reason};

/// Packets gathered per port before they go to the driver: the burst most drivers are tuned for.
const BURST: usize = 64;

/// Attempts to hand a burst to a driver whose queue is full, before the rest is dropped.
const ATTEMPTS: usize = 4;

/// How this worker reaches a port.
pub enum TransmitPath {
    /// Through a transmit queue of its own.
    Queue(TxQueue),
    /// Through another worker, because the device has fewer transmit queues than there are workers.
    Worker(HandoffSender),
}

struct PortBuffer {
    path: Option<TransmitPath>,
    waiting: Box<[Option<Buffer>; BURST]>,
    len: usize,
    since: u64,
}

/// The transmit buffers of one worker, one per port.
pub struct Output {
    ports: Vec<PortBuffer>,
    drain: u64,
}

impl Output {
    /// Buffers for `ports` ports, none with a path yet. `drain`: longest wait, TSC cycles.
    #[must_use]
    pub fn new(ports: usize, drain: u64) -> Self {
        let buffer = |_| PortBuffer {
            path: None,
            waiting: Box::new([const { None }; BURST]),
            len: 0,
            since: 0,
        };
        Self { ports: (0..ports).map(buffer).collect(), drain }
    }

    pub(crate) fn set_path(
        &mut self,
        port: PortId,
        path: Option<TransmitPath>,
        counters: &Counters,
    ) -> Option<TransmitPath> {
        let entry = self.ports.get_mut(usize::from(port))?;
        entry.flush(port, counters);
        std::mem::replace(&mut entry.path, path)
    }

    /// Buffers a packet for `port`; gives it back when the port has no path.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        port: PortId,
        buffer: Buffer,
        now: u64,
        counters: &Counters,
    ) -> Result<(), Buffer> {
        let Some(entry) = self.ports.get_mut(usize::from(port)) else { return Err(buffer) };
        if entry.path.is_none() {
            return Err(buffer);
        }
        if entry.len == 0 {
            entry.since = now;
        }
        entry.waiting[entry.len % BURST] = Some(buffer);
        entry.len += 1;
        if entry.len == BURST {
            entry.flush(port, counters);
        }
        Ok(())
    }

    /// Sends what has waited longer than the drain time.
    pub fn flush_due(&mut self, now: u64, counters: &Counters) {
        let drain = self.drain;
        for (port, entry) in self.waiting() {
            if now.wrapping_sub(entry.since) >= drain {
                entry.flush(port, counters);
            }
        }
    }

    /// Sends everything that waits.
    pub fn flush(&mut self, counters: &Counters) {
        for (port, entry) in self.waiting() {
            entry.flush(port, counters);
        }
    }

    fn waiting(&mut self) -> impl Iterator<Item = (PortId, &mut PortBuffer)> {
        let numbered = self.ports.iter_mut().enumerate();
        numbered.filter(|(_, entry)| entry.len > 0).map(|(port, entry)| (port as PortId, entry))
    }
}

impl PortBuffer {
    fn flush(&mut self, port: PortId, counters: &Counters) {
        let Some(count) = counters.ports.get(usize::from(port)) else { return };
        let burst = &mut self.waiting[..self.len];
        let bytes = |burst: &[Option<Buffer>]| -> u64 {
            burst.iter().flatten().map(|buffer| u64::from(buffer.packet_len())).sum()
        };
        let offered = bytes(burst);
        let sent = match &mut self.path {
            Some(TransmitPath::Queue(queue)) => send(queue, burst),
            Some(TransmitPath::Worker(ring)) => hand_over(ring, burst, port),
            None => 0,
        };
        let refused = burst.len() - sent;
        count.tx_packets.add(sent as u64);
        if refused > 0 {
            count.tx_bytes.add(offered - bytes(&burst[sent..]));
            count.tx_dropped.add(refused as u64);
            counters.drops[Reason::TransmitFull as usize].add(refused as u64);
            dpdk::free_bulk(&mut burst[sent..]);
        } else {
            count.tx_bytes.add(offered);
        }
        self.len = 0;
    }
}

fn send(queue: &mut TxQueue, burst: &mut [Option<Buffer>]) -> usize {
    let mut sent = 0;
    for _ in 0..ATTEMPTS {
        sent += queue.burst(&mut burst[sent..]);
        if sent == burst.len() {
            break;
        }
    }
    sent
}

fn hand_over(ring: &mut HandoffSender, burst: &mut [Option<Buffer>], port: PortId) -> usize {
    for (sent, slot) in burst.iter_mut().enumerate() {
        let Some(buffer) = slot.take() else { continue };
        let handoff =
            Handoff { buffer, entry: 0, interface: 0, egress: port, network: 0, next_hop: 0 };
        if let Err(rtrb::PushError::Full(handoff)) = ring.push(handoff) {
            *slot = Some(handoff.buffer);
            return sent;
        }
    }
    burst.len()
}
