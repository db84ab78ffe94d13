//! One of the tester's ports: it sends one stream and receives the other.

use dpdk::{Buffer, BufferPool, RxQueue, TxQueue};
use measure::frame::{Reader, Signature, Stream, Template};
use measure::load::{Departure, Flows, Schedule};
use measure::outcome::Receiver;

use super::clock::Clock;

/// Frames sent, and taken, at once.
const BURST: usize = 32;
/// Frames that are thrown away at most before a trial: more than any ring holds, but a device may never stop to send.
const MOST_DRAINED: usize = 1 << 17;

/// What a port sends in a trial.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) trial: u16,
    pub(super) stream: u8,
    pub(super) schedule: Schedule,
    pub(super) flows: Flows,
    /// The frames of each size, and which of them each place of the cycle has.
    pub(super) templates: Vec<Template>,
    pub(super) cycle: Vec<usize>,
    pub(super) sent: Sent,
}

/// Frames so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sent {
    /// Those that were due and are in the next field or on their way.
    pub(super) offered: u64,
    /// The link did not take them.
    pub(super) refused: u64,
    /// There was no buffer for them: they were never offered.
    pub(super) starved: u64,
}

/// A port of the tester.
pub(super) struct Lane {
    pub(super) rx: RxQueue,
    pub(super) tx: TxQueue,
    pub(super) pool: BufferPool,
}

impl Sending {
    /// The frames of one stream: all sizes of a cycle.
    pub(super) fn new(
        stream: &Stream,
        cycle: &[u16],
        (trial, number): (u16, u8),
        flows: Flows,
        schedule: Schedule,
    ) -> Result<Self, measure::frame::FrameError> {
        let mut sizes = cycle.to_vec();
        sizes.sort_unstable();
        sizes.dedup();
        let templates =
            sizes.iter().map(|size| Template::new(stream, *size)).collect::<Result<_, _>>()?;
        let place = |size: &u16| sizes.binary_search(size).unwrap_or(0);
        let cycle = cycle.iter().map(place).collect();
        let sent = Sent::default();
        Ok(Self { trial, stream: number, schedule, flows, templates, cycle, sent })
    }

    /// Makes the frame of a departure in an empty buffer. `false`: it has no room.
    #[inline]
    fn write(&mut self, departure: Departure, buffer: &mut Buffer) -> bool {
        let template = self.cycle.get(departure.size).and_then(|at| self.templates.get(*at));
        let Some(template) = template else { return false };
        let Some(frame) = buffer.append(template.length()) else { return false };
        let signature = Signature {
            trial: self.trial,
            stream: self.stream,
            sequence: self.sent.offered,
            sent: departure.due,
        };
        template.write(frame, self.flows.next_flow(), &signature)
    }
}

impl Lane {
    /// Sends what is due, a burst at most.
    #[inline]
    pub(super) fn send(&mut self, sending: &mut Sending, clock: &Clock) {
        let now = clock.now();
        let mut due = [Departure { size: 0, due: 0 }; BURST];
        let mut count = 0;
        while let Some(departure) = (count < BURST).then(|| sending.schedule.due(now)).flatten() {
            due[count] = departure;
            count += 1;
        }
        if count == 0 {
            return;
        }
        let mut slots = [const { None }; BURST];
        if self.pool.alloc_bulk(&mut slots[..count]) < count {
            sending.sent.starved += count as u64;
            return;
        }
        for (departure, slot) in due.into_iter().zip(&mut slots[..count]) {
            let Some(buffer) = slot else { continue };
            if sending.write(departure, buffer) {
                sending.sent.offered += 1;
            } else {
                *slot = None;
                sending.sent.starved += 1;
            }
        }
        let sent = self.tx.burst(&mut slots[..count]);
        sending.sent.refused += slots[sent..count].iter().flatten().count() as u64;
        dpdk::free_bulk(&mut slots[sent..count]);
    }

    /// Takes what has come, a burst at most; gives how many frames.
    #[inline]
    pub(super) fn receive(
        &mut self,
        reader: &Reader,
        receiver: &mut Receiver,
        clock: &Clock,
    ) -> usize {
        let mut slots = [const { None }; BURST];
        let count = self.rx.burst(&mut slots);
        if count > 0 {
            let now = clock.now();
            for buffer in slots[..count].iter_mut().flatten() {
                // A frame in several pieces is read as one.
                let whole = !buffer.is_chained() || buffer.linearize();
                let data = if whole { buffer.data() } else { &[] };
                receiver.take(reader.read(data), now);
            }
            dpdk::free_bulk(&mut slots[..count]);
        }
        count
    }

    /// Throws away what waits.
    pub(super) fn drain(&mut self) {
        let mut slots = [const { None }; BURST];
        for _ in 0..MOST_DRAINED / BURST {
            if self.rx.burst(&mut slots) == 0 {
                break;
            }
            dpdk::free_bulk(&mut slots);
        }
    }
}
