//! ICMP errors about a connection's segments (RFC 9293 3.9.2.2, RFC 5927, RFC 1191, RFC 8201).

use super::Tcb;
use super::state::State;
use crate::event::Failure;
use crate::fifo::ByteFifo;
use crate::reason::Reason;
use crate::sequence::Seq;

/// Path MTUs below these are not believed: bytes (RFC 1191 3, RFC 8200 5).
const LEAST: (u16, u16) = (552, 1280);

/// What an error says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The packet did not fit: bytes that do; 0: unknown.
    TooBig(u16),
    /// Protocol or port unreachable: hard.
    Refused,
    /// Net or host unreachable, time exceeded: soft.
    Unreachable,
}

impl<F: ByteFifo> Tcb<'_, F> {
    /// `seq`: of the segment that the error quotes.
    pub(crate) fn on_icmp(&mut self, seq: Seq, trouble: Trouble) {
        // RFC 5927 4.1: only about what is in flight.
        let in_flight = seq.within(self.hot.snd_una, self.hot.snd_nxt);
        if !in_flight || self.cold.flight.is_empty() {
            return self.drop(Reason::IcmpUnmatched);
        }
        match trouble {
            Trouble::TooBig(mtu) => self.shrink(mtu),
            // RFC 5927 5.2: hard errors end only what is not synchronised.
            Trouble::Refused if self.hot.state == State::SynSent => self.fail(Failure::Refused),
            Trouble::Refused | Trouble::Unreachable => {
                self.cold.soft_failure = Some(Failure::Unreachable);
            }
        }
    }

    /// The path takes only `mtu` bytes: what is in flight is cut smaller and sent again.
    fn shrink(&mut self, mtu: u16) {
        let least = if self.cold.ends.remote.is_ipv4() { LEAST.0 } else { LEAST.1 };
        // A router of old that does not say how much: RFC 1191 5 has plateaus.
        let mtu = if mtu == 0 { plateau(self.cold.path_mtu) } else { mtu };
        let mtu = mtu.max(least);
        if !self.cold.options.mtu_discovery || mtu >= self.cold.path_mtu {
            return self.drop(Reason::IcmpUnmatched);
        }
        self.cold.path_mtu = mtu;
        self.update_mss();
        // Not a sign of congestion (RFC 1191 6.4): the window stays.
        self.cold.flight.lose_oversized(u32::from(self.hot.mss));
        self.hot.cwnd = self.hot.cwnd.max(u32::from(self.hot.mss));
        self.touch();
    }
}

fn plateau(mtu: u16) -> u16 {
    [1492, 1006, 576].into_iter().find(|plateau| *plateau < mtu).unwrap_or(552)
}
