//! Ending a connection (RFC 9293 3.10.4, 3.10.5).

use crate::error::SocketError;
use crate::event::Event;
use crate::fifo::{Buffers, ByteFifo};
use crate::handle::ConnectionId;
use crate::stack::Stack;
use crate::tcp::hot::flag;
use crate::tcp::state::State;

impl<B: Buffers> Stack<B> {
    /// Sends no more: a FIN follows what was written (`SHUT_WR`). Receiving goes on.
    ///
    /// # Errors
    /// [`SocketError::NotConnected`] when the connection is over.
    pub fn shutdown(&mut self, id: ConnectionId) -> Result<(), SocketError> {
        let (hot, _) = self.held(id)?;
        if hot.state == State::Closed {
            return Err(SocketError::NotConnected);
        }
        hot.set(flag::FIN_QUEUED);
        self.touch(id);
        Ok(())
    }

    /// Directions that were ended here: reading, writing.
    #[must_use]
    pub fn has_shut(&self, id: ConnectionId) -> (bool, bool) {
        let hot = self.slab.get(id).map(|(hot, _)| hot);
        hot.map_or((false, false), |hot| (hot.has(flag::DEAF), hot.has(flag::FIN_QUEUED)))
    }

    /// Receives no more (`SHUT_RD`): reading ends with what has come. As in Linux the peer is told nothing,
    /// and what it still sends can be read; once our own direction is shut down too, it is answered with a
    /// reset.
    ///
    /// # Errors
    /// [`SocketError::NotConnected`] when the connection is over.
    pub fn shutdown_receive(&mut self, id: ConnectionId) -> Result<(), SocketError> {
        let (hot, _) = self.held(id)?;
        if hot.state == State::Closed {
            return Err(SocketError::NotConnected);
        }
        hot.set(flag::DEAF);
        if !hot.has(flag::TOLD_READABLE) {
            hot.set(flag::TOLD_READABLE);
            self.shared.events.push_back(Event::Readable(id));
        }
        Ok(())
    }

    /// Gives the connection up: what was written is still sent. When data was not read, or arrives
    /// later, the peer is told by a reset (RFC 2525 2.17). `Gone` follows.
    pub fn close(&mut self, id: ConnectionId) {
        let now = self.now;
        let full = self.shared.orphans >= self.shared.config.orphans;
        let Ok((hot, cold)) = self.held(id) else { return };
        let unread = cold.fifos.as_ref().is_some_and(|pair| !pair.receive.is_empty());
        if cold.options.linger == Some(0) && !unread {
            return self.abort(id);
        }
        match hot.state {
            State::Closed => {}
            State::SynSent => hot.state = State::Closed,
            _ if unread && hot.state != State::TimeWait => return self.cut_off(id),
            _ if full && hot.state != State::TimeWait => {
                self.shared.counters.orphans_reset += 1;
                return self.cut_off(id);
            }
            State::FinWait2 => {
                hot.life_at = now.saturating_add(cold.options.fin_wait_2);
                let at = hot.life_at;
                hot.armed_at = at;
                self.timers.arm(id.index(), at);
            }
            _ => hot.set(flag::FIN_QUEUED),
        }
        self.release(id);
    }

    /// Resets the connection. One that both ends have closed ends without a word (RFC 9293 3.10.5: CLOSING,
    /// LAST-ACK). `Gone` follows.
    pub fn abort(&mut self, id: ConnectionId) {
        let Ok((hot, _)) = self.held(id) else { return };
        if matches!(hot.state, State::Closing | State::LastAck) {
            hot.state = State::Closed;
            return self.release(id);
        }
        self.cut_off(id);
    }

    /// The peer is told by a reset, if it can be.
    fn cut_off(&mut self, id: ConnectionId) {
        let Ok((hot, _)) = self.held(id) else { return };
        if hot.state.is_synchronized() && hot.state != State::TimeWait
            || hot.state == State::SynReceived
        {
            hot.set(flag::RESET_DUE);
        } else if hot.state != State::TimeWait {
            hot.state = State::Closed;
        }
        self.release(id);
    }

    fn release(&mut self, id: ConnectionId) {
        let Ok((hot, _)) = self.held(id) else { return };
        hot.set(flag::RELEASED);
        if matches!(hot.state, State::Closed | State::TimeWait) {
            self.settle(id.index());
            return;
        }
        if !hot.has(flag::RESET_DUE) {
            hot.set(flag::ORPHAN);
            self.shared.orphans += 1;
        }
        self.touch(id);
    }
}
