//! Taps at receive, transmit and drop: copies of packets for the control thread to write down.

use std::time::{SystemTime, UNIX_EPOCH};

use dpdk::Buffer;
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Filter, PortId, Reason};

/// Where a packet was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// It came in from a port.
    Receive,
    /// It was on its way to a port.
    Transmit,
    /// It was dropped for this reason.
    Drop(Reason),
}

/// Which taps a capture has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taps {
    /// Packets received.
    pub receive: bool,
    /// Packets transmitted.
    pub transmit: bool,
    /// Packets dropped.
    pub drop: bool,
}

/// A copied packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// When: nanoseconds since the Unix epoch.
    pub time: u64,
    /// The port that it came in on or goes out of.
    pub port: PortId,
    /// Where it was seen.
    pub direction: Direction,
    /// Its whole length: bytes.
    pub length: usize,
    /// Its first bytes, at most the capture's snap length.
    pub data: Box<[u8]>,
}

/// What a capture takes.
#[derive(Debug, Clone)]
pub struct CaptureOptions {
    /// Which packets.
    pub filter: Filter,
    /// At which points.
    pub taps: Taps,
    /// Bytes kept of each.
    pub snap: usize,
    /// Packets that the ring to the control thread holds.
    pub ring: usize,
}

/// The worker's end of a capture. One worker has one capture at a time.
#[derive(Debug)]
pub struct Tap {
    options: CaptureOptions,
    ring: Producer<Frame>,
    lost: Arc<AtomicU64>,
    clock: Clock,
}

/// The control thread's end of a capture.
#[derive(Debug)]
pub struct Frames {
    ring: Consumer<Frame>,
    lost: Arc<AtomicU64>,
}

/// Both ends of a capture of one worker. EAL must run.
#[must_use]
pub fn capture(options: CaptureOptions) -> (Box<Tap>, Frames) {
    let (sender, receiver) = RingBuffer::new(options.ring);
    let lost = Arc::new(AtomicU64::new(0));
    let tap = Tap { options, ring: sender, lost: Arc::clone(&lost), clock: Clock::now() };
    (Box::new(tap), Frames { ring: receiver, lost })
}

impl Tap {
    /// Sees a burst at `port`.
    pub(crate) fn burst(&mut self, burst: &[Option<Buffer>], port: PortId, direction: Direction) {
        let Taps { receive, transmit, drop } = self.options.taps;
        let wanted = match direction {
            Direction::Receive => receive,
            Direction::Transmit => transmit,
            Direction::Drop(_) => drop,
        };
        if wanted {
            let time = self.clock.time();
            for buffer in burst.iter().flatten() {
                self.see(buffer, port, direction, time);
            }
        }
    }

    /// Sees dropped packets, each with its reason.
    pub(crate) fn drops(&mut self, buffers: &[Option<Buffer>], reasons: &[Option<Reason>]) {
        if self.options.taps.drop {
            let time = self.clock.time();
            for (buffer, reason) in buffers.iter().zip(reasons) {
                if let (Some(buffer), Some(reason)) = (buffer, reason) {
                    self.see(buffer, PortId::of(buffer), Direction::Drop(*reason), time);
                }
            }
        }
    }

    /// Sees a received packet that is no buffer of ours.
    pub(crate) fn bytes(&mut self, bytes: &[u8], port: PortId) {
        if self.options.taps.receive {
            let time = self.clock.time();
            if self.wants(port, bytes) {
                let data = bytes.get(..self.options.snap).unwrap_or(bytes).into();
                let direction = Direction::Receive;
                self.record(Frame { time, port, direction, length: bytes.len(), data });
            }
        }
    }

    fn see(&mut self, buffer: &Buffer, port: PortId, direction: Direction, time: u64) {
        if !self.wants(port, buffer.data()) {
            return;
        }
        let mut data = Vec::with_capacity(buffer.len().min(self.options.snap));
        buffer.copy_into(&mut data, self.options.snap);
        let data = data.into_boxed_slice();
        self.record(Frame { time, port, direction, length: buffer.len(), data });
    }

    /// Whether a packet is to be recorded, and can be.
    fn wants(&mut self, port: PortId, data: &[u8]) -> bool {
        if !self.options.filter.matches(port, data) {
            return false;
        }
        let full = self.ring.is_full();
        if full {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        !full
    }

    fn record(&mut self, frame: Frame) {
        // Full is impossible here: there was room, and nobody else sends.
        let _ = self.ring.push(frame);
    }
}

impl Frames {
    /// The next packet; `None` when there is none now.
    pub fn pop(&mut self) -> Option<Frame> {
        self.ring.pop().ok()
    }

    /// Packets that did not fit into the ring.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Whether the worker has ended the capture: nothing will come after what is in the ring.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ring.is_abandoned()
    }
}

/// Turns the time-stamp counter into the time of day, without a system call per packet.
#[derive(Debug)]
struct Clock {
    tsc: u64,
    nanoseconds: u64,
    hz: u64,
}

impl Clock {
    fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nanoseconds = since.as_nanos().try_into().unwrap_or(u64::MAX);
        Self { tsc: dpdk::tsc(), nanoseconds, hz: dpdk::tsc_hz().max(1) }
    }

    fn time(&self) -> u64 {
        let cycles = u128::from(dpdk::tsc().wrapping_sub(self.tsc));
        let passed = cycles * 1_000_000_000 / u128::from(self.hz);
        self.nanoseconds.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests;
