//! What a next hop does with a packet, and which node comes next.

/// What is done with a packet for a next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The index is not in use.
    Invalid,
    /// Rewrite, and send on to [`NextHop::next`](super::NextHop::next).
    Forward,
    /// As `Forward`, and mark the next hop as used: its neighbour is stale (RFC 4861 7.3.2).
    ForwardStale,
    /// The neighbour's MAC address is not known: the control thread takes the packet.
    Unresolved,
    /// A connected network: the destination itself is the neighbour, and not known yet.
    Glean,
    /// For this router.
    Local,
    /// Broadcast on a connected network.
    Broadcast,
    /// Dropped in silence.
    Blackhole,
    /// Dropped, and the sender is told that the network cannot be reached.
    Unreachable,
    /// Dropped, and the sender is told that the host cannot be reached: its neighbour did not answer.
    HostUnreachable,
    /// A miss that is dropped in silence.
    MissDrop,
    /// A miss that is answered with an ICMP error.
    MissUnreachable,
    /// A miss that goes back out of the port it came in by.
    MissReflect,
}

impl Kind {
    pub(super) const ALL: [Self; 13] = [
        Self::Invalid,
        Self::Forward,
        Self::ForwardStale,
        Self::Unresolved,
        Self::Glean,
        Self::Local,
        Self::Broadcast,
        Self::Blackhole,
        Self::Unreachable,
        Self::HostUnreachable,
        Self::MissDrop,
        Self::MissUnreachable,
        Self::MissReflect,
    ];

    /// Whether packets are sent to a MAC address.
    #[must_use]
    pub fn has_address(self) -> bool {
        matches!(self, Self::Forward | Self::ForwardStale)
    }

    #[inline(always)]
    pub(super) fn from_byte(byte: u8) -> Self {
        Self::ALL.get(usize::from(byte)).copied().unwrap_or(Self::Invalid)
    }
}

/// The node that gets a packet when its new Ethernet header is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum NextNode {
    /// `port-output`: it leaves by the egress port.
    #[default]
    Port,
    /// `bridge-output`: it goes into the bridge whose IP interface the egress is.
    Bridge,
}

impl NextNode {
    const ALL: [Self; 2] = [Self::Port, Self::Bridge];

    #[inline(always)]
    pub(super) fn from_byte(byte: u8) -> Self {
        Self::ALL.get(usize::from(byte)).copied().unwrap_or_default()
    }
}
