//! One of the tester's ports: it sends one stream and receives the other.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use dpdk::{Buffer, BufferPool, RxQueue, TxQueue};
use measure::frame::{Arrival, Reader, Signature, Stream, Template};
use measure::load::{Departure, Flows, Schedule};
use measure::outcome::Receiver;
use wire::MacAddr;

use super::clock::Clock;
use super::neighbor::{LONGEST, Station};

/// Frames sent, and taken, at once.
const BURST: usize = 32;
/// Frames that are thrown away at most before a trial: more than any ring holds, but a device may never stop to send.
const MOST_DRAINED: usize = 1 << 17;

/// How long an answer may take before the question is repeated.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(250);

/// What a port sends in a trial.
#[derive(Debug)]
pub(super) struct Sending {
    trial: u16,
    way: u8,
    pub(super) schedule: Schedule,
    flows: Flows,
    /// The frames of each size and IP version (`true` is IPv6), and which of them each place of the cycle has.
    templates: Vec<(bool, Template)>,
    cycle: Vec<usize>,
    pub(super) sent: Sent,
}

/// Frames so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sent {
    /// Those that were due and are in the next field or on their way, of IPv4 and of IPv6.
    pub(super) offered: [u64; 2],
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
    /// For whom it answers.
    pub(super) station: Station,
}

impl Sending {
    /// The frames of one way: all sizes of a cycle, each of an IP version. `streams`: of IPv4, and of IPv6.
    pub(super) fn new(
        streams: &[Stream; 2],
        cycle: &[(u16, bool)],
        (trial, way): (u16, u8),
        flows: Flows,
        schedule: Schedule,
    ) -> Result<Self, measure::frame::FrameError> {
        let mut kinds = cycle.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        let template = |(size, six): &(u16, bool)| {
            Template::new(&streams[usize::from(*six)], *size).map(|template| (*six, template))
        };
        let templates = kinds.iter().map(template).collect::<Result<_, _>>()?;
        let place = |kind: &(u16, bool)| kinds.binary_search(kind).unwrap_or(0);
        let cycle = cycle.iter().map(place).collect();
        let sent = Sent::default();
        Ok(Self { trial, way, schedule, flows, templates, cycle, sent })
    }

    /// Makes the frame of a departure in an empty buffer. `false`: it has no room.
    #[inline]
    fn write(&mut self, departure: Departure, buffer: &mut Buffer) -> bool {
        let template = self.cycle.get(departure.size).and_then(|at| self.templates.get(*at));
        let Some((ipv6, template)) = template else { return false };
        let Some(frame) = buffer.append(template.length()) else { return false };
        let offered = &mut self.sent.offered[usize::from(*ipv6)];
        let signature = Signature {
            trial: self.trial,
            stream: stream(self.way, *ipv6),
            sequence: *offered,
            sent: departure.due,
        };
        let written = template.write(frame, self.flows.next_flow(), &signature);
        *offered += u64::from(written);
        written
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
            if !sending.write(departure, buffer) {
                *slot = None;
                sending.sent.starved += 1;
            }
        }
        let sent = self.tx.burst(&mut slots[..count]).packets;
        sending.sent.refused += slots[sent..count].iter().flatten().count() as u64;
        dpdk::free_bulk(&mut slots[sent..count]);
    }

    /// Takes what has come, a burst at most; gives how many frames. Answers who asks for the tester.
    #[inline]
    pub(super) fn receive(&mut self, receivers: &mut [(Reader, Receiver)], clock: &Clock) -> usize {
        let mut slots = [const { None }; BURST];
        let count = self.rx.burst(&mut slots);
        if count > 0 {
            let now = clock.now();
            for buffer in slots[..count].iter_mut().flatten() {
                // A frame in several pieces is read as one.
                let whole = !buffer.is_chained() || buffer.linearize();
                let data = if whole { buffer.data() } else { &[] };
                if !take(receivers, data, now) {
                    self.answer(data);
                }
            }
            dpdk::free_bulk(&mut slots[..count]);
        }
        count
    }

    /// Answers a frame that asks for the tester.
    #[cold]
    fn answer(&mut self, frame: &[u8]) {
        let mut bytes = [0; LONGEST];
        if let Some(length) = self.station.answer(frame, &mut bytes) {
            self.put(&bytes[..length]);
        }
    }

    /// Asks for the MAC address of who has an address, and looks for an answer; others are answered meanwhile.
    pub(super) fn ask(&mut self, address: IpAddr) -> Option<MacAddr> {
        let mut bytes = [0; LONGEST];
        let length = self.station.question(address, &mut bytes)?;
        self.put(&bytes[..length]);
        let begin = Instant::now();
        while begin.elapsed() < BETWEEN_QUESTIONS {
            let mut slots = [const { None }; BURST];
            let count = self.rx.burst(&mut slots);
            for buffer in slots[..count].iter().flatten() {
                if let Some(mac) = self.station.told(buffer.data(), address) {
                    return Some(mac);
                }
                self.answer(buffer.data());
            }
        }
        None
    }

    /// Shows the device at which port the tester has its address, by a question whose answer nobody waits for.
    pub(super) fn introduce(&mut self, ipv6: bool) {
        let mut bytes = [0; LONGEST];
        let device = self.station.subnets[usize::from(ipv6)].device();
        if let Some(length) = self.station.question(device, &mut bytes) {
            self.put(&bytes[..length]);
        }
    }

    /// Sends one frame. If there is no buffer for it, or the link does not take it, whoever waits for it asks again.
    fn put(&mut self, frame: &[u8]) {
        let Some(mut buffer) = self.pool.alloc() else { return };
        if let Some(to) = buffer.append(frame.len()) {
            to.copy_from_slice(frame);
            self.tx.burst(&mut [Some(buffer)]);
        }
    }

    /// Throws away what waits, but answers who asks.
    pub(super) fn drain(&mut self) {
        let mut slots = [const { None }; BURST];
        for _ in 0..MOST_DRAINED / BURST {
            let count = self.rx.burst(&mut slots);
            if count == 0 {
                break;
            }
            slots[..count].iter().flatten().for_each(|buffer| self.answer(buffer.data()));
            dpdk::free_bulk(&mut slots);
        }
    }
}

/// The number of a stream: each way has one of each IP version, because a device may let one overtake the other.
pub(super) const fn stream(way: u8, ipv6: bool) -> u8 {
    way | (ipv6 as u8) << 1
}

/// Counts a frame where its IP version is counted. `false`: it is nobody's.
#[inline]
fn take(receivers: &mut [(Reader, Receiver)], frame: &[u8], now: u64) -> bool {
    for (reader, receiver) in &mut *receivers {
        let arrival = reader.read(frame);
        if arrival != Arrival::Foreign {
            receiver.take(arrival, now);
            return true;
        }
    }
    if let Some((_, receiver)) = receivers.first_mut() {
        receiver.take(Arrival::Foreign, now);
    }
    false
}
