//! States of a connection (RFC 9293 3.3.2). LISTEN is a listener's; CLOSED means over.

/// Where a connection is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum State {
    /// Over: nothing is sent or received any more.
    #[default]
    Closed,
    /// A SYN was sent.
    SynSent,
    /// A SYN was received, and answered.
    SynReceived,
    /// Data flows.
    Established,
    /// Our FIN was sent.
    FinWait1,
    /// Our FIN was acknowledged.
    FinWait2,
    /// The peer's FIN was received.
    CloseWait,
    /// Both FINs crossed.
    Closing,
    /// Our FIN was sent after the peer's was received.
    LastAck,
    /// Both are done; late segments are waited out.
    TimeWait,
}

impl State {
    /// Both sequence numbers are agreed on.
    #[inline(always)]
    pub(crate) fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::SynSent | Self::SynReceived)
    }

    /// The peer may still send data.
    #[inline(always)]
    pub(crate) fn receives(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// Data and FIN may be sent, or sent again.
    #[inline(always)]
    pub(crate) fn transmits(self) -> bool {
        use State::{CloseWait, Closing, Established, FinWait1, LastAck};
        matches!(self, Established | CloseWait | FinWait1 | Closing | LastAck)
    }
}
