//! What is known of a connection.

use std::net::{IpAddr, SocketAddr};

use super::place::WORDS;
use crate::session::TransportProtocol;

/// Where a connection is in its life (RFC 9293 3.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the RFC's own names")]
pub enum State {
    SynSent = 1,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    /// Over; the application has not closed it yet.
    Closed,
}

impl State {
    const ALL: [Self; 10] = [
        Self::SynSent,
        Self::SynReceived,
        Self::Established,
        Self::FinWait1,
        Self::FinWait2,
        Self::CloseWait,
        Self::Closing,
        Self::LastAck,
        Self::TimeWait,
        Self::Closed,
    ];

    /// Whether the peer may believe that the connection goes on.
    #[must_use]
    pub fn is_open(self) -> bool {
        !matches!(self, Self::Closed | Self::TimeWait)
    }
}

/// A connection's congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum CongestionControl {
    /// None yet, or one that this version does not know.
    #[default]
    Unknown,
    /// BBR.
    Bbr,
    /// CUBIC.
    Cubic,
    /// NewReno.
    NewReno,
}

impl CongestionControl {
    const ALL: [Self; 4] = [Self::Unknown, Self::Bbr, Self::Cubic, Self::NewReno];

    /// Its name, as `TCP_CONGESTION` has it; empty when it is not known.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::Bbr => "bbr",
            Self::Cubic => "cubic",
            Self::NewReno => "newreno",
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|one| one.name() == name).unwrap_or_default()
    }
}

/// Where both directions are: what a segment needs that the peer believes (RFC 5961 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sequences {
    /// SND.UNA.
    pub unacknowledged: u32,
    /// SND.NXT.
    pub next: u32,
    /// RCV.NXT.
    pub expected: u32,
    /// Our time stamp and the peer's last one (RFC 7323), where they are in use.
    pub timestamps: Option<(u32, u32)>,
}

/// A connection. Times are of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Its protocol.
    pub protocol: TransportProtocol,
    /// This end.
    pub local: SocketAddr,
    /// The peer, of the same IP version.
    pub remote: SocketAddr,
    /// Where it is in its life.
    pub state: State,
    /// It was opened from here.
    pub opened_here: bool,
    /// Nobody has accepted it yet.
    pub waits: bool,
    /// It is on a link to another process of the machine.
    pub linked: bool,
    /// SACK and ECN are in use.
    pub negotiated: (bool, bool),
    /// Shifts of windows: the peer's, ours.
    pub scales: (u8, u8),
    /// Its congestion control.
    pub congestion: CongestionControl,
    /// Time-outs in a row.
    pub backoff: u8,
    /// Bytes of data of a full segment.
    pub mss: u16,
    /// Bytes of an IP packet on the path.
    pub path_mtu: u16,
    /// When it began: ns.
    pub since: u64,
    /// When this was written: ns.
    pub at: u64,
    /// Where both directions are.
    pub sequences: Sequences,
    /// Bytes that it takes, and that the peer takes.
    pub windows: (u32, u32),
    /// Congestion window: bytes.
    pub congestion_window: u32,
    /// Slow-start threshold: bytes; `u32::MAX`: none yet.
    pub threshold: u32,
    /// Bytes on the way.
    pub in_flight: u32,
    /// Bytes to be read, and bytes written that the peer has not acknowledged.
    pub queues: (u32, u32),
    /// Smoothed round-trip time and its variation: us; 0: none yet.
    pub rtt: (u32, u32),
    /// Least round-trip time: us; 0: none yet.
    pub least_rtt: u32,
    /// Retransmission time-out: us.
    pub timeout: u32,
    /// Segments sent again.
    pub retransmissions: u32,
    /// Bytes found lost, not sent again yet.
    pub lost: u32,
    /// Bytes of data sent, those sent again included.
    pub bytes_sent: u64,
    /// Bytes of data that the peer has acknowledged.
    pub bytes_acknowledged: u64,
    /// Bytes of data received in order.
    pub bytes_received: u64,
    /// What the path delivered: bytes/s; 0: not known.
    pub delivery_rate: u64,
    /// How long ago data was sent and received: ms; `u32::MAX`: never.
    pub idle: (u32, u32),
    /// Segments sent and received.
    pub segments: (u32, u32),
}

const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const ECN: u8 = 4;
const OPENED_HERE: u8 = 8;
const LINKED: u8 = 16;
const WAITS: u8 = 32;

impl Record {
    pub(super) fn encode(&self) -> [u64; WORDS] {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let flags = bit(self.sequences.timestamps.is_some(), TIMESTAMPS)
            | bit(self.negotiated.0, SACK)
            | bit(self.negotiated.1, ECN)
            | bit(self.opened_here, OPENED_HERE)
            | bit(self.linked, LINKED)
            | bit(self.waits, WAITS);
        let protocol = match self.protocol {
            TransportProtocol::Tcp => 6,
            TransportProtocol::Udp => 17,
        };
        let family = if self.local.is_ipv4() { 4 } else { 6 };
        let (state, congestion) = (self.state as u8, self.congestion as u8);
        let kinds = [
            protocol,
            state,
            family,
            congestion,
            flags,
            self.scales.0,
            self.scales.1,
            self.backoff,
        ];
        let [local_high, local_low] = address_words(self.local.ip());
        let [remote_high, remote_low] = address_words(self.remote.ip());
        let ports = [self.local.port(), self.remote.port(), self.mss, self.path_mtu];
        let ports = ports.into_iter().fold(0, |word, part| word << 16 | u64::from(part));
        let (stamp, echo) = self.sequences.timestamps.unwrap_or_default();
        [
            u64::from_be_bytes(kinds),
            local_high,
            local_low,
            remote_high,
            remote_low,
            ports,
            self.since,
            self.at,
            pair(self.sequences.unacknowledged, self.sequences.next),
            pair(self.sequences.expected, stamp),
            pair(echo, self.windows.0),
            pair(self.windows.1, self.congestion_window),
            pair(self.threshold, self.in_flight),
            pair(self.queues.0, self.queues.1),
            pair(self.rtt.0, self.rtt.1),
            pair(self.least_rtt, self.timeout),
            pair(self.retransmissions, self.lost),
            self.bytes_sent,
            self.bytes_acknowledged,
            self.bytes_received,
            self.delivery_rate,
            pair(self.idle.0, self.idle.1),
            pair(self.segments.0, self.segments.1),
        ]
    }

    /// What such words say. `None`: no connection could have written them.
    pub(super) fn decode(words: &[u64; WORDS]) -> Option<Self> {
        let [
            kinds,
            lh,
            ll,
            rh,
            rl,
            ports,
            since,
            at,
            w8,
            w9,
            w10,
            w11,
            w12,
            w13,
            w14,
            w15,
            w16,
            ..,
        ] = *words;
        let [.., bytes_sent, bytes_acknowledged, bytes_received, delivery_rate, w21, w22] = *words;
        let [protocol, state, family, congestion, flags, theirs, ours, backoff] =
            kinds.to_be_bytes();
        let protocol = match protocol {
            6 => TransportProtocol::Tcp,
            17 => TransportProtocol::Udp,
            _ => return None,
        };
        let port = |at: u32| (ports >> (48 - 16 * at)) as u16;
        let (local, remote) = (address(family, lh, ll)?, address(family, rh, rl)?);
        if port(0) == 0 || port(1) == 0 {
            return None;
        }
        let ((unacknowledged, next), (expected, stamp)) = (halves(w8), halves(w9));
        let ((echo, own_window), (peer_window, congestion_window)) = (halves(w10), halves(w11));
        let ((threshold, in_flight), (least_rtt, timeout)) = (halves(w12), halves(w15));
        let (retransmissions, lost) = halves(w16);
        let timestamps = (flags & TIMESTAMPS != 0).then_some((stamp, echo));
        Some(Self {
            protocol,
            local: (local, port(0)).into(),
            remote: (remote, port(1)).into(),
            state: State::ALL.into_iter().find(|one| *one as u8 == state)?,
            opened_here: flags & OPENED_HERE != 0,
            waits: flags & WAITS != 0,
            linked: flags & LINKED != 0,
            negotiated: (flags & SACK != 0, flags & ECN != 0),
            scales: (theirs, ours),
            congestion: CongestionControl::ALL
                .into_iter()
                .find(|one| *one as u8 == congestion)
                .unwrap_or_default(),
            backoff,
            mss: port(2),
            path_mtu: port(3),
            since,
            at,
            sequences: Sequences { unacknowledged, next, expected, timestamps },
            windows: (own_window, peer_window),
            congestion_window,
            threshold,
            in_flight,
            queues: halves(w13),
            rtt: halves(w14),
            least_rtt,
            timeout,
            retransmissions,
            lost,
            bytes_sent,
            bytes_acknowledged,
            bytes_received,
            delivery_rate,
            idle: halves(w21),
            segments: halves(w22),
        })
    }
}

pub(super) fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

pub(super) fn halves(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

pub(super) fn address_words(address: IpAddr) -> [u64; 2] {
    match address {
        IpAddr::V4(address) => [0, address.to_bits().into()],
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            [(bits >> 64) as u64, bits as u64]
        }
    }
}

pub(super) fn address(family: u8, high: u64, low: u64) -> Option<IpAddr> {
    match family {
        4 => Some(IpAddr::V4((low as u32).into())),
        6 => Some(IpAddr::V6((u128::from(high) << 64 | u128::from(low)).into())),
        _ => None,
    }
}
