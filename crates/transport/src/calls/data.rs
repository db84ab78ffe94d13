//! Reading and writing.

use crate::error::SocketError;
use crate::fifo::{Buffers, ByteFifo};
use crate::handle::ConnectionId;
use crate::stack::Stack;
use crate::tcp::cold::Cold;
use crate::tcp::hot::{Hot, flag};
use crate::tcp::state::State;

impl<B: Buffers> Stack<B> {
    /// The connection of a handle that the application holds.
    pub(super) fn held(
        &mut self,
        id: ConnectionId,
    ) -> Result<(&mut Hot, &mut Cold<B::Fifo>), SocketError> {
        let found = self.slab.get_mut(id).ok_or(SocketError::Gone)?;
        if found.0.has(flag::RELEASED) { Err(SocketError::Gone) } else { Ok(found) }
    }

    /// Puts the connection on the list of those to flush.
    pub(super) fn touch(&mut self, id: ConnectionId) {
        let Some((hot, _)) = self.slab.get_mut(id) else { return };
        if !hot.has(flag::DIRTY) {
            hot.set(flag::DIRTY);
            self.shared.dirty.push(id.index());
        }
    }

    /// Writes as much of `bytes` as there is room for; gives how much. After less than all of it,
    /// `Writable` tells when to go on.
    ///
    /// # Errors
    /// [`SocketError`] when nothing can be sent any more. Before the handshake is over, data waits.
    pub fn send(&mut self, id: ConnectionId, bytes: &[u8]) -> Result<usize, SocketError> {
        let (hot, cold) = self.held(id)?;
        if let Some(failure) = cold.failure {
            return Err(SocketError::Failed(failure));
        }
        if hot.has(flag::FIN_QUEUED) || hot.state == State::Closed {
            return Err(SocketError::Shutdown);
        }
        let pair = cold.fifos.as_mut().ok_or(SocketError::NotConnected)?;
        let taken = pair.transmit.append(bytes);
        if taken < bytes.len() {
            hot.set(flag::WANTS_ROOM);
        }
        if taken > 0 {
            self.touch(id);
        }
        Ok(taken)
    }

    /// Reads what is there; gives how much. 0: nothing yet, or the end: see
    /// [`is_finished`](Self::is_finished).
    ///
    /// # Errors
    /// [`SocketError`] when nothing will come any more, after all that had come was read.
    pub fn recv(&mut self, id: ConnectionId, target: &mut [u8]) -> Result<usize, SocketError> {
        let (_, cold) = self.held(id)?;
        let failure = cold.failure;
        let pair = cold.fifos.as_mut().ok_or(SocketError::NotConnected)?;
        let count = pair.receive.peek(0, target);
        pair.receive.consume(count);
        if count > 0 {
            self.received(id, count);
        } else if let Some(failure) = failure {
            return Err(SocketError::Failed(failure));
        }
        Ok(count)
    }

    /// Whether the peer has said that it sends no more, and all that it sent was read.
    #[must_use]
    pub fn is_finished(&self, id: ConnectionId) -> bool {
        self.slab.get(id).is_none_or(|(hot, cold)| {
            let empty = cold.fifos.as_ref().is_none_or(|pair| pair.receive.is_empty());
            let ended = hot.state == State::Closed && cold.failure.is_none();
            empty && (hot.has(flag::PEER_CLOSED) || ended)
        })
    }

    /// The FIFO of data to send, to be written without a copy; [`sent`](Self::sent) must follow.
    pub fn transmit_fifo(&mut self, id: ConnectionId) -> Option<&mut B::Fifo> {
        let (hot, cold) = self.held(id).ok()?;
        if hot.has(flag::FIN_QUEUED) {
            return None;
        }
        cold.fifos.as_mut().map(|pair| &mut pair.transmit)
    }

    /// The FIFO of received data, to be read without a copy; [`received`](Self::received) must follow.
    pub fn receive_fifo(&mut self, id: ConnectionId) -> Option<&mut B::Fifo> {
        let (_, cold) = self.held(id).ok()?;
        cold.fifos.as_mut().map(|pair| &mut pair.receive)
    }

    /// The transmit FIFO has grown.
    pub fn sent(&mut self, id: ConnectionId) {
        self.touch(id);
    }

    /// `count` bytes were taken off the receive FIFO: the window may open, and the buffer grow.
    pub fn received(&mut self, id: ConnectionId, count: usize) {
        let now = self.now;
        let Ok((hot, cold)) = self.held(id) else { return };
        cold.tuning.take(count);
        tune(hot, cold, now);
        // Only a window that may have opened is worth a look at the next flush.
        let Some(pair) = cold.fifos.as_ref() else { return };
        let small = (hot.rcv_wnd() as usize) < pair.receive.capacity() / 2;
        if small && hot.state.receives() {
            hot.set(flag::HAS_READ);
            self.touch(id);
        }
    }
}

/// Receive auto-tuning: a buffer that is emptied within a round trip may be what holds the peer up, so
/// it becomes twice as large as what was taken in the round trip.
fn tune<F: ByteFifo>(hot: &Hot, cold: &mut Cold<F>, now: u64) {
    let Some(taken) = cold.tuning.round(hot.srtt.max(1000), now) else { return };
    let wanted = taken.saturating_mul(2).min(cold.options.receive_buffer_limit);
    if let Some(pair) = &mut cold.fifos {
        if wanted as usize > pair.receive.capacity() {
            pair.receive.resize(wanted as usize);
        }
    }
}
