//! What a connection counts for `TCP_INFO`.

use std::collections::VecDeque;
use std::ops::Deref;

use crate::carried::{Carried, ImportError, Reader, Writer};
use crate::sequence::Seq;

/// Counters of one connection: what every segment touches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    /// Segments received and sent, and those of them with data.
    pub(crate) segments_in: u32,
    pub(crate) segments_out: u32,
    pub(crate) data_in: u32,
    pub(crate) data_out: u32,
    /// When data was last sent and received: ms, modulo 2^32; 0: never.
    sent_at: u32,
    received_at: u32,
    /// How often SND.UNA and RCV.NXT have passed 2^32.
    wraps_out: u16,
    wraps_in: u16,
}

/// What only some connections ever have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rare {
    /// Where records end that were written and not sent (`MSG_EOR`).
    pub(crate) records: VecDeque<Seq>,
    /// Behind the last byte that was written as urgent (SND.UP).
    pub(crate) urgent: Option<Seq>,
    /// The byte that the peer called urgent was read ahead of the others.
    pub(crate) urgent_taken: bool,
    /// Bytes per second, of the last sample that says something.
    pub(crate) rate: u64,
    /// The application had no more to send then.
    pub(crate) rate_limited: bool,
    /// Bytes sent again.
    pub(crate) bytes_resent: u64,
    /// Duplicates that the peer has told of (RFC 2883).
    pub(crate) duplicates: u32,
    /// Segments that came ahead of their turn.
    pub(crate) out_of_order: u32,
    /// Bytes of data that the SYN carried and that were taken.
    pub(crate) syn_data: u16,
    /// Retransmission time-outs.
    pub(crate) timeouts: u16,
}

/// The place of what is rare; read as if nothing had happened until something has.
#[derive(Debug, Clone, Default)]
pub(crate) struct RarePlace(Option<Box<Rare>>);

static NOTHING: Rare = Rare {
    records: VecDeque::new(),
    urgent: None,
    urgent_taken: false,
    rate: 0,
    rate_limited: false,
    bytes_resent: 0,
    duplicates: 0,
    out_of_order: 0,
    syn_data: 0,
    timeouts: 0,
};

carried!(Counts {
    segments_in,
    segments_out,
    data_in,
    data_out,
    sent_at @ millis,
    received_at @ millis,
    wraps_out,
    wraps_in,
});

carried!(Rare {
    records,
    urgent,
    urgent_taken,
    rate,
    rate_limited,
    bytes_resent,
    duplicates,
    out_of_order,
    syn_data,
    timeouts,
});

impl Carried for RarePlace {
    fn put(&self, to: &mut Writer) {
        self.0.put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        Ok(Self(Carried::take(from)?))
    }
}

impl RarePlace {
    /// For writing.
    pub(crate) fn note(&mut self) -> &mut Rare {
        self.0.get_or_insert_default()
    }

    /// Whether ends of records (`MSG_EOR`) or urgent data are noted.
    #[inline(always)]
    pub(crate) fn concerns_sending(&self) -> bool {
        self.0.as_ref().is_some_and(|rare| !rare.records.is_empty() || rare.urgent.is_some())
    }

    /// For writing, when something was written before.
    pub(crate) fn known(&mut self) -> Option<&mut Rare> {
        self.0.as_deref_mut()
    }
}

impl Deref for RarePlace {
    type Target = Rare;

    fn deref(&self) -> &Rare {
        self.0.as_deref().unwrap_or(&NOTHING)
    }
}

/// ns as ms, never 0.
fn stamp(now: u64) -> u32 {
    ((now / 1_000_000) as u32).max(1)
}

fn age(at: u32, now: u64) -> Option<u64> {
    let ms = stamp(now).wrapping_sub(at);
    (at != 0).then_some(u64::from(ms) * 1_000_000)
}

impl Counts {
    /// Segments left, `data` bytes in them.
    #[inline]
    pub(crate) fn note_sent(&mut self, segments: u32, data: usize, now: u64) {
        self.segments_out = self.segments_out.wrapping_add(segments);
        if data > 0 {
            self.data_out = self.data_out.wrapping_add(segments);
            self.sent_at = stamp(now);
        }
    }

    /// A segment came, with `data` bytes.
    #[inline]
    pub(crate) fn note_received(&mut self, data: usize) {
        self.segments_in = self.segments_in.wrapping_add(1);
        self.data_in = self.data_in.wrapping_add(u32::from(data > 0));
    }

    /// Its data was taken.
    #[inline]
    pub(crate) fn note_data(&mut self, now: u64) {
        self.received_at = stamp(now);
    }

    /// SND.UNA moves.
    #[inline]
    pub(crate) fn note_acked(&mut self, from: Seq, to: Seq) {
        self.wraps_out += u16::from(to.0 < from.0);
    }

    /// RCV.NXT moves.
    #[inline]
    pub(crate) fn note_taken(&mut self, from: Seq, to: Seq) {
        self.wraps_in += u16::from(to.0 < from.0);
    }

    /// RCV.NXT begins behind the peer's SYN.
    pub(crate) fn begin(&mut self, irs: Seq) {
        self.wraps_in = u16::from(irs.0 == u32::MAX);
    }

    /// Bytes from an initial sequence number to where SND.UNA is.
    pub(crate) fn acked(&self, iss: Seq, una: Seq) -> u64 {
        distance(iss, una, self.wraps_out)
    }

    /// The same to where RCV.NXT is.
    pub(crate) fn received(&self, irs: Seq, next: Seq) -> u64 {
        distance(irs, next, self.wraps_in)
    }

    /// How long ago data was sent: ns.
    pub(crate) fn sent_ago(&self, now: u64) -> Option<u64> {
        age(self.sent_at, now)
    }

    /// How long ago data was received: ns.
    pub(crate) fn received_ago(&self, now: u64) -> Option<u64> {
        age(self.received_at, now)
    }
}

fn distance(initial: Seq, at: Seq, wraps: u16) -> u64 {
    let at = u64::from(wraps) << 32 | u64::from(at.0);
    at.saturating_sub(u64::from(initial.0) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_beyond_four_gigabytes() {
        for initial in [0, 5, 1 << 31, u32::MAX - 1, u32::MAX] {
            let mut counts = Counts::default();
            let (iss, mut at, mut total) = (Seq(initial), Seq(initial), 0u64);
            counts.begin(iss);
            counts.note_acked(at, at.add(1));
            at = at.add(1);
            let mut next = at;
            assert_eq!((counts.acked(iss, at), counts.received(iss, next)), (0, 0));
            for _ in 0..9 {
                counts.note_acked(at, at.add(1 << 30));
                counts.note_taken(next, next.add(1 << 30));
                (at, next, total) = (at.add(1 << 30), next.add(1 << 30), total + (1 << 30));
                assert_eq!((counts.acked(iss, at), counts.received(iss, next)), (total, total));
            }
        }
    }

    #[test]
    fn ages_are_times_since() {
        let mut counts = Counts::default();
        counts.note_sent(2, 0, 5_000_000_000);
        assert_eq!((counts.sent_ago(9_000_000_000), counts.data_out), (None, 0));
        counts.note_sent(2, 100, 5_000_000_000);
        assert_eq!((counts.sent_ago(9_000_000_000), counts.data_out), (Some(4_000_000_000), 2));
        assert_eq!((counts.received_ago(9_000_000_000), counts.segments_out), (None, 4));
    }
}
