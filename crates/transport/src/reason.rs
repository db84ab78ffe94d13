//! Why a packet had no effect, counted.

/// Declares the reasons with their names once.
macro_rules! reasons {
    ($($variant:ident $name:literal $what:literal,)*) => {
        /// Why a packet or a part of it was not taken.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason {
            $(#[doc = $what] $variant,)*
        }

        impl Reason {
            /// All of them, in the order of their counters.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name in counters, traces and documents.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

reasons! {
    IpHeader "ip-header" "The IP header or its chain of extension headers is malformed.",
    Protocol "protocol" "Neither TCP, UDP nor an ICMP error.",
    Fragment "fragment" "A fragment: reassembly comes before the stack.",
    Source "source" "The source address is no single host's (RFC 1122 4.2.3.10), or a port is 0.",
    TcpHeader "tcp-header" "The TCP header is malformed.",
    TcpChecksum "tcp-checksum" "The TCP checksum is wrong.",
    NoConnection "no-connection" "Nothing here has these addresses and ports; answered with a reset.",
    Deferred "deferred" "The handshake's last acknowledgment; the listener waits for data (TCP_DEFER_ACCEPT).",
    NoSlot "no-slot" "The table of connections is full.",
    NoFifo "no-fifo" "There are no data buffers for the connection.",
    SynQueue "syn-queue" "The listener's queue of half-open connections is full.",
    AcceptQueue "accept-queue" "The listener's queue of connections to accept is full.",
    Cookie "cookie" "The acknowledgment holds no valid SYN cookie.",
    Paws "paws" "The time stamp is older than the last one (RFC 7323 5).",
    OutOfWindow "out-of-window" "All of it lies outside the receive window (RFC 9293 3.10.7.4).",
    OldData "old-data" "All of it was received before.",
    ZeroWindow "zero-window" "Data for a closed window.",
    Reassembly "reassembly" "Too many gaps to keep another piece.",
    BadAck "bad-ack" "It acknowledges what was never sent, or what is too old (RFC 5961 5).",
    NoAck "no-ack" "The ACK bit is missing.",
    ResetOutOfWindow "reset-out-of-window" "A reset outside the window (RFC 5961 3).",
    ResetChallenged "reset-challenged" "A reset in the window, but not at its edge (RFC 5961 3).",
    SynChallenged "syn-challenged" "A SYN on a connection that is synchronised (RFC 5961 4).",
    AfterClose "after-close" "Data that nobody will read any more; answered with a reset.",
    TimeWait "time-wait" "For a connection in TIME-WAIT.",
    RateLimit "rate-limit" "No answer: too many challenges or resets in this second.",
    IcmpUnmatched "icmp-unmatched" "An ICMP error about nothing that is here or in flight (RFC 5927).",
    IcmpOther "icmp-other" "An ICMP message that is no concern of the transport.",
    SinkFull "sink-full" "The way out had no buffer for a packet.",
    EcnMixed "ecn-mixed" "A SYN that offers other congestion marks than the first; reset (RFC 9768 3.1.5).",
    SynData "syn-data" "Data in a SYN without Fast Open; it comes again.",
    FastOpenCookie "fast-open-cookie" "A Fast Open cookie that is not this address's, or too old (RFC 7413).",
    FastOpenQueue "fast-open-queue" "Data in a SYN, with too many such connections half open.",
    Moving "moving" "Its connection is away, on the way from one stack to another.",
    Path "path" "It came by a path that its connection does not take.",
    UdpHeader "udp-header" "The UDP header is malformed.",
    UdpChecksum "udp-checksum" "The UDP checksum is wrong.",
    UdpNoSocket "udp-no-socket" "No UDP socket has this address and port.",
    UdpQueue "udp-queue" "The UDP socket's queue is full.",
}

/// What a stack has counted since it was made.
#[derive(Debug, Clone)]
pub struct Counters {
    drops: [u64; Reason::ALL.len()],
    /// Segments received.
    pub segments_in: u64,
    /// Segments sent, as they are on the wire.
    pub segments_out: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Resets sent.
    pub resets_out: u64,
    /// Challenge acknowledgments sent (RFC 5961).
    pub challenges: u64,
    /// Connections that became established.
    pub established: u64,
    /// Datagrams received by sockets.
    pub datagrams_in: u64,
    /// Datagrams sent.
    pub datagrams_out: u64,
    /// ICMP errors sent about datagrams for no socket.
    pub unreachables_out: u64,
    /// Connections in TIME-WAIT that had to go early, since there were too many.
    pub time_waits_evicted: u64,
    /// Connections that were reset when they were closed, since too many closed ones go on.
    pub orphans_reset: u64,
    /// Connections that Fast Open made, as server (RFC 7413).
    pub fast_opens: u64,
    /// Segments sent to search for the path MTU (RFC 4821).
    pub path_probes: u64,
    /// Those of them that were lost alone.
    pub path_probes_lost: u64,
    /// Paths on which large packets seemed to vanish.
    pub black_holes: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            drops: [0; Reason::ALL.len()],
            segments_in: 0,
            segments_out: 0,
            retransmissions: 0,
            timeouts: 0,
            resets_out: 0,
            challenges: 0,
            established: 0,
            datagrams_in: 0,
            datagrams_out: 0,
            unreachables_out: 0,
            time_waits_evicted: 0,
            orphans_reset: 0,
            fast_opens: 0,
            path_probes: 0,
            path_probes_lost: 0,
            black_holes: 0,
        }
    }
}

impl Counters {
    /// Packets not taken for this reason.
    #[must_use]
    pub fn dropped(&self, reason: Reason) -> u64 {
        self.drops.get(reason as usize).copied().unwrap_or(0)
    }

    /// Counts a packet that is not taken.
    #[inline]
    pub fn drop(&mut self, reason: Reason) {
        if let Some(count) = self.drops.get_mut(reason as usize) {
            *count += 1;
        }
    }
}
