//! `TCP_INFO`: `struct tcp_info` of `uapi/linux/tcp.h`.

use transport::{CongestionState, Info, State};

use crate::errno::Errno;
use crate::options::Value;
use crate::session::{Id, Role};
use crate::sessions::Sessions;

/// Bytes of the struct, as of Linux 6.10.
const LENGTH: usize = 248;

/// `TCPOLEN_TSTAMP_ALIGNED`: bytes of time stamps in each segment.
const TIMESTAMPS: u32 = 12;

/// Linux's numbers of states (`net/tcp_states.h`) that are not a connection's.
const CLOSE: u8 = 7;
const LISTEN: u8 = 10;

/// The struct while it is written, front to back.
struct Writer {
    bytes: [u8; LENGTH],
    at: usize,
}

impl Writer {
    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        if let Some(place) = self.bytes.get_mut(self.at..self.at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.at += bytes.len();
        self
    }

    fn word(&mut self, value: u32) -> &mut Self {
        self.put(&value.to_ne_bytes())
    }

    fn long(&mut self, value: u64) -> &mut Self {
        self.put(&value.to_ne_bytes())
    }
}

impl Sessions {
    pub(crate) fn tcp_info(&self, id: Id, room: usize) -> Result<Value, Errno> {
        let session = self.get(id)?;
        let mut writer = Writer { bytes: [0; LENGTH], at: 0 };
        match session.role {
            Role::Connection(connection) => {
                let info = self.stack.info(connection).ok_or(Errno::NOTCONN)?;
                let rate = session.settings.pacing_rate;
                write(&mut writer, &info, rate);
            }
            Role::Listening(listener) => {
                let queue = self.stack.backlog(listener).ok_or(Errno::INVAL)?;
                // tcp_get_info: how many wait, and how many may.
                let most = queue.limit.saturating_sub(1);
                idle(&mut writer, LISTEN, (queue.waiting as u32, most as u32));
            }
            _ => idle(&mut writer, CLOSE, (0, 0)),
        }
        Ok(Value::of(&writer.bytes, room))
    }
}

/// A socket without a connection: as Linux has it, with an initial time-out of a second.
fn idle(writer: &mut Writer, state: u8, (unacked, sacked): (u32, u32)) {
    writer.put(&[state, 0, 0, 0, 0, 0, 0, 0]).word(1_000_000).word(0).word(536).word(0);
    writer.word(unacked).word(sacked);
}

fn write(writer: &mut Writer, info: &Info, most: u64) {
    let segments = |bytes: u32| bytes.div_ceil(u32::from(info.mss.max(1)));
    let millis = |age: Option<u64>| age.map_or(0, |ns| (ns / 1_000_000) as u32);
    let data = &info.data;
    let flags = [
        state(info.state),
        congestion(info.congestion_state),
        info.timeouts.0,
        info.probes,
        info.timeouts.0,
        negotiated(info),
        info.scales.0 & 15 | info.scales.1 << 4,
        u8::from(info.rate_is_limited),
    ];
    writer.put(&flags);
    // rto, ato, snd_mss, rcv_mss.
    writer.word(info.rto).word(40_000).word(info.mss.into()).word(receive_mss(info));
    // unacked, sacked, lost, retrans, fackets.
    writer.word(segments(info.in_flight + info.sacked + info.lost)).word(segments(info.sacked));
    writer.word(segments(info.lost)).word(0).word(0);
    // last_data_sent, last_ack_sent, last_data_recv, last_ack_recv.
    writer.word(millis(info.ages.0)).word(0).word(millis(info.ages.1)).word(millis(info.ages.2));
    // pmtu, rcv_ssthresh, rtt, rttvar, snd_ssthresh, snd_cwnd, advmss, reordering.
    writer.word(info.path_mtu.into()).word(info.own_window).word(info.srtt).word(info.rttvar);
    let threshold =
        if info.threshold == u32::MAX { i32::MAX as u32 } else { segments(info.threshold) };
    writer.word(threshold).word(segments(info.window)).word(advertised_mss(info)).word(3);
    // rcv_rtt, rcv_space, total_retrans.
    writer.word(0).word(info.buffers.0 as u32).word(info.retransmissions);
    // pacing_rate, max_pacing_rate, bytes_acked, bytes_received.
    writer.long(info.pacing_rate.unwrap_or(u64::MAX)).long(most);
    // The SYN of a connection that was opened from here counts too (tcp_snd_una_update).
    let syn = u64::from(info.opened_here && !matches!(info.state, State::SynSent));
    writer.long(data.bytes_acked + syn).long(data.bytes_received);
    // segs_out, segs_in, notsent_bytes, min_rtt, data_segs_in, data_segs_out.
    writer.word(data.segments_out).word(data.segments_in).word(info.unsent);
    let min_rtt = if info.min_rtt == 0 { u32::MAX } else { info.min_rtt };
    writer.word(min_rtt).word(data.data_segments_in).word(data.data_segments_out);
    // delivery_rate, busy_time, rwnd_limited, sndbuf_limited: the last three are not measured.
    writer.long(info.delivery_rate).long(0).long(0).long(0);
    // delivered, delivered_ce, bytes_sent, bytes_retrans, dsack_dups, reord_seen.
    let delivered = data.bytes_delivered.div_ceil(u64::from(info.mss.max(1))) as u32;
    writer.word(delivered).word(info.marks.map_or(0, |marks| marks.1));
    writer.long(data.bytes_sent).long(data.bytes_resent).word(data.duplicates).word(0);
    // rcv_ooopack, snd_wnd, rcv_wnd, rehash, total_rto.
    writer.word(data.out_of_order).word(info.peer_window).word(info.own_window).word(0);
    writer.put(&info.timeouts.1.to_ne_bytes());
}

/// `tcpi_advmss`: what is left of the announced size for data beside time stamps (`tcp_rcv_synsent_state_process`).
fn advertised_mss(info: &Info) -> u32 {
    let options = if info.negotiated.0 { TIMESTAMPS } else { 0 };
    u32::from(info.own_mss.0).saturating_sub(options)
}

/// `tcpi_rcv_mss`: data of the largest segment that came (`tcp_measure_rcv_mss`); before any, TCP_MSS_DEFAULT.
fn receive_mss(info: &Info) -> u32 {
    if info.data.data_segments_in == 0 { 536 } else { info.own_mss.1.min(info.mss).into() }
}

/// `TCPI_OPT_*`.
fn negotiated(info: &Info) -> u8 {
    let (timestamps, sack, ecn) = info.negotiated;
    let scaled = info.scales.0 > 0 || info.scales.1 > 0;
    let bits = [timestamps, sack, scaled, ecn, false, info.fast_open];
    bits.iter().enumerate().map(|(place, on)| u8::from(*on) << place).sum()
}

/// `tcpi_state`: to its application, a connection in TIME-WAIT is closed.
fn state(state: State) -> u8 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::Closed | State::TimeWait => CLOSE,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}

/// `tcpi_ca_state`.
fn congestion(state: CongestionState) -> u8 {
    match state {
        CongestionState::Open => 0,
        CongestionState::Disorder => 1,
        CongestionState::Reduced => 2,
        CongestionState::Recovery => 3,
        CongestionState::Loss => 4,
    }
}
