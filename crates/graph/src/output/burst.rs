//! A burst of packets on its way out of a port.

use dpdk::{Buffer, Taken};

use super::TransmitPath;
use crate::capture::{Direction, Tap};
use crate::{Counters, HandoffSender, PortId, Reason};

/// Attempts to hand a burst to a driver whose queue is full, before the rest is dropped.
const ATTEMPTS: usize = 4;

/// Sends a burst by a port, whose places are empty then.
pub(super) fn send(
    burst: &mut [Option<Buffer>],
    port: PortId,
    path: &mut Option<TransmitPath>,
    counters: &Counters,
    tap: &mut Option<Box<Tap>>,
) {
    if let Some(tap) = tap {
        tap.burst(burst, port, Direction::Transmit);
    }
    let Some(count) = counters.ports.get(port.number()) else { return };
    let sent = match path {
        Some(TransmitPath::Queue(queue)) => {
            let sent = attempt(burst, |rest| queue.burst(rest));
            count.sent(sent);
            sent.packets
        }
        // The worker that owns the queue counts what it sends.
        Some(TransmitPath::Worker(ring)) => hand_over(ring, burst),
        None => 0,
    };
    let refused = &mut burst[sent..];
    if !refused.is_empty() {
        count.tx_dropped.add(refused.len() as u64);
        counters.drops[Reason::TransmitFull as usize].add(refused.len() as u64);
        if let Some(tap) = tap {
            tap.burst(refused, port, Direction::Drop(Reason::TransmitFull));
        }
        dpdk::free_bulk(refused);
    }
}

/// Gives a burst to a driver by `send`, which says what it took; the others are left at the end.
#[inline(always)]
pub(super) fn attempt<T>(burst: &mut [T], mut send: impl FnMut(&mut [T]) -> Taken) -> Taken {
    let mut sent = Taken::default();
    for _ in 0..ATTEMPTS {
        let Taken { packets, bytes } = send(&mut burst[sent.packets..]);
        sent.packets += packets;
        sent.bytes += bytes;
        if sent.packets == burst.len() {
            break;
        }
    }
    sent
}

fn hand_over(ring: &mut HandoffSender<Buffer>, burst: &mut [Option<Buffer>]) -> usize {
    let sent = ring.extend(burst);
    ring.notify();
    sent
}
