//! A connection's own state: all fields of both parts, in the order of the format.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use wire::flow::FiveTuple;

use crate::carried::Carried;
use crate::carried::ImportError;
use crate::carried::{Reader, Writer};
use crate::ends::Ends;
use crate::options::Options;
use crate::tcp::cold::Cold;
use crate::tcp::hot::Hot;

/// A round-trip time is no longer: us (`rtt::measure`).
const LONGEST_RTT: u32 = 60_000_000;
/// A window is no larger: bytes.
const WIDEST: u32 = 65_535 << 14;

/// Both parts.
#[derive(Debug)]
pub(crate) struct Connection<F> {
    pub(crate) hot: Hot,
    pub(crate) cold: Cold<F>,
}

carried!(Hot {
    snd_una,
    snd_nxt,
    snd_wnd in 0..=WIDEST,
    snd_wl1,
    snd_wl2,
    rcv_nxt,
    rcv_adv,
    acked,
    ts_recent,
    ts_offset @ stamp,
    cwnd,
    generation @ local,
    flags,
    mss in 8..=u16::MAX,
    rcv_mss,
    state,
    snd_scale in 0..=14,
    rcv_scale in 0..=14,
    backoff,
    retransmit_at @ time,
    ack_at @ time,
    life_at @ time,
    pace_at @ time,
    armed_at @ local,
    received_at @ time,
    srtt in 0..=LONGEST_RTT,
    rttvar in 0..=LONGEST_RTT,
    rto in 1..=120_000_000,
    quick,
    probes,
    ttl,
    service,
});

carried!(Cold<F> {
    key,
    fifos @ local,
    flight,
    progress_at @ time,
    ts_recent_at @ time,
    options,
    gaps,
    search,
    tuning,
    soft_failure,
    failure,
    known,
    data_start,
    tries,
    max_window in 0..=WIDEST,
    recover,
    reduced_until,
    congestion,
    accurate,
    challenged_at @ millis,
    fin_at,
    iss,
    irs,
    urgent,
    eifel,
    undo_left,
    retransmitted,
    listener @ local,
    small_end,
    counts,
    rare,
    peer_mss in 48..=u16::MAX,
    path_mtu in 68..=u16::MAX,
    path @ local,
});

impl Carried for Arc<Options> {
    fn put(&self, to: &mut Writer) {
        (**self).put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        Ok(Self::new(Carried::take(from)?))
    }
}

/// IP version, then addresses and ports, ours first.
impl Carried for FiveTuple {
    fn put(&self, to: &mut Writer) {
        let ends = Ends::of_received(self);
        (if ends.local.is_ipv4() { 4u8 } else { 6 }).put(to);
        for end in [ends.local, ends.remote] {
            match end.ip() {
                IpAddr::V4(ip) => to.array(ip.octets()),
                IpAddr::V6(ip) => to.array(ip.octets()),
            }
            end.port().put(to);
        }
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        let version = u8::take(from)?;
        let end = |from: &mut Reader<'_>| -> Result<SocketAddr, ImportError> {
            let ip: IpAddr = match version {
                4 => Ipv4Addr::from(from.array::<4>()?).into(),
                6 => Ipv6Addr::from(from.array::<16>()?).into(),
                _ => return from.refuse(),
            };
            Ok(SocketAddr::new(ip, Carried::take(from)?))
        };
        let ends = Ends { local: end(from)?, remote: end(from)? };
        if ends.is_possible() { Ok(ends.key()) } else { from.refuse() }
    }
}
