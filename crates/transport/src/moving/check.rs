//! Whether the fields of an imported connection go together. Each alone was checked when it was read.

use super::connection::Connection;
use crate::carried::ImportError;
use crate::tcp::hot::{NEVER, flag};
use crate::tcp::state::State;

/// Neither window nor FIFO reaches further: bytes.
const FAR: u32 = 1 << 30;

impl<F> Connection<F> {
    /// `queued`: bytes in the transmit FIFO; `None`: there are no FIFOs.
    ///
    /// # Errors
    /// [`ImportError::Value`] with the first field that does not fit.
    pub(crate) fn check(&self, queued: Option<u32>) -> Result<(), ImportError> {
        let sound =
            |sound: bool, field| if sound { Ok(()) } else { Err(ImportError::Value(field)) };
        let (hot, cold) = (&self.hot, &self.cold);
        if hot.state == State::Closed {
            // Nothing is sent or received any more.
            return sound(cold.known && hot.deadline() == NEVER, "state");
        }
        sound(hot.snd_nxt.since(hot.snd_una) <= FAR, "snd_nxt")?;
        sound(hot.rcv_adv.since(hot.rcv_nxt) <= FAR, "rcv_adv")?;
        sound(hot.rcv_nxt.since(hot.acked) <= FAR, "acked")?;
        sound(cold.gaps.is_sound(hot.rcv_nxt, hot.rcv_adv), "gaps")?;
        self.check_flags()?;
        self.check_sending(queued.unwrap_or(0))?;
        // Before a SYN that holds a cookie is acknowledged there is no record of it.
        let handshake = hot.state == State::SynReceived && cold.flight.is_empty();
        sound(handshake || cold.flight.is_sound(hot.snd_una, hot.snd_nxt), "flight")?;
        let fifos = matches!(hot.state, State::SynReceived | State::FinWait2 | State::TimeWait);
        sound(fifos || queued.is_some() || hot.has(flag::RESET_DUE), "fifos")?;
        sound(hot.state != State::TimeWait || hot.life_at != NEVER, "life_at")?;
        let ahead = cold.fin_at.since(hot.rcv_nxt);
        sound(!hot.has(flag::FIN_AHEAD) || (1..=FAR).contains(&ahead), "fin_at")
    }

    fn check_flags(&self) -> Result<(), ImportError> {
        use State::{CloseWait, Closing, FinWait1, FinWait2, LastAck, TimeWait};
        let hot = &self.hot;
        let sent = matches!(hot.state, FinWait1 | FinWait2 | Closing | LastAck | TimeWait);
        let closed = matches!(hot.state, CloseWait | Closing | LastAck | TimeWait);
        let waiting = hot.has(flag::QUEUED) && hot.has(flag::RELEASED);
        if sent == hot.has(flag::FIN_SENT) && closed == hot.has(flag::PEER_CLOSED) && !waiting {
            return Ok(());
        }
        Err(ImportError::Value("flags"))
    }

    /// What is queued, and what of it was sent.
    fn check_sending(&self, queued: u32) -> Result<(), ImportError> {
        let (hot, cold) = (&self.hot, &self.cold);
        let end = cold.data_start.add(queued);
        let fits = if hot.has(flag::FIN_SENT) {
            end.add(1) == hot.snd_nxt
        } else {
            end.since(hot.snd_nxt) <= FAR + 1
        };
        // One sequence number apart: a SYN that is not acknowledged, or a FIN that is.
        let near = hot.snd_una.add(1).since(cold.data_start) <= 2;
        if fits && near { Ok(()) } else { Err(ImportError::Value("data_start")) }
    }
}
