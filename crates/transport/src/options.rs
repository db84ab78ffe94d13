//! What can be set for the stack and for a socket.

use crate::congestion::Algorithm;

mod sets;

pub(crate) use sets::Sets;

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;
/// Nanoseconds in a millisecond.
pub const MILLISECOND: u64 = 1_000_000;
/// A time that does not come.
pub(crate) const NEVER: u64 = u64::MAX;

/// Bytes of a transmit buffer whose size nobody has chosen.
pub(crate) const TRANSMIT_BUFFER: u32 = 262_144;

/// What holds for the whole stack.
#[derive(Debug, Clone)]
pub struct Config {
    /// Connections at most, over IPv4.
    pub connections_v4: usize,
    /// Connections at most, over IPv6.
    pub connections_v6: usize,
    /// Connections at most, over both, with those that are over and not closed yet: each has a
    /// [place](crate::Stack::PLACE_BYTES).
    pub connections: usize,
    /// Connections in TIME-WAIT at most that the application has closed, over both: 64 bytes each, beside
    /// those above. One more takes the place of the oldest. 0: they count as the others do.
    pub time_waits: usize,
    /// Connections that the application has closed, and that still have something to send or wait for the
    /// peer's FIN, at most (as Linux's `tcp_max_orphans`): one more is reset when it is closed.
    pub orphans: usize,
    /// Bytes to which a transmit buffer grows by itself.
    pub transmit_buffer_limit: u32,
    /// Bytes of an IP packet on the port, at most.
    pub mtu: u16,
    /// Secret random words, behind sequence numbers, ports and cookies. With the same seed, packets and
    /// times everything happens again.
    pub seed: [u64; 2],
    /// Challenge acknowledgments per second (RFC 5961 7). This and the next two are means: how many it is in
    /// a second is chosen at random between half and one and a half times as many, and one peer gets a
    /// quarter at most, so that nobody learns from them what others were sent (CVE-2016-5696, SAD DNS).
    pub challenges: u32,
    /// Resets in answer to packets for no connection, and SYN cookies of other stacks that are taken, per second.
    pub resets: u32,
    /// Path MTUs remembered between connections at most, one a peer; 0: none.
    pub path_mtus: usize,
    /// Fast Open cookies kept at most, one a server; 0: none (RFC 7413).
    pub fast_open_cookies: usize,
    /// ICMP errors in answer to datagrams for no socket, per second.
    pub unreachables: u32,
    /// Ports to choose from for connections opened without one (RFC 6056 3.2).
    pub ephemeral_ports: std::ops::RangeInclusive<u16>,
    /// Connections are kept here for other stacks: those that nobody has accepted can be imported without a listener. A
    /// handshake that is under way waits then: what would end it is dropped, and comes again.
    pub custody: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            connections_v4: 65_536,
            connections_v6: 65_536,
            connections: usize::MAX,
            time_waits: 65_536,
            orphans: 16_384,
            transmit_buffer_limit: 4_194_304,
            mtu: 1500,
            seed: [0; 2],
            challenges: 1000,
            resets: 1000,
            unreachables: 1000,
            path_mtus: 1024,
            fast_open_cookies: 1024,
            ephemeral_ports: 32_768..=60_999,
            custody: false,
        }
    }
}

/// Probing of an idle peer (RFC 9293 3.8.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// Silence before the first probe: ns.
    pub idle: u64,
    /// Between two probes: ns.
    pub interval: u64,
    /// Probes without an answer until the connection fails. With [`Options::user_timeout`], as many as that takes.
    pub count: u8,
}

/// How congestion marks are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ecn {
    /// Not at all.
    Off,
    /// When the peer asks for it, with the feedback that it asks for.
    Passive,
    /// Asked for as RFC 3168 has it; else as [`Passive`](Self::Passive).
    Active,
    /// Asked for with accurate feedback (RFC 9768), or what of it the peer has; else as
    /// [`Passive`](Self::Passive).
    Accurate,
}

/// Whether the path MTU is searched for with data segments (RFC 4821).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathProbing {
    /// Not at all: only ICMP is believed.
    Off,
    /// When three time-outs in a row suggest that large packets vanish without a word.
    BlackHole,
    /// From the start: packets are small (1,024 bytes, IPv6 1,280) until larger ones have arrived.
    Always,
}

/// What can be set per listener or connection. A connection starts with its listener's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Small segments are not held back while data is in flight (Nagle off).
    pub no_delay: bool,
    /// Only full segments are sent, until this is taken back, or nothing has been in flight for 200 ms.
    pub cork: bool,
    /// Every data segment is acknowledged at once.
    pub quick_ack: bool,
    /// What the peer calls urgent stays in the stream, as RFC 6093 has it (`SO_OOBINLINE`). Else reads pass over its last
    /// byte, which [`Stack::take_urgent`](crate::Stack::take_urgent) gives.
    pub urgent_inline: bool,
    /// Probing of an idle peer; `None`: none.
    pub keepalive: Option<Keepalive>,
    /// How long data may stay unacknowledged (RFC 5482), and a peer that keepalive probes silent: ns; 0: as many
    /// retransmissions as [`retries`](Self::retries) says, as many probes as [`Keepalive::count`] does.
    pub user_timeout: u64,
    /// Retransmissions until an established connection fails.
    pub retries: u8,
    /// The same once the application has closed it; also probes of a closed window, answered or not (as
    /// Linux's `tcp_orphan_retries`).
    pub orphan_retries: u8,
    /// Retransmissions of a SYN (`TCP_SYNCNT`).
    pub syn_retries: u8,
    /// Retransmissions of the answer to a SYN.
    pub syn_ack_retries: u8,
    /// A connection that comes in is established only when its first data arrives, or after so many ns
    /// (`TCP_DEFER_ACCEPT`), rounded up to a repetition of the answer to the SYN; 0: at once.
    pub defer_accept: u64,
    /// What `close` does with data that is not acknowledged yet (`SO_LINGER`): `None`: sends it, and nobody
    /// waits. `Some(0)`: throws it away, and resets the connection. Else: sends it; the application waits
    /// so many ns for `Gone`, which it times itself.
    pub linger: Option<u64>,
    /// Bytes of receive buffer at the start.
    pub receive_buffer: u32,
    /// Bytes to which the receive buffer may grow by itself; equal: it does not grow.
    pub receive_buffer_limit: u32,
    /// Bytes of transmit buffer. The default grows with the congestion window, up to
    /// [`Config::transmit_buffer_limit`]; another value stays (as after `SO_SNDBUF`).
    pub transmit_buffer: u32,
    /// Bytes written and not sent at most (`TCP_NOTSENT_LOWAT`), a write that begins below it aside;
    /// `Writable` comes when half of it is left. `u32::MAX`: as many as the buffer holds.
    pub not_sent_low_water: u32,
    /// Bytes of a segment's data at most, both ways; 0: what the path allows.
    pub mss: u16,
    /// Congestion control.
    pub congestion: Algorithm,
    /// Segments sent before the first acknowledgment (RFC 6928).
    pub initial_window: u8,
    /// Window scaling is offered (RFC 7323).
    pub window_scale: bool,
    /// Time stamps are offered (RFC 7323).
    pub timestamps: bool,
    /// Selective acknowledgment is offered (RFC 2018).
    pub sack: bool,
    /// Fast Open (RFC 7413). A connection that is opened sends what was written before the next flush
    /// in its SYN, once the server has given a cookie; the application must bear that the server gets it
    /// twice. A listener gives cookies, and takes data in a SYN that has one.
    pub fast_open: bool,
    /// Fast Open without cookies, at both ends (`TCP_FASTOPEN_NO_COOKIE`), for networks in which nobody forges
    /// addresses: data goes in every first SYN, and is taken from any.
    pub fast_open_without_cookie: bool,
    /// Connections of a listener that Fast Open made and whose handshake goes on, at most; beyond that
    /// data in a SYN is not taken.
    pub fast_open_pending: u16,
    /// Congestion marks.
    pub ecn: Ecn,
    /// Bytes per second at most; 0: no limit.
    pub pacing_limit: u64,
    /// Segments are spread over time at a rate even when the congestion control does not ask for it.
    pub pacing: bool,
    /// Path MTU discovery: don't-fragment is set, and the MTU follows ICMP and probes.
    pub mtu_discovery: bool,
    /// Search for the path MTU; means nothing without [`mtu_discovery`](Self::mtu_discovery).
    pub path_probing: PathProbing,
    /// Longest delay of an acknowledgment: ns (RFC 9293 3.8.6.3: below 500 ms).
    pub delayed_ack: u64,
    /// Shortest retransmission time-out: ns. RFC 6298 2.4 says 1 s; 200 ms is what hosts use.
    pub minimum_rto: u64,
    /// Time in TIME-WAIT: ns; 655 s at most when the peer's FIN comes again.
    pub time_wait: u64,
    /// Time in FIN-WAIT-2 after close (`TCP_LINGER2`): ns.
    pub fin_wait_2: u64,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// Differentiated services code point.
    pub dscp: u8,
}

impl Options {
    /// The shift that lets a window say all that the receive buffer may become (RFC 7323 2).
    pub(crate) fn own_scale(&self) -> u8 {
        let most = self.receive_buffer.max(self.receive_buffer_limit);
        let shift = (0..14).find(|shift| most >> shift <= 65_535).unwrap_or(14);
        if self.window_scale { shift } else { 0 }
    }

    /// The segment size to announce: what the port takes (RFC 6691), or less. `mtu`, `ip_header`: bytes.
    pub(crate) fn announced_mss(&self, mtu: u16, ip_header: u16) -> u16 {
        let mss = mtu.saturating_sub(ip_header + 20);
        match self.mss {
            0 => mss,
            limit => mss.min(limit),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            no_delay: false,
            cork: false,
            quick_ack: false,
            urgent_inline: true,
            keepalive: None,
            user_timeout: 0,
            retries: 15,
            orphan_retries: 8,
            syn_retries: 6,
            syn_ack_retries: 5,
            defer_accept: 0,
            linger: None,
            receive_buffer: 131_072,
            receive_buffer_limit: 6_291_456,
            transmit_buffer: TRANSMIT_BUFFER,
            not_sent_low_water: u32::MAX,
            mss: 0,
            congestion: Algorithm::Cubic,
            initial_window: 10,
            window_scale: true,
            timestamps: true,
            sack: true,
            fast_open: false,
            fast_open_without_cookie: false,
            fast_open_pending: 128,
            ecn: Ecn::Passive,
            pacing_limit: 0,
            pacing: false,
            mtu_discovery: true,
            path_probing: PathProbing::BlackHole,
            delayed_ack: 40 * MILLISECOND,
            minimum_rto: 200 * MILLISECOND,
            time_wait: 60 * SECOND,
            fin_wait_2: 60 * SECOND,
            ttl: 64,
            dscp: 0,
        }
    }
}
