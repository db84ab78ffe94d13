//! What can be set for a socket. Sessions with equal settings share one copy.

use std::sync::Arc;

use transport::options::{MILLISECOND, SECOND};
use transport::{Algorithm, Fragmentation, Keepalive, Options, UdpOptions};

/// What Linux says of buffers that nobody has sized: `net.ipv4.tcp_rmem` and `tcp_wmem`.
const STREAM_BUFFERS: (u32, u32) = (131_072, 16_384);
/// The same for datagrams: `net.core.rmem_default` and `wmem_default`.
const DATAGRAM_BUFFERS: (u32, u32) = (212_992, 212_992);
/// Time to live and hop limit unless the application says otherwise (`ip_default_ttl`).
pub(crate) const TTL: u8 = 64;
/// `TCP_FIN_TIMEOUT`: seconds in FIN-WAIT-2 after close.
pub(crate) const FIN_WAIT_2: i32 = 60;
/// `TCP_DELACK_MAX`: us. An acknowledgment waits for less than that anyway (`TCP_ATO_MIN`).
pub(crate) const DELACK_MAX: u32 = 200_000;

/// All settings of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// What the stack is told of a stream: see [`derive`](Self::derive).
    pub(crate) stream: Options,
    /// The same of datagrams.
    pub(crate) datagrams: UdpOptions,
    /// Bits of [`flag`].
    pub(crate) flags: u32,
    /// `SO_RCVBUF` and `SO_SNDBUF` as they are told: twice what was asked for.
    pub(crate) buffers: (u32, u32),
    /// `SO_RCVLOWAT`: bytes.
    pub(crate) receive_low_water: u32,
    /// `SO_RCVTIMEO` and `SO_SNDTIMEO`: ns; `None`: for ever.
    pub(crate) timeouts: (Option<u64>, Option<u64>),
    /// `SO_LINGER`: seconds; kept when it is off.
    pub(crate) linger: u32,
    /// `SO_PRIORITY`: a hint for queues that packets do not pass here.
    pub(crate) priority: u8,
    /// `SO_MAX_PACING_RATE`: bytes/s; `u64::MAX`: none.
    pub(crate) pacing_rate: u64,
    /// `TCP_KEEPIDLE`, `TCP_KEEPINTVL`, `TCP_KEEPCNT`, whether or not `SO_KEEPALIVE` is set.
    pub(crate) keepalive: Keepalive,
    /// `TCP_LINGER2`: seconds; negative: does not wait.
    pub(crate) linger2: i32,
    /// `TCP_DELACK_MAX_US`: us.
    pub(crate) longest_ack_delay: u32,
    /// `TCP_DEFER_ACCEPT` as Linux keeps it: retransmissions.
    pub(crate) defer_accept: u8,
    /// `TCP_FASTOPEN`: connections that may wait; 0: off.
    pub(crate) fast_open_queue: u32,
    /// `TCP_WINDOW_CLAMP`: bytes; 0: none.
    pub(crate) window_clamp: u32,
    /// `TCP_NOTSENT_LOWAT`: bytes; 0: none.
    pub(crate) not_sent_low_water: u32,
    /// `UDP_SEGMENT`: bytes; 0: off.
    pub(crate) segment: u16,
    /// `SO_TIMESTAMPING` of datagrams: bits.
    pub(crate) timestamping: u32,
    /// `IP_TTL` and `IPV6_UNICAST_HOPS`.
    pub(crate) ttls: (Option<u8>, Option<u8>),
    /// `IP_MULTICAST_TTL` and `IPV6_MULTICAST_HOPS`.
    pub(crate) multicast_ttls: (u8, u8),
    /// `IP_TOS` and `IPV6_TCLASS`.
    pub(crate) services: (u8, u8),
    /// `IP_MTU_DISCOVER` and `IPV6_MTU_DISCOVER`.
    pub(crate) mtu_discover: (u8, u8),
}

/// Settings that are on or off.
pub(crate) mod flag {
    /// `SO_REUSEADDR`.
    pub(crate) const REUSE_ADDRESS: u32 = 1;
    /// `SO_REUSEPORT`.
    pub(crate) const REUSE_PORT: u32 = 1 << 1;
    /// `SO_BROADCAST`.
    pub(crate) const BROADCAST: u32 = 1 << 2;
    /// `SO_KEEPALIVE`.
    pub(crate) const KEEPALIVE: u32 = 1 << 3;
    /// `SO_LINGER` is on.
    pub(crate) const LINGER: u32 = 1 << 4;
    /// `SO_OOBINLINE`.
    pub(crate) const URGENT_INLINE: u32 = 1 << 5;
    /// `SO_RCVBUF` was set.
    pub(crate) const RECEIVE_SIZED: u32 = 1 << 6;
    /// `SO_SNDBUF` was set.
    pub(crate) const SEND_SIZED: u32 = 1 << 7;
    /// `IPV6_V6ONLY`.
    pub(crate) const V6_ONLY: u32 = 1 << 8;
    /// `TCP_FASTOPEN_CONNECT`.
    pub(crate) const FAST_OPEN_CONNECT: u32 = 1 << 9;
    /// `IP_RECVERR`.
    pub(crate) const ERRORS_TOLD: u32 = 1 << 10;
    /// `TCP_QUICKACK` was switched off.
    pub(crate) const DELAYED: u32 = 1 << 11;
    /// `IP_BIND_ADDRESS_NO_PORT`.
    pub(crate) const BIND_NO_PORT: u32 = 1 << 12;
    /// `IP_FREEBIND`, `IPV6_FREEBIND`: whoever has let the application bind has looked at it.
    pub(crate) const FREE_BIND: u32 = 1 << 13;
    /// `IP_PKTINFO`.
    pub(crate) const PACKET_INFO: u32 = 1 << 14;
    /// `IP_RECVTTL`.
    pub(crate) const TTL_TOLD: u32 = 1 << 15;
    /// `IP_RECVTOS`.
    pub(crate) const SERVICE_TOLD: u32 = 1 << 16;
    /// `IPV6_RECVPKTINFO`.
    pub(crate) const PACKET_INFO_V6: u32 = 1 << 17;
    /// `IPV6_RECVHOPLIMIT`.
    pub(crate) const TTL_TOLD_V6: u32 = 1 << 18;
    /// `IPV6_RECVTCLASS`.
    pub(crate) const SERVICE_TOLD_V6: u32 = 1 << 19;
    /// `IPV6_DONTFRAG`.
    pub(crate) const DONT_FRAGMENT: u32 = 1 << 20;
    /// `IP_MULTICAST_LOOP` is off.
    pub(crate) const NO_LOOP: u32 = 1 << 21;
    /// `IPV6_MULTICAST_LOOP` is off.
    pub(crate) const NO_LOOP_V6: u32 = 1 << 22;
    /// `IP_MULTICAST_ALL` is not what it was at first.
    pub(crate) const ALL_CHANGED: u32 = 1 << 23;
    /// `IPV6_MULTICAST_ALL` is off.
    pub(crate) const NOT_ALL_V6: u32 = 1 << 24;
    /// `UDP_CORK`.
    pub(crate) const CORK: u32 = 1 << 26;
    /// `IPV6_RECVERR`.
    pub(crate) const ERRORS_TOLD_V6: u32 = 1 << 27;
    /// `SO_TIMESTAMP` or `SO_TIMESTAMPNS`.
    pub(crate) const STAMPED: u32 = 1 << 28;
    /// It is `SO_TIMESTAMPNS`.
    pub(crate) const STAMPED_NANOS: u32 = 1 << 29;
    /// The names of control messages are those of 64-bit times (`SO_TIMESTAMP_NEW` and its kin).
    pub(crate) const STAMPED_NEW: u32 = 1 << 30;
    /// `UDP_GRO`.
    pub(crate) const GATHERED: u32 = 1 << 31;
}

/// Values of `IP_MTU_DISCOVER` (`uapi/linux/in.h`), which `IPV6_MTU_DISCOVER` shares.
pub(crate) mod discover {
    pub(crate) const DONT: u8 = 0;
    pub(crate) const WANT: u8 = 1;
    pub(crate) const DO: u8 = 2;
    pub(crate) const PROBE: u8 = 3;
    pub(crate) const OMIT: u8 = 5;
}

impl Settings {
    /// Of a stream that was just opened.
    fn stream() -> Self {
        Self {
            stream: Options {
                congestion: Algorithm::Cubic,
                urgent_inline: false,
                ..Options::default()
            },
            datagrams: UdpOptions::default(),
            flags: 0,
            buffers: STREAM_BUFFERS,
            receive_low_water: 1,
            timeouts: (None, None),
            linger: 0,
            priority: 0,
            pacing_rate: u64::MAX,
            keepalive: Keepalive { idle: 7200 * SECOND, interval: 75 * SECOND, count: 9 },
            linger2: FIN_WAIT_2,
            longest_ack_delay: DELACK_MAX,
            defer_accept: 0,
            fast_open_queue: 0,
            window_clamp: 0,
            not_sent_low_water: 0,
            segment: 0,
            timestamping: 0,
            ttls: (None, None),
            multicast_ttls: (1, 1),
            services: (0, 0),
            mtu_discover: (discover::WANT, discover::WANT),
        }
    }

    /// Of a socket for datagrams that was just opened.
    fn datagrams() -> Self {
        let mut settings = Self { buffers: DATAGRAM_BUFFERS, ..Self::stream() };
        settings.derive(true);
        settings
    }

    /// Whether a flag is set.
    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Sets or clears a flag.
    pub(crate) fn set(&mut self, flag: u32, on: bool) {
        if on { self.flags |= flag } else { self.flags &= !flag }
    }

    /// Whether packets of one version of IP say something else than those of the other.
    pub(crate) fn differs_by_version(&self) -> bool {
        let different = |pair: (u8, u8)| pair.0 != pair.1;
        self.ttls.0 != self.ttls.1 || different(self.services) || different(self.mtu_discover)
    }

    /// Works out what the stack is told; `v4`: packets are IPv4.
    pub(crate) fn derive(&mut self, v4: bool) {
        let of = |pair: (u8, u8)| if v4 { pair.0 } else { pair.1 };
        let ttl = if v4 { self.ttls.0 } else { self.ttls.1 }.unwrap_or(TTL);
        let (service, discover) = (of(self.services), of(self.mtu_discover));
        self.derive_stream();
        self.stream.ttl = ttl;
        self.stream.dscp = service >> 2;
        self.stream.mtu_discovery = !matches!(discover, discover::DONT | discover::OMIT);
        self.datagrams = UdpOptions {
            receive_buffer: self.buffers.0,
            v6_only: self.has(flag::V6_ONLY),
            share: self.has(flag::REUSE_PORT),
            reuse_address: self.has(flag::REUSE_ADDRESS),
            broadcast: self.has(flag::BROADCAST),
            errors_v4: self.has(flag::ERRORS_TOLD),
            errors_v6: self.has(flag::ERRORS_TOLD_V6),
            fragmentation: match discover {
                discover::DO => Fragmentation::Refused,
                discover::PROBE => Fragmentation::Probing,
                _ if !v4 && self.has(flag::DONT_FRAGMENT) => Fragmentation::Refused,
                discover::WANT => Fragmentation::BeyondPath,
                _ => Fragmentation::Allowed,
            },
            ttl,
            multicast_ttl: of(self.multicast_ttls),
            multicast_loop: !self.has(if v4 { flag::NO_LOOP } else { flag::NO_LOOP_V6 }),
            dscp: service >> 2,
            ecn: service & 3,
        };
    }

    fn derive_stream(&mut self) {
        let plain = Options::default();
        let sized = |flag: u32, told: u32, plain: u32| {
            // Linux counts the memory of buffers, which is about twice the data.
            if self.flags & flag != 0 { told / 2 } else { plain }
        };
        let clamp = if self.window_clamp == 0 { u32::MAX } else { self.window_clamp };
        let receive = sized(flag::RECEIVE_SIZED, self.buffers.0, plain.receive_buffer);
        let most = sized(flag::RECEIVE_SIZED, self.buffers.0, plain.receive_buffer_limit);
        let transmit = sized(flag::SEND_SIZED, self.buffers.1, plain.transmit_buffer);
        let linger2 = u64::try_from(self.linger2).unwrap_or(0);
        let fast_open = self.fast_open_queue > 0 || self.has(flag::FAST_OPEN_CONNECT);
        let keepalive = self.has(flag::KEEPALIVE).then_some(self.keepalive);
        let linger = self.has(flag::LINGER).then_some(u64::from(self.linger) * SECOND);
        let urgent_inline = self.has(flag::URGENT_INLINE);
        let stream = &mut self.stream;
        stream.urgent_inline = urgent_inline;
        stream.receive_buffer = receive.min(clamp);
        stream.receive_buffer_limit = most.min(clamp);
        stream.transmit_buffer = transmit;
        stream.keepalive = keepalive;
        stream.linger = linger;
        stream.fin_wait_2 = linger2 * SECOND;
        stream.delayed_ack = plain.delayed_ack.min(u64::from(self.longest_ack_delay) * 1000);
        stream.defer_accept = u64::from(retransmission_seconds(self.defer_accept)) * SECOND;
        stream.fast_open = fast_open;
        stream.fast_open_pending = self.fast_open_queue.min(u16::MAX.into()) as u16;
        stream.not_sent_low_water =
            if self.not_sent_low_water == 0 { u32::MAX } else { self.not_sent_low_water };
        // The stack's 0 is no limit.
        stream.pacing_limit =
            if self.pacing_rate == u64::MAX { 0 } else { self.pacing_rate.max(1) };
    }
}

/// The first answer to a SYN is repeated after a second, later ones after twice as long each, at most this.
const LONGEST_REPEAT: u32 = 120;

/// How many retransmissions of the answer to a SYN so many seconds hold (`secs_to_retrans`).
pub(crate) fn retransmissions(seconds: i32) -> u8 {
    let (mut count, mut timeout, mut period) = (1u8, 1, 1);
    if seconds <= 0 {
        return 0;
    }
    while seconds as u32 > period && count < u8::MAX {
        count += 1;
        timeout = (timeout * 2).min(LONGEST_REPEAT);
        period += timeout;
    }
    count
}

/// How many seconds so many retransmissions take (`retrans_to_secs`).
pub(crate) fn retransmission_seconds(count: u8) -> u32 {
    let (mut timeout, mut period) = (1, 0);
    for _ in 0..count {
        period += timeout;
        timeout = (timeout * 2).min(LONGEST_REPEAT);
    }
    period
}

/// Milliseconds as ns.
pub(crate) fn from_millis(millis: u32) -> u64 {
    u64::from(millis) * MILLISECOND
}

/// Recently used settings, so that equal ones are found again.
#[derive(Debug)]
pub(crate) struct Shelf {
    recent: [Option<Arc<Settings>>; 16],
    next: usize,
    /// Of sockets that were just opened.
    pub(crate) stream: Arc<Settings>,
    pub(crate) datagrams: Arc<Settings>,
}

impl Shelf {
    pub(crate) fn new() -> Self {
        let (stream, datagrams) = (Arc::new(Settings::stream()), Arc::new(Settings::datagrams()));
        let recent = std::array::from_fn(|_| None);
        Self { recent, next: 0, stream, datagrams }
    }

    /// Sockets that are opened from now on begin with `SO_OOBINLINE`.
    pub(crate) fn keep_urgent_inline(&mut self) {
        let mut settings = Settings::clone(&self.stream);
        settings.set(flag::URGENT_INLINE, true);
        settings.derive(true);
        self.stream = Arc::new(settings);
    }

    /// A copy that all with these settings share, as far as is remembered.
    pub(crate) fn share(&mut self, settings: Settings) -> Arc<Settings> {
        let own = [&self.stream, &self.datagrams];
        let known = own.into_iter().chain(self.recent.iter().flatten());
        if let Some(known) = known.into_iter().find(|known| ***known == settings) {
            return Arc::clone(known);
        }
        let shared = Arc::new(settings);
        self.next = (self.next + 1) % self.recent.len();
        if let Some(place) = self.recent.get_mut(self.next) {
            *place = Some(Arc::clone(&shared));
        }
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_retransmissions_as_in_linux() {
        for (seconds, count, told) in
            [(0, 0, 0), (1, 1, 1), (2, 2, 3), (3, 2, 3), (4, 3, 7), (10, 4, 15), (300, 9, 367)]
        {
            assert_eq!(retransmissions(seconds), count, "{seconds}");
            assert_eq!(retransmission_seconds(count), told, "{seconds}");
        }
    }

    #[test]
    fn what_nobody_has_set_is_what_the_stack_does_anyway() {
        for (mut settings, datagrams) in
            [(Settings::stream(), false), (Settings::datagrams(), true)]
        {
            let before = settings.clone();
            settings.derive(true);
            assert_eq!(settings.stream, Options { fast_open_pending: 0, ..before.stream });
            if datagrams {
                assert_eq!(settings.datagrams, before.datagrams);
            }
        }
    }

    #[test]
    fn equal_settings_are_one() {
        let mut shelf = Shelf::new();
        let mut other = Settings::stream();
        other.set(flag::KEEPALIVE, true);
        let (one, two) = (shelf.share(other.clone()), shelf.share(other));
        assert!(Arc::ptr_eq(&one, &two));
        assert!(Arc::ptr_eq(&shelf.share(Settings::stream()), &shelf.stream));
    }
}
