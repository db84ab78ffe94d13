//! What can be set for a socket. Sessions with equal settings share one copy.

use std::sync::Arc;

use transport::options::{MILLISECOND, SECOND};
use transport::{Keepalive, Options, UdpOptions};

/// Bytes that Linux counts for buffers that nobody has sized: `net.ipv4.tcp_rmem` and `tcp_wmem`.
pub(crate) const RECEIVE_BUFFER: u32 = 131_072;
/// The same, to send.
pub(crate) const SEND_BUFFER: u32 = 16_384;
/// `net.core.rmem_default` and `wmem_default`: buffers of UDP sockets.
pub(crate) const DATAGRAM_BUFFER: u32 = 212_992;

/// All settings of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Of a stream, as the stack knows them.
    pub(crate) stream: Options,
    /// Of datagrams, as the stack knows them.
    pub(crate) datagrams: UdpOptions,
    /// `TCP_KEEPIDLE`, `TCP_KEEPINTVL`, `TCP_KEEPCNT`, whether or not `SO_KEEPALIVE` is set.
    pub(crate) keepalive: Keepalive,
    /// `SO_REUSEADDR`.
    pub(crate) reuse_address: bool,
    /// `SO_REUSEPORT`.
    pub(crate) reuse_port: bool,
    /// `IPV6_V6ONLY`.
    pub(crate) v6_only: bool,
    /// `SO_BROADCAST`, which streams have too.
    pub(crate) broadcast: bool,
    /// `SO_RCVLOWAT`: bytes.
    pub(crate) receive_low_water: u32,
    /// `SO_RCVTIMEO` and `SO_SNDTIMEO`: ns; `None`: for ever.
    pub(crate) receive_timeout: Option<u64>,
    pub(crate) send_timeout: Option<u64>,
    /// `SO_RCVBUF` and `SO_SNDBUF` as they are told, which is twice what was asked for.
    pub(crate) receive_buffer: u32,
    pub(crate) send_buffer: u32,
    /// Which of both the application has chosen.
    pub(crate) chosen: (bool, bool),
    /// `SO_LINGER`: on, seconds. Off keeps the seconds.
    pub(crate) linger: (bool, u32),
    /// `SO_PRIORITY`.
    pub(crate) priority: i32,
    /// Bits of [`flag`].
    pub(crate) flags: u32,
    /// `UDP_SEGMENT`: bytes; 0: off.
    pub(crate) segment: u16,
    /// `IP_TTL` was set; else the default is told as -1 where Linux does.
    pub(crate) hop_limit: Option<u8>,
    /// The same for multicast.
    pub(crate) multicast_hops: Option<u8>,
    /// `IP_TOS`, `IPV6_TCLASS`: whole bytes.
    pub(crate) tos: u8,
    pub(crate) traffic_class: u8,
    /// `IP_MTU_DISCOVER`, `IPV6_MTU_DISCOVER`.
    pub(crate) mtu_discover: (i32, i32),
    /// `TCP_LINGER2`: seconds; -1: does not wait.
    pub(crate) linger2: i32,
    /// `TCP_DEFER_ACCEPT` as Linux counts it: retransmissions.
    pub(crate) defer_accept: u8,
    /// `TCP_FASTOPEN`: connections that wait; 0: off.
    pub(crate) fast_open_queue: u32,
}

/// Settings that are on or off, and that the caller looks after.
pub(crate) mod flag {
    /// `TCP_FASTOPEN_CONNECT`.
    pub(crate) const FAST_OPEN_CONNECT: u32 = 1;
}

impl Settings {
    /// Of a socket that was just opened.
    pub(crate) fn new() -> Self {
        let keepalive = Keepalive { idle: 7200 * SECOND, interval: 75 * SECOND, count: 9 };
        Self {
            stream: Options {
                defer_accept: 0,
                delayed_ack: 40 * MILLISECOND,
                ..Options::default()
            },
            datagrams: UdpOptions::default(),
            keepalive,
            reuse_address: false,
            reuse_port: false,
            v6_only: false,
            broadcast: false,
            receive_low_water: 1,
            receive_timeout: None,
            send_timeout: None,
            receive_buffer: RECEIVE_BUFFER,
            send_buffer: SEND_BUFFER,
            chosen: (false, false),
            linger: (false, 0),
            priority: 0,
            flags: 0,
            segment: 0,
            hop_limit: None,
            multicast_hops: None,
            tos: 0,
            traffic_class: 0,
            mtu_discover: (1, 1),
            linger2: 60,
            defer_accept: 0,
            fast_open_queue: 0,
        }
    }

    /// Of a socket for datagrams.
    pub(crate) fn datagrams() -> Self {
        let (receive_buffer, send_buffer) = (DATAGRAM_BUFFER, DATAGRAM_BUFFER);
        Self { receive_buffer, send_buffer, ..Self::new() }
    }
}

/// Recently used settings, so that equal ones are found again.
#[derive(Debug)]
pub(crate) struct Shelf {
    recent: [Option<Arc<Settings>>; 16],
    next: usize,
    pub(crate) stream: Arc<Settings>,
    pub(crate) datagrams: Arc<Settings>,
}

impl Shelf {
    pub(crate) fn new() -> Self {
        let (stream, datagrams) = (Arc::new(Settings::new()), Arc::new(Settings::datagrams()));
        let recent = std::array::from_fn(|_| None);
        Self { recent, next: 0, stream, datagrams }
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
