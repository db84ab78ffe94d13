//! One direction of a path: what it does to a packet.

use crate::random::Random;

/// What a link does. The default one is perfect: no delay, no bounds. Chances are per million packets.
#[derive(Debug, Clone)]
pub struct LinkOptions {
    /// One way: ns.
    pub delay: u64,
    /// Up to so much is added to the delay, packet by packet, in order: ns.
    pub jitter: u64,
    /// Bytes per second; 0: any.
    pub rate: u64,
    /// Bytes that wait for the rate at most; beyond them packets are lost.
    pub queue: u64,
    /// Above so many waiting bytes capable packets are marked (RFC 3168); 0: never.
    pub mark_above: u64,
    /// Chance that a packet is lost.
    pub loss: u32,
    /// Chance that packets begin to be lost in a row, and that this ends.
    pub burst: (u32, u32),
    /// Chance that a packet arrives twice.
    pub duplicate: u32,
    /// Chance that a bit is flipped.
    pub corrupt: u32,
    /// Chance that a packet is held back, and how long: ns.
    pub reorder: (u32, u64),
    /// Longest packet: bytes.
    pub mtu: u16,
    /// Packets that are too long vanish without an ICMP error.
    pub black_hole: bool,
    /// Nothing passes.
    pub down: bool,
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            delay: 0,
            jitter: 0,
            rate: 0,
            queue: u64::MAX,
            mark_above: 0,
            loss: 0,
            burst: (0, 0),
            duplicate: 0,
            corrupt: 0,
            reorder: (0, 0),
            mtu: u16::MAX,
            black_hole: false,
            down: false,
        }
    }
}

/// What became of a packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrives then, once or twice: ns.
    Arrives(u64, Option<u64>),
    /// It is gone.
    Lost,
    /// It did not fit, and its sender is told: bytes that would.
    TooBig(u16),
}

/// A link with what waits for it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) options: LinkOptions,
    /// The last waiting byte has left then: ns.
    busy_until: u64,
    /// The last packet that was not held back arrives then: ns.
    arrival: u64,
    in_burst: bool,
    /// Bytes that have left.
    pub(crate) carried: u64,
    /// Packets lost for lack of room in the queue.
    pub(crate) overflowed: u64,
}

impl Link {
    pub(crate) fn new(options: LinkOptions) -> Self {
        let (busy_until, arrival, carried, overflowed) = (0, 0, 0, 0);
        Self { options, busy_until, arrival, in_burst: false, carried, overflowed }
    }

    /// Bytes that wait.
    pub(crate) fn waiting(&self, now: u64) -> u64 {
        let time = self.busy_until.saturating_sub(now);
        (u128::from(time) * u128::from(self.options.rate) / 1_000_000_000) as u64
    }

    pub(crate) fn pass(&mut self, now: u64, packet: &mut [u8], random: &mut Random) -> Fate {
        let length = packet.len() as u64;
        if self.options.down {
            return Fate::Lost;
        }
        if packet.len() > usize::from(self.options.mtu) && !may_be_cut(packet) {
            return if self.options.black_hole {
                Fate::Lost
            } else {
                Fate::TooBig(self.options.mtu)
            };
        }
        let (enter, leave) = self.options.burst;
        self.in_burst = if self.in_burst { !random.happens(leave) } else { random.happens(enter) };
        if self.in_burst || random.happens(self.options.loss) {
            return Fate::Lost;
        }
        let mut left = now;
        if self.options.rate > 0 {
            let waiting = self.waiting(now);
            if waiting + length > self.options.queue {
                self.overflowed += 1;
                return Fate::Lost;
            }
            if self.options.mark_above > 0 && waiting > self.options.mark_above {
                mark(packet);
            }
            let time = u128::from(length) * 1_000_000_000 / u128::from(self.options.rate);
            self.busy_until = self.busy_until.max(now) + time as u64;
            left = self.busy_until;
        }
        self.carried += length;
        if random.happens(self.options.corrupt) {
            let bit = random.below(8 * length);
            if let Some(byte) = packet.get_mut(bit as usize / 8) {
                *byte ^= 1 << (bit % 8);
            }
        }
        let at = left + self.options.delay + random.below(self.options.jitter + 1);
        let (chance, by) = self.options.reorder;
        let at = if random.happens(chance) {
            at + random.below(by + 1)
        } else {
            self.arrival = self.arrival.max(at);
            self.arrival
        };
        let again = random.happens(self.options.duplicate);
        Fate::Arrives(at, again.then(|| at + random.below(by + 1)))
    }
}

/// Whether a router may fragment it: IPv4 without DF. The pieces are put together again before the
/// stack, so it passes as it is.
fn may_be_cut(packet: &[u8]) -> bool {
    wire::ipv4::Header::peek(packet).is_some_and(|header| !header.dont_fragment())
        && packet.first().is_some_and(|first| first >> 4 == 4)
}

/// Sets 'congestion experienced' on a packet whose sender can do with it.
fn mark(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let capable = packet.get(1).is_some_and(|service| service & 3 != 0);
            if let (true, Some(service)) = (capable, packet.get_mut(1)) {
                *service |= 3;
                // It had one, so it can be written.
                let _ = wire::ipv4::write_checksum(packet);
            }
        }
        Some(6) => {
            if let Some(byte) = packet.get_mut(1).filter(|byte| **byte & 0x30 != 0) {
                *byte |= 0x30;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(options: LinkOptions, count: usize) -> Vec<Option<u64>> {
        let (mut link, mut random) = (Link::new(options), Random::new(1));
        let mut arrival = |_| match link.pass(0, &mut [0x60; 1000], &mut random) {
            Fate::Arrives(at, _) => Some(at),
            _ => None,
        };
        (0..count).map(&mut arrival).collect()
    }

    #[test]
    fn a_rate_spreads_packets_and_a_queue_bounds_them() {
        let options =
            LinkOptions { delay: 500, rate: 1_000_000_000, queue: 3000, ..Default::default() };
        assert_eq!(arrivals(options, 4), [Some(1500), Some(2500), Some(3500), None]);
    }

    #[test]
    fn chances_are_kept() {
        let lost = |options| arrivals(options, 10_000).iter().filter(|at| at.is_none()).count();
        let random = lost(LinkOptions { loss: 100_000, ..Default::default() });
        assert!((900..1100).contains(&random), "{random}");
        let bursts = lost(LinkOptions { burst: (10_000, 100_000), ..Default::default() });
        assert!((600..1300).contains(&bursts), "{bursts}");
    }

    #[test]
    fn jitter_keeps_order_and_reordering_does_not() {
        let kept = arrivals(LinkOptions { jitter: 1000, ..Default::default() }, 1000);
        assert!(kept.is_sorted());
        let options = LinkOptions { reorder: (100_000, 1000), ..Default::default() };
        assert!(!arrivals(options, 1000).is_sorted());
    }

    #[test]
    fn what_does_not_fit_is_told_or_vanishes() {
        let pass = |black_hole| {
            let mut link = Link::new(LinkOptions { mtu: 900, black_hole, ..Default::default() });
            link.pass(0, &mut [0x60; 1000], &mut Random::new(1))
        };
        assert_eq!((pass(false), pass(true)), (Fate::TooBig(900), Fate::Lost));
    }
}
