//! What each packet costs on the link, by arithmetic.

use super::ledger::{Crossed, Ledger, Traffic};
use super::pcie::{Kind, Link};

/// Bytes of a descriptor, and of what is said about a packet ahead of it (document, part D).
pub(super) const DESCRIPTOR: u64 = 16;
/// Bytes of a register that is written or read.
pub(super) const REGISTER: u64 = 4;

/// How device and driver speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The device writes descriptors back: after so many packets, a power of two.
    Classic { batch: u64 },
    /// What there is to say of a received packet goes ahead of it in the same transfer; that a packet was
    /// sent is told by the device's read pointer.
    SelfDescribed,
}

/// Which way packets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Receive,
    Transmit,
}

impl Direction {
    pub(super) const BOTH: [Self; 2] = [Self::Receive, Self::Transmit];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            Self::Transmit => "transmit",
        }
    }
}

/// A link, a way, and how many descriptors the device fetches at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Model {
    pub(super) link: Link,
    pub(super) way: Way,
    /// Descriptors in one fetch, and to one doorbell: a power of two.
    pub(super) fetch: u64,
}

impl Link {
    /// A write of `length` bytes from a boundary of the payload on: TLPs of the maximum payload, and the rest.
    fn written(&self, length: u64) -> Crossed {
        self.pieces(Kind::Write, length, self.payload)
    }

    /// The requests and the answers of a read, from a boundary of the completions on.
    fn read(&self, length: u64) -> (Crossed, Crossed) {
        let requests = length.div_ceil(self.request);
        let asked = Crossed::tlps(Kind::Read, requests, self.tlp(Kind::Read, 0));
        // Requests end at boundaries of the completions: both are powers of two.
        (asked, self.pieces(Kind::Completion, length, self.completion.min(self.request)))
    }

    fn pieces(&self, kind: Kind, length: u64, most: u64) -> Crossed {
        let (full, rest) = (length / most, length % most);
        let rest = Crossed::tlps(kind, u64::from(rest > 0), self.tlp(kind, rest));
        Crossed::tlps(kind, full, self.tlp(kind, most)) + rest
    }
}

impl Model {
    /// The device writes to the host.
    fn write_up(&self, length: u64) -> Traffic {
        Traffic { up: self.link.written(length), ..Traffic::default() }
    }

    /// The device reads from the host.
    fn read_down(&self, length: u64) -> Traffic {
        let (up, down) = self.link.read(length);
        Traffic { up, down }
    }

    /// The driver writes a register.
    fn doorbell(&self) -> Traffic {
        Traffic { down: self.link.written(REGISTER), ..Traffic::default() }
    }

    /// The driver reads a register.
    fn read_register(&self) -> Traffic {
        let (down, up) = self.link.read(REGISTER);
        Traffic { up, down }
    }

    /// What the packet at place `at` of `count` costs, `size` bytes long. What is done once for several
    /// packets is put down to the first of them (doorbell, descriptors) or the last (report); the last
    /// packet of all is reported at once.
    pub(super) fn packet(&self, direction: Direction, at: u64, count: u64, size: u64) -> Ledger {
        let mut ledger = Ledger::default();
        let left = count.saturating_sub(at);
        if at % self.fetch == 0 {
            ledger.doorbell = self.doorbell();
            // The driver gives a receive ring full batches; of packets to send there may be fewer.
            let wanted = match direction {
                Direction::Receive => self.fetch,
                Direction::Transmit => self.fetch.min(left),
            };
            ledger.descriptors = self.read_down(wanted * DESCRIPTOR);
        }
        let ends = |batch: u64| (at + 1) % batch == 0 || left == 1;
        match direction {
            Direction::Receive => match self.way {
                Way::Classic { batch } => {
                    ledger.packet = self.write_up(size);
                    if ends(batch) {
                        // Each packet's length stands in its descriptor, so all are written.
                        ledger.report = self.write_up((at % batch + 1) * DESCRIPTOR);
                    }
                }
                Way::SelfDescribed => ledger.packet = self.write_up(DESCRIPTOR + size),
            },
            Direction::Transmit => {
                ledger.packet = self.read_down(size);
                match self.way {
                    // One descriptor says that all up to it are done.
                    Way::Classic { batch } if ends(batch) => {
                        ledger.report = self.write_up(DESCRIPTOR);
                    }
                    Way::SelfDescribed if ends(self.fetch) => {
                        ledger.report = self.read_register();
                    }
                    _ => {}
                }
            }
        }
        ledger
    }

    /// Packets after which everything repeats.
    pub(super) fn period(&self) -> u64 {
        match self.way {
            Way::Classic { batch } => batch.max(self.fetch),
            Way::SelfDescribed => self.fetch,
        }
    }

    /// What a [`period`](Self::period) of packets costs, each `size` bytes long, in a stream that does not end.
    pub(super) fn steady(&self, direction: Direction, size: u64) -> Ledger {
        let period = self.period();
        let mut sum = Ledger::default();
        (0..period).for_each(|at| sum += self.packet(direction, at, 2 * period, size));
        sum
    }

    /// Bytes of a packet on the link, up and down.
    pub(super) fn bytes(&self, direction: Direction, size: u64) -> (f64, f64) {
        let (total, period) = (self.steady(direction, size).total(), self.period() as f64);
        (total.up.bytes as f64 / period, total.down.bytes as f64 / period)
    }

    /// Packets/s that a link of `lanes` carries when packets go in these directions, as many in each.
    pub(super) fn rate(&self, directions: &[Direction], size: u64, lanes: u32) -> f64 {
        let all = directions.iter().map(|direction| self.bytes(*direction, size));
        let (up, down) = all.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        self.link.generation.bytes_per_second(lanes) / f64::max(up, down)
    }

    /// Bytes of a packet as the document counts them: [`Ledger::document`].
    pub(super) fn document(&self, direction: Direction, size: u64) -> f64 {
        self.steady(direction, size).document() as f64 / self.period() as f64
    }
}

#[cfg(test)]
mod tests;
