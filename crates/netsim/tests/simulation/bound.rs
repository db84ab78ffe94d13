//! How long a conversation may take: what follows from rate, delay and loss.
//!
//! The worst that a correct sender can meet, not what it usually does: every loss costs a time-out, and a
//! time-out in a row as many doublings as chance allows once in 1,000,000 connections.

use millrace_netsim::{LinkOptions, Plan};
use transport::Options;
use transport::options::{MILLISECOND, SECOND};

/// No time-out is longer: ns.
const LONGEST_TIMEOUT: u64 = 120 * SECOND;
/// A connection may meet what happens so rarely.
const RARE: f64 = 1e-6;
/// Time-outs until a black hole is suspected, and one more for the data to get through.
const HOLE: u32 = 4;

/// What conversations share.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    pub(crate) links: [LinkOptions; 2],
    /// Bytes of a packet on the hosts' ports.
    pub(crate) mtu: u16,
    /// Time in which nothing passes: ns in all.
    pub(crate) outages: u64,
    /// How often it became narrower without a word.
    pub(crate) holes: u32,
    /// Bytes of data that all conversations send, and those of headers.
    pub(crate) bytes: u64,
    pub(crate) headers: u64,
}

/// A conversation: plans and options of both ends.
pub(crate) type Ends<'a> = [(&'a Plan, &'a Options); 2];

/// Chance that a packet does not arrive intact.
pub(crate) fn loss(link: &LinkOptions) -> f64 {
    let share = |chance: u32| f64::from(chance) / 1e6;
    let (enter, leave) = link.burst;
    let in_burst = f64::from(enter) / f64::from(enter + leave).max(1.0);
    1.0 - (1.0 - share(link.loss)) * (1.0 - in_burst) * (1.0 - share(link.corrupt))
}

impl Path {
    /// The longest round trip, with full queues: ns.
    fn round_trip(&self) -> u64 {
        let way = |link: &LinkOptions| {
            let waits = (link.queue * SECOND).checked_div(link.rate).unwrap_or(0);
            link.delay + link.jitter + link.reorder.1 + waits
        };
        self.links.iter().map(way).sum()
    }

    /// Chance that a segment or its acknowledgment is lost.
    fn loss(&self) -> f64 {
        1.0 - self.links.iter().map(|link| 1.0 - loss(link)).product::<f64>()
    }

    /// The bound of a conversation on this path: ns.
    pub(crate) fn bound(&self, ends: Ends<'_>) -> u64 {
        let delayed = ends.iter().map(|(_, options)| options.delayed_ack).max().unwrap_or(0);
        let round_trip = self.round_trip() + delayed;
        // RFC 6298: the smoothed time and four times its variation, or the least.
        let timeout = 2 * round_trip + 200 * MILLISECOND;
        let carried = self.bytes + self.headers;
        let rate = self.links.iter().map(|link| link.rate).filter(|rate| *rate > 0).min();
        // Everything may be sent twice, and both directions wait for each other.
        let carrying = rate.map_or(0, |rate| 4 * carried * SECOND / rate);
        let sending: u64 = (0..2).map(|end| self.sending(ends, end, round_trip, timeout)).sum();
        // Open, and close.
        let opening = 4 * round_trip;
        carrying + sending + opening + self.trouble(timeout)
    }

    /// What the data of one end takes: application, windows, losses.
    fn sending(&self, ends: Ends<'_>, end: usize, round_trip: u64, timeout: u64) -> u64 {
        let ((plan, own), (peer, theirs)) = (ends[end], ends[1 - end]);
        let pause = plan.bytes.div_ceil(plan.write as u64) * plan.write_pause
            + plan.bytes.div_ceil(peer.read as u64) * peer.read_pause;
        // Half a window is what silly-window avoidance on both sides waits for.
        let window = u64::from(own.transmit_buffer.min(theirs.receive_buffer) / 2);
        let rounds = plan.bytes.div_ceil(window) + 4;
        let segment = self.segment(own, theirs).min(plan.write as u64);
        let lost = plan.bytes.div_ceil(segment) as f64 * self.loss();
        // Three deviations of a Poisson distribution, and a few for small numbers.
        let lost = (lost + 3.0 * lost.sqrt()).ceil() as u64 + 2;
        pause + rounds * round_trip + lost * timeout
    }

    /// Bytes of data of a segment, the smallest that path and options lead to.
    fn segment(&self, own: &Options, theirs: &Options) -> u64 {
        let path = if self.holes > 0 { 512 } else { u64::from(self.mtu).min(1280) };
        let limits = [own.mss, theirs.mss].into_iter().filter(|mss| *mss > 0).map(u64::from);
        limits.chain([path - 60]).min().unwrap_or(0) - 12
    }

    /// Time-outs in a row: of the SYN or of what follows, after an outage, in a black hole.
    fn trouble(&self, timeout: u64) -> u64 {
        let loss = self.loss();
        let row = if loss > 0.0 { (RARE.ln() / loss.ln()).ceil() as u32 } else { 0 };
        // At an outage's end the sender waits as long again at most.
        let mut next = timeout.max(3 * SECOND).max(self.outages);
        let mut sum = self.outages;
        for _ in 0..=row + HOLE * self.holes {
            sum += next.min(LONGEST_TIMEOUT);
            next = next.saturating_mul(2);
        }
        sum
    }
}
