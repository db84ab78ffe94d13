//! What a connection tells about itself, and its options.

use crate::ends::Ends;
use crate::failure::Failure;
use crate::fifo::{Buffers, ByteFifo};
use crate::handle::ConnectionId;
use crate::isn::timestamp;
use crate::sequence::Seq;
use crate::stack::Stack;
use crate::tcp::cold::Cold;
use crate::tcp::hot::{Hot, flag};
use crate::tcp::state::State;

/// A look at a connection, as `TCP_INFO` gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Addresses and ports.
    pub ends: Ends,
    /// Where it is in its life.
    pub state: State,
    /// Smoothed round-trip time: us; 0: none yet.
    pub srtt: u32,
    /// Variation of the round-trip time: us.
    pub rttvar: u32,
    /// Retransmission time-out without back-off: us.
    pub rto: u32,
    /// Congestion window, or what recovery lets: bytes.
    pub window: u32,
    /// Slow-start threshold: bytes; `u32::MAX`: none yet.
    pub threshold: u32,
    /// Bytes on the way.
    pub in_flight: u32,
    /// Bytes in the transmit FIFO, sent or not.
    pub queued: u32,
    /// Bytes of data of a full segment.
    pub mss: u16,
    /// Bytes of an IP packet on the path, as far as is known.
    pub path_mtu: u16,
    /// The peer's window: bytes.
    pub peer_window: u32,
    /// Our window: bytes.
    pub own_window: u32,
    /// Shifts of windows: the peer's, ours.
    pub scales: (u8, u8),
    /// Segments sent again.
    pub retransmissions: u32,
    /// What the SYN carried was taken (RFC 7413): by us, or by the peer.
    pub fast_open: bool,
    /// Time stamps, SACK and ECN are in use.
    pub negotiated: (bool, bool, bool),
    /// With accurate congestion feedback (RFC 9768): packets that came marked, and packets of ours that
    /// did at the peer.
    pub marks: Option<(u32, u32)>,
    /// A recovery goes on.
    pub recovering: bool,
    /// Name of the congestion control; empty before the handshake is over.
    pub congestion: &'static str,
    /// Why it ended.
    pub failure: Option<Failure>,
    /// What ICMP said last, since something was acknowledged: no reason to end yet.
    pub soft_failure: Option<Failure>,
    /// Bytes of the transmit FIFO that were never sent.
    pub unsent: u32,
    /// Bytes that can be read.
    pub readable: u32,
    /// Bytes that the FIFOs may hold: receive, transmit.
    pub buffers: (usize, usize),
    /// Data since the beginning, both ways.
    pub data: DataCounts,
    /// Bytes that the peer holds beyond a gap, and bytes found lost and not sent again yet.
    pub sacked: u32,
    /// The same, lost.
    pub lost: u32,
    /// Least round-trip time: us; 0: none yet.
    pub min_rtt: u32,
    /// What the path delivered: bytes/s; 0: not known, as when single segments go back and forth.
    pub delivery_rate: u64,
    /// It is no more than the application had to send.
    pub rate_is_limited: bool,
    /// What is sent at most: bytes/s; `None`: as fast as the window lets.
    pub pacing_rate: Option<u64>,
    /// How long ago data was sent and received, and anything was received: ns, from the latest time that the
    /// stack was told. `None`: never.
    pub ages: (Option<u64>, Option<u64>, Option<u64>),
    /// Bytes of a segment's data that we announced, and that the largest one received had.
    pub own_mss: (u16, u16),
    /// What congestion control is about.
    pub congestion_state: CongestionState,
    /// Time-outs in a row, and in all.
    pub timeouts: (u8, u16),
    /// Keepalive or window probes without an answer.
    pub probes: u8,
    /// Bytes of data that the SYN carried and that were taken (RFC 7413).
    pub syn_data: u16,
    /// It was opened from here.
    pub opened_here: bool,
    /// Nobody has accepted it yet.
    pub waits: bool,
    /// SND.UNA, SND.NXT and RCV.NXT.
    pub sequences: (Seq, Seq, Seq),
    /// Our time stamp of now and the peer's last one (RFC 7323), where they are in use.
    pub timestamps: Option<(u32, u32)>,
}

/// Data since the beginning. Bytes sent again are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DataCounts {
    /// Bytes sent, those sent again included.
    pub bytes_sent: u64,
    /// Bytes sent again.
    pub bytes_resent: u64,
    /// Bytes that the peer has acknowledged.
    pub bytes_acked: u64,
    /// Bytes that have reached the peer: those that it holds beyond a gap too.
    pub bytes_delivered: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Segments sent, modulo 2^32; large packets count as what they are cut into.
    pub segments_out: u32,
    /// Those of them with data.
    pub data_segments_out: u32,
    /// Segments received.
    pub segments_in: u32,
    /// Those of them with data.
    pub data_segments_in: u32,
    /// Segments that came ahead of their turn.
    pub out_of_order: u32,
    /// Duplicates that the peer has told of (RFC 2883).
    pub duplicates: u32,
}

/// What congestion control is about, as Linux's `tcp_ca_state` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CongestionState {
    /// Nothing is wrong.
    #[default]
    Open,
    /// Something may be lost or reordered.
    Disorder,
    /// The window was reduced because of a congestion mark.
    Reduced,
    /// Lost data is sent again.
    Recovery,
    /// After a time-out.
    Loss,
}

impl<B: Buffers> Stack<B> {
    /// Where a connection is in its life. `None`: it is gone.
    #[must_use]
    pub fn state(&self, id: ConnectionId) -> Option<State> {
        self.slab.get(id).map(|(hot, _)| hot.told_state())
    }

    /// A look at a connection. `None`: it is gone.
    #[must_use]
    pub fn info(&self, id: ConnectionId) -> Option<Info> {
        let (hot, cold) = self.slab.get(id)?;
        let congestion = cold.congestion.as_ref();
        Some(Info {
            ends: cold.ends(),
            state: hot.told_state(),
            srtt: hot.srtt,
            rttvar: hot.rttvar,
            rto: hot.rto,
            window: hot.cwnd,
            threshold: congestion.map_or(u32::MAX, |congestion| congestion.threshold()),
            in_flight: cold.flight.pipe(hot.snd_una, hot.snd_nxt, hot.mss),
            queued: cold.fifos.as_ref().map_or(0, |pair| pair.transmit.len() as u32),
            mss: hot.mss,
            path_mtu: cold.path_mtu,
            peer_window: hot.snd_wnd,
            own_window: hot.rcv_wnd(),
            scales: (hot.snd_scale, hot.rcv_scale),
            retransmissions: cold.retransmitted,
            fast_open: hot.has(flag::FAST_TAKEN),
            negotiated: (
                hot.has(flag::TIMESTAMPS),
                hot.has(flag::SACK),
                hot.has(flag::ECN | flag::ACCURATE),
            ),
            marks: cold.accurate.as_ref().map(|accurate| accurate.marks()),
            recovering: hot.has(flag::RECOVERY | flag::LOSS),
            congestion: if hot.cwnd > 0 { cold.options.congestion.name() } else { "" },
            failure: cold.failure,
            soft_failure: cold.soft_failure,
            unsent: cold.unsent(hot),
            readable: cold.fifos.as_ref().map_or(0, |pair| pair.receive.len() as u32),
            buffers: cold
                .fifos
                .as_ref()
                .map_or((0, 0), |pair| (pair.receive.capacity(), pair.transmit.capacity())),
            data: data_counts(hot, cold),
            sacked: cold.flight.sacked,
            lost: cold.flight.lost,
            min_rtt: cold.flight.min_rtt(),
            delivery_rate: cold.rare.rate,
            rate_is_limited: cold.rare.rate_limited,
            pacing_rate: cold.pacing_rate(hot).filter(|_| hot.has(flag::PACED)),
            ages: (
                cold.counts.sent_ago(self.now),
                cold.counts.received_ago(self.now),
                (hot.received_at != 0).then(|| self.now.saturating_sub(hot.received_at)),
            ),
            own_mss: (cold.announced_mss(self.shared.config.mtu), hot.rcv_mss),
            congestion_state: congestion_state(hot, cold),
            timeouts: (hot.backoff, cold.rare.timeouts),
            probes: hot.probes,
            syn_data: cold.rare.syn_data,
            opened_here: !hot.has(flag::PASSIVE),
            waits: hot.has(flag::QUEUED),
            sequences: (hot.snd_una, hot.snd_nxt, hot.rcv_nxt),
            timestamps: hot
                .has(flag::TIMESTAMPS)
                .then(|| (timestamp(self.now, hot.ts_offset), hot.ts_recent)),
        })
    }
}

fn data_counts<F: ByteFifo>(hot: &Hot, cold: &Cold<F>) -> DataCounts {
    let counts = &cold.counts;
    let fin = |is_over: bool| u64::from(is_over);
    let bytes_acked =
        counts.acked(cold.iss, hot.snd_una).saturating_sub(fin(hot.has(flag::FIN_ACKED)));
    let in_flight = hot.snd_nxt.since(hot.snd_una);
    let marks = u32::from(hot.has(flag::FIN_SENT) && !hot.has(flag::FIN_ACKED));
    let marks = marks + u32::from(hot.snd_una == cold.iss && in_flight > 0);
    let once = bytes_acked + u64::from(in_flight.saturating_sub(marks));
    let started = hot.state.is_synchronized() || hot.state == State::Closed && hot.cwnd > 0;
    let bytes_received = counts.received(cold.irs, hot.rcv_nxt);
    let ended = fin(hot.has(flag::PEER_CLOSED));
    DataCounts {
        bytes_sent: once + cold.rare.bytes_resent,
        bytes_resent: cold.rare.bytes_resent,
        bytes_acked,
        bytes_delivered: bytes_acked + u64::from(cold.flight.sacked),
        bytes_received: if started { bytes_received.saturating_sub(ended) } else { 0 },
        segments_out: counts.segments_out,
        data_segments_out: counts.data_out,
        segments_in: counts.segments_in,
        data_segments_in: counts.data_in,
        out_of_order: cold.rare.out_of_order,
        duplicates: cold.rare.duplicates,
    }
}

fn congestion_state<F>(hot: &Hot, cold: &Cold<F>) -> CongestionState {
    let until = cold.reduced_until;
    let in_flight = until != hot.snd_una && until.within(hot.snd_una, hot.snd_nxt);
    let reduced = hot.has(flag::ECN | flag::ACCURATE) && in_flight;
    match () {
        () if hot.has(flag::LOSS) => CongestionState::Loss,
        () if hot.has(flag::RECOVERY) => CongestionState::Recovery,
        () if cold.flight.sacked > 0 || cold.flight.duplicates > 0 => CongestionState::Disorder,
        () if reduced && !hot.has(flag::PROBING) => CongestionState::Reduced,
        () => CongestionState::Open,
    }
}
