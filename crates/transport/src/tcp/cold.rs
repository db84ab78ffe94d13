//! What is touched when something happens that is not the plain case.

use std::sync::Arc;

use super::flight::Slot;
use super::gaps::Gaps;
use super::hot::{Hot, flag};
use crate::congestion::CongestionControl;
use wire::flow::FiveTuple;

use crate::ends::Ends;
use crate::failure::Failure;
use crate::fifo::Pair;
use crate::handle::ListenerId;
use crate::options::Options;
use crate::paths::LEAST;
use crate::sequence::Seq;

/// The cold part of a connection: what segments touch when they carry data comes first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Cold<F> {
    pub(crate) fifos: Option<Pair<F>>,
    pub(crate) flight: Slot,
    /// When the peer last acknowledged something new, or sending began: ns.
    pub(crate) progress_at: u64,
    /// When TS.Recent was taken: ns.
    pub(crate) ts_recent_at: u64,
    pub(crate) counts: super::counts::Counts,
    pub(crate) options: Arc<Options>,
    pub(crate) gaps: Gaps,
    /// Search for a larger packet size; `None` until there is reason for it.
    pub(crate) search: Option<Box<super::mtu::Search>>,
    /// Receive auto-tuning: the round ends here, and began then.
    pub(crate) tuning: Tuning,
    /// As segments from the peer have it.
    pub(crate) key: FiveTuple,
    /// The path that it takes; 0: the network.
    pub(crate) path: u16,
    /// An ICMP error that does not end the connection by itself (RFC 9293 3.9.2.2).
    pub(crate) soft_failure: Option<Failure>,
    pub(crate) failure: Option<Failure>,
    /// The application knows the handle.
    pub(crate) known: bool,
    /// Time-outs since something new was acknowledged.
    pub(crate) tries: u8,
    /// Sequence number of the first byte in the transmit FIFO.
    pub(crate) data_start: Seq,
    /// Largest window that the peer ever offered: bytes.
    pub(crate) max_window: u32,
    /// A recovery is over when this is acknowledged.
    pub(crate) recover: Seq,
    /// The window in which a tail loss probe or a mark was answered ends here.
    pub(crate) reduced_until: Seq,
    /// `None` until it has something to say.
    pub(crate) congestion: Option<Box<dyn CongestionControl>>,
    /// Accurate congestion feedback; `None` without.
    pub(crate) accurate: Option<Box<super::accurate::Accurate>>,
    /// Challenge for a window out-of-date was answered last: ms, modulo 2^32; 0: never.
    pub(crate) challenged_at: u32,
    /// Where the peer's FIN is, when it came ahead of data.
    pub(crate) fin_at: Seq,
    /// Initial sequence numbers.
    pub(crate) iss: Seq,
    pub(crate) irs: Seq,
    /// Behind the last byte that the peer called urgent (RCV.UP).
    pub(crate) urgent: Seq,
    /// Time stamp of the first retransmission after a time-out, for Eifel (RFC 3522).
    pub(crate) eifel: u32,
    /// Behind the last segment that was sent and was not full (Minshall's part of Nagle's algorithm).
    pub(crate) small_end: Seq,
    /// Bytes retransmitted in this recovery that no duplicate was told of yet.
    pub(crate) undo_left: u32,
    /// Segments sent again.
    pub(crate) retransmitted: u32,
    pub(crate) rare: super::counts::RarePlace,
    pub(crate) listener: Option<ListenerId>,
    /// Segment size that the peer announced.
    pub(crate) peer_mss: u16,
    /// Bytes of an IP packet on the path.
    pub(crate) path_mtu: u16,
}

/// Measures how much arrives in a round trip.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tuning {
    /// When this round began: us, modulo 2^32.
    began: u32,
    /// Bytes that the application took in it.
    taken: u32,
}

impl Tuning {
    /// A round begins; `now`: ns.
    pub(crate) fn begin(now: u64) -> Self {
        Self { began: (now / 1000) as u32, taken: 0 }
    }

    /// `count` bytes more were taken.
    pub(crate) fn take(&mut self, count: usize) {
        self.taken = self.taken.saturating_add(count.min(1 << 30) as u32);
    }

    /// At the end of a round of `length` us, bytes that were taken in it.
    pub(crate) fn round(&mut self, length: u32, now: u64) -> Option<u32> {
        let over = ((now / 1000) as u32).wrapping_sub(self.began) >= length;
        over.then(|| std::mem::replace(self, Self::begin(now)).taken)
    }
}

carried!(Tuning { began @ micros, taken });

impl<F> Cold<F> {
    pub(crate) fn new(ends: Ends, options: Arc<Options>, path_mtu: u16) -> Self {
        let zero = Seq(0);
        // RFC 8201 1: who does not discover the path's MTU sends nothing larger than the least one.
        let whole = options.mtu_discovery || ends.remote.is_ipv4();
        Self {
            key: ends.key(),
            path: 0,
            options,
            fifos: None,
            data_start: zero,
            flight: Slot::default(),
            gaps: Gaps::default(),
            congestion: None,
            recover: zero,
            fin_at: zero,
            iss: zero,
            irs: zero,
            listener: None,
            rare: super::counts::RarePlace::default(),
            counts: super::counts::Counts::default(),
            failure: None,
            soft_failure: None,
            eifel: 0,
            small_end: zero,
            undo_left: 0,
            reduced_until: zero,
            max_window: 0,
            peer_mss: 536,
            search: None,
            path_mtu: if whole { path_mtu } else { path_mtu.min(LEAST.1) },
            accurate: None,
            progress_at: 0,
            urgent: zero,
            ts_recent_at: 0,
            challenged_at: 0,
            tuning: Tuning::default(),
            retransmitted: 0,
            known: false,
            tries: 0,
        }
    }

    /// Addresses and ports.
    #[inline]
    pub(crate) fn ends(&self) -> Ends {
        Ends::of_received(&self.key)
    }

    #[inline]
    pub(crate) fn is_v4(&self) -> bool {
        matches!(self.key, FiveTuple::V4(_))
    }

    /// Bytes of the IP header.
    pub(crate) fn ip_header(&self) -> u16 {
        self.ends().ip_header() as u16
    }

    /// Asks the cache for what it points to.
    #[inline]
    pub(crate) fn prefetch(&self)
    where
        F: crate::fifo::ByteFifo,
    {
        if let Some(pair) = &self.fifos {
            pair.receive.prefetch();
            pair.transmit.prefetch();
        }
        self.flight.prefetch();
        if let Some(congestion) = &self.congestion {
            tables::prefetch(&**congestion);
        }
    }

    /// What is sent at most when segments are spread over time: bytes per second.
    pub(crate) fn pacing_rate(&self, hot: &Hot) -> Option<u64> {
        let asked = self.congestion.as_ref().and_then(|congestion| congestion.pacing_rate());
        let srtt = u64::from(hot.srtt) * 1000;
        let rate = asked.or_else(|| {
            // 1.2 windows in a round trip.
            let window = u64::from(hot.cwnd) * 12 / 10;
            (srtt > 0).then(|| (window * 1_000_000_000 / srtt).max(1))
        });
        match (rate, self.options.pacing_limit) {
            (rate, 0) => rate,
            (Some(rate), limit) => Some(rate.min(limit)),
            (None, limit) => Some(limit),
        }
    }

    /// The segment size that we announce.
    pub(crate) fn announced_mss(&self, mtu: u16) -> u16 {
        self.options.announced_mss(mtu, self.ip_header())
    }

    /// Whether segments are spread over time.
    pub(crate) fn is_paced(&self) -> bool {
        let asked = self.congestion.as_ref().is_some_and(|c| c.pacing_rate().is_some());
        asked || self.options.pacing || self.options.pacing_limit != 0
    }

    /// Bytes that were never sent.
    pub(crate) fn unsent(&self, hot: &Hot) -> u32
    where
        F: crate::fifo::ByteFifo,
    {
        if hot.has(flag::FIN_SENT) {
            return 0;
        }
        let sent = hot.snd_nxt.max(self.data_start).since(self.data_start);
        self.queued().saturating_sub(sent)
    }

    /// Whether a write is worth while (`sk_stream_is_writeable`).
    pub(crate) fn has_room(&self, hot: &Hot) -> bool
    where
        F: crate::fifo::ByteFifo,
    {
        let Some(pair) = &self.fifos else { return false };
        let most = self.options.not_sent_low_water;
        let roomy = pair.transmit.room() >= pair.transmit.capacity() / 3;
        roomy && (most == u32::MAX || u64::from(self.unsent(hot)) * 2 < u64::from(most))
    }

    /// Bytes waiting or in flight in the transmit FIFO.
    pub(crate) fn queued(&self) -> u32
    where
        F: crate::fifo::ByteFifo,
    {
        self.fifos.as_ref().map_or(0, |pair| pair.transmit.len().min(1 << 30) as u32)
    }
}
