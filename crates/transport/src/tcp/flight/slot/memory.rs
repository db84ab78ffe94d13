//! What an idle connection keeps of its flights, and a segment that is alone in flight.

use crate::sequence::Seq;
use crate::tcp::flight::{Flight, Sent, mark};

/// What deserves to be remembered while nothing is in flight.
#[derive(Debug)]
pub(super) struct Memory {
    /// Least round-trip time: ns; 0: none yet.
    pub(super) min_rtt: u32,
    /// Bytes delivered in all, modulo 2^32.
    pub(super) delivered: u32,
    /// Bytes found lost in all, modulo 2^32.
    lost: u32,
    multiplier: u8,
    persist: u8,
    reordering: bool,
    pub(super) app_limited: bool,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            min_rtt: 0,
            delivered: 0,
            lost: 0,
            multiplier: 1,
            persist: 0,
            reordering: false,
            app_limited: false,
        }
    }
}

/// The only segment in flight, sent when nothing else was: all that a record would say beside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lone {
    pub(super) start: Seq,
    pub(super) end: Seq,
    pub(super) sent_at: u64,
}

impl Memory {
    /// A lone segment was delivered.
    #[inline(always)]
    pub(super) fn note_lone(&mut self, lone: &Lone, now: u64) {
        let rtt = now.saturating_sub(lone.sent_at).clamp(1, u64::from(u32::MAX)) as u32;
        self.min_rtt = if self.min_rtt == 0 { rtt } else { self.min_rtt.min(rtt) };
        self.delivered = self.delivered.wrapping_add(lone.end.since(lone.start));
    }

    /// What a lone segment's record says.
    #[inline]
    pub(super) fn record(&self, marks: u8, size: u16, lone: &Lone) -> Sent {
        let Lone { start, end, sent_at } = *lone;
        Sent {
            start,
            end,
            marks: marks | if self.app_limited { mark::APP_LIMITED } else { 0 },
            size,
            segments: 0,
            sent_at,
            delivered_at: sent_at,
            first_sent_at: sent_at,
            delivered: self.delivered,
            tx_in_flight: end.since(start),
            lost: self.lost,
        }
    }

    /// A flight of a lone segment.
    #[cold]
    pub(super) fn open(
        &self,
        mut flight: Box<Flight>,
        marks: u8,
        size: u16,
        lone: &Lone,
    ) -> Box<Flight> {
        self.restore(&mut flight, lone.start);
        flight.rate.restart(lone.sent_at);
        (flight.usage, flight.usage_end) = (lone.end.since(lone.start), lone.end);
        flight.sent.push_back(self.record(marks, size, lone));
        flight
    }

    /// A flight that begins at `start`.
    pub(super) fn restore(&self, flight: &mut Flight, start: Seq) {
        flight.rack.begin(start);
        (flight.usage_end, flight.fresh_from) = (start, start);
        flight.rack.min_rtt = u64::from(self.min_rtt);
        flight.rack.reordering = self.reordering;
        flight.rack.multiplier = self.multiplier;
        flight.rack.persist = self.persist;
        flight.rate.resume(u64::from(self.delivered), self.lost, self.app_limited);
    }

    pub(super) fn keep(&mut self, flight: &Flight) {
        *self = Self {
            min_rtt: flight.rack.min_rtt.min(u64::from(u32::MAX)) as u32,
            delivered: flight.rate.delivered as u32,
            lost: flight.rate.lost,
            reordering: flight.rack.reordering,
            multiplier: flight.rack.multiplier,
            persist: flight.rack.persist,
            app_limited: flight.rate.is_app_limited(),
        };
    }
}

carried!(Memory { min_rtt, delivered, lost, multiplier, persist, reordering, app_limited });
carried!(Lone { start, end, sent_at @ time });
