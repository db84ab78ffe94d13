//! Options of a connection: each may be set in every state.

use crate::congestion::Start;
use crate::error::SocketError;
use crate::fifo::{Buffers, ByteFifo};
use crate::handle::ConnectionId;
use crate::options::Options;
use crate::stack::Stack;
use crate::tcp::cold::Cold;
use crate::tcp::handshake::QUICK;
use crate::tcp::hot::{Hot, NEVER, flag};
use crate::tcp::settings;
use crate::tcp::state::State;

impl<B: Buffers> Stack<B> {
    /// Options of a connection. `None`: it is gone.
    #[must_use]
    pub fn options(&self, id: ConnectionId) -> Option<&Options> {
        self.slab.get(id).map(|(_, cold)| &*cold.options)
    }

    /// Sets options, in any state. What the handshake has settled (time stamps, SACK, scale of the window,
    /// segment size, ECN) stays; buffers change their sizes, but a window that the peer knows of is not
    /// taken back; congestion control is replaced, and goes on with the window that there is.
    ///
    /// # Errors
    /// [`SocketError::Gone`].
    pub fn set_options(&mut self, id: ConnectionId, options: Options) -> Result<(), SocketError> {
        let now = self.now;
        let (hot, cold) = held(self.slab.get_mut(id))?;
        let probed = cold.options.keepalive;
        let other = options.congestion != cold.options.congestion;
        let pushes = options.no_delay && !cold.options.no_delay;
        let receive = sized(cold.options.receive_buffer, options.receive_buffer);
        let transmit = sized(cold.options.transmit_buffer, options.transmit_buffer);
        self.shared.sets.change(&mut cold.options, &options);
        settings::apply(hot, cold);
        if pushes && hot.has(flag::CORKED) {
            // As Linux: what was written so far is pushed, corked or not.
            hot.retransmit_at = now;
        }
        if let Some(pair) = &mut cold.fifos {
            if let Some(bytes) = receive {
                pair.receive.resize(bytes);
                hot.set(flag::HAS_READ);
            }
            if let Some(bytes) = transmit {
                pair.transmit.resize(bytes);
            }
        }
        if other {
            replace_congestion(hot, cold, now);
        }
        if probed != cold.options.keepalive && hot.state.is_synchronized() {
            rearm_keepalive(hot, cold, probed.is_some(), now);
        }
        self.touch(id);
        Ok(())
    }
}

impl<B: Buffers> Stack<B> {
    /// Acknowledges at once for a while, what is due now included, or ends that: as Linux's `TCP_QUICKACK`,
    /// which data of our own in answer ends by itself. [`Options::quick_ack`] is for good.
    ///
    /// # Errors
    /// [`SocketError::Gone`].
    pub fn set_quick_ack(&mut self, id: ConnectionId, on: bool) -> Result<(), SocketError> {
        let (hot, _) = held(self.slab.get_mut(id))?;
        if on {
            hot.quick = QUICK;
            hot.clear(flag::CONVERSES);
            if hot.ack_at != NEVER {
                hot.set(flag::ACK_NOW);
            }
        } else {
            hot.converse();
        }
        self.touch(id);
        Ok(())
    }
}

/// Keepalive was switched, or has other times; `probed`: it was on. What has passed of the silence counts, as
/// with Linux's `TCP_KEEPIDLE`.
fn rearm_keepalive<F>(hot: &mut Hot, cold: &Cold<F>, probed: bool, now: u64) {
    if hot.state == State::TimeWait {
        return;
    }
    hot.life_at = match cold.options.keepalive {
        None => NEVER,
        Some(keepalive) if !probed => now.saturating_add(keepalive.idle),
        Some(keepalive) => hot.received_at.saturating_add(keepalive.idle).max(now),
    };
}

/// What the slab gives for a handle.
type Found<'a, F> = (&'a mut Hot, &'a mut Cold<F>);

fn held<F>(found: Option<Found<'_, F>>) -> Result<Found<'_, F>, SocketError> {
    found.filter(|(hot, _)| !hot.has(flag::RELEASED)).ok_or(SocketError::Gone)
}

/// The new size when it is another.
fn sized(old: u32, new: u32) -> Option<usize> {
    (old != new).then_some(new as usize)
}

/// Goes on with another congestion control from the window and threshold that there are. A connection that
/// needed none so far needs none now.
fn replace_congestion<F>(hot: &mut Hot, cold: &mut Cold<F>, now: u64) {
    if hot.cwnd == 0 {
        return;
    }
    let hears_all = cold.options.congestion.hears_all();
    if hears_all {
        hot.set(flag::HEARS_ALL)
    } else {
        hot.clear(flag::HEARS_ALL)
    }
    if cold.congestion.is_none() && !hears_all {
        return;
    }
    let threshold = cold.congestion.as_ref().map_or(u32::MAX, |congestion| congestion.threshold());
    let (mss, window, seed) = (u32::from(hot.mss), hot.cwnd, cold.iss.0);
    let start = Start { mss, window, threshold, now, seed };
    cold.congestion = Some(cold.options.congestion.start(&start));
    settings::apply(hot, cold);
}
