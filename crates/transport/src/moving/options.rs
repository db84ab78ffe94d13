//! Options travel with their connection.

use crate::congestion::Algorithm;
use crate::failure::Failure;
use crate::options::{Ecn, Keepalive, Options, PathProbing};
use crate::tcp::state::State;

use crate::carried::Carried;
use crate::carried::ImportError;
use crate::carried::{Reader, Writer};

carried!(Options {
    no_delay,
    cork,
    quick_ack,
    urgent_inline,
    keepalive,
    user_timeout,
    retries,
    syn_retries,
    syn_ack_retries,
    orphan_retries,
    not_sent_low_water,
    fast_open_without_cookie,
    defer_accept,
    linger,
    receive_buffer,
    receive_buffer_limit,
    transmit_buffer,
    mss,
    congestion,
    initial_window,
    window_scale,
    timestamps,
    sack,
    fast_open,
    fast_open_pending,
    ecn,
    pacing_limit,
    pacing,
    mtu_discovery,
    path_probing,
    delayed_ack,
    minimum_rto,
    time_wait,
    fin_wait_2,
    ttl,
    dscp,
});

carried!(Keepalive { idle, interval, count });

carried_as!(Algorithm {
    Self::Bbr => 0 => Self::Bbr,
    Self::Cubic => 1 => Self::Cubic,
    Self::NewReno => 2 => Self::NewReno,
});

carried_as!(Ecn {
    Self::Off => 0 => Self::Off,
    Self::Passive => 1 => Self::Passive,
    Self::Active => 2 => Self::Active,
    Self::Accurate => 3 => Self::Accurate,
});

carried_as!(PathProbing {
    Self::Off => 0 => Self::Off,
    Self::BlackHole => 1 => Self::BlackHole,
    Self::Always => 2 => Self::Always,
});

carried_as!(State {
    Self::Closed => 0 => Self::Closed,
    Self::SynSent => 1 => Self::SynSent,
    Self::SynReceived => 2 => Self::SynReceived,
    Self::Established => 3 => Self::Established,
    Self::FinWait1 => 4 => Self::FinWait1,
    Self::FinWait2 => 5 => Self::FinWait2,
    Self::CloseWait => 6 => Self::CloseWait,
    Self::Closing => 7 => Self::Closing,
    Self::LastAck => 8 => Self::LastAck,
    Self::TimeWait => 9 => Self::TimeWait,
});

/// Linux's number of the error, which is as stable as anything.
impl Carried for Failure {
    fn put(&self, to: &mut Writer) {
        (self.errno() as u8).put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, ImportError> {
        let errno = i32::from(u8::take(from)?);
        let known = Self::ALL.iter().copied().find(|failure| failure.errno() == errno);
        known.ok_or(ImportError::Value(from.field))
    }
}
