//! Reading and writing.

use crate::error::SocketError;
use crate::failure::Failure;
use crate::fifo::{Buffers, ByteFifo};
use crate::handle::ConnectionId;
use crate::stack::Stack;
use crate::tcp::cold::Cold;
use crate::tcp::hot::{Hot, flag};
use crate::tcp::state::State;

use super::urgent::up_to_mark;

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
            self.shared.dirty.push_back(id.index());
        }
    }

    /// Writes as much of `bytes` as there is room for; gives how much. After less than all of it,
    /// `Writable` tells when to go on.
    ///
    /// # Errors
    /// [`SocketError`] when nothing can be sent any more; why a connection failed is said once, by the first
    /// call that can, then it is [`SocketError::Shutdown`]. Before the handshake is over, data waits.
    pub fn send(&mut self, id: ConnectionId, bytes: &[u8]) -> Result<usize, SocketError> {
        self.send_with(id, bytes, Write::default())
    }

    /// The same, for a write that says more about itself.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_with(
        &mut self,
        id: ConnectionId,
        bytes: &[u8],
        write: Write,
    ) -> Result<usize, SocketError> {
        let (hot, cold) = self.held(id)?;
        if let Some(failure) = take_failure(hot, cold) {
            return Err(SocketError::Failed(failure));
        }
        if hot.has(flag::FIN_QUEUED) || hot.state == State::Closed {
            return Err(SocketError::Shutdown);
        }
        let room = cold.writable(hot);
        let pair = cold.fifos.as_mut().ok_or(SocketError::NotConnected)?;
        let taken = pair.transmit.append(bytes.get(..room).unwrap_or(bytes));
        if taken < bytes.len() {
            hot.set(flag::WANTS_ROOM);
        }
        note_write(hot, cold, write, taken == bytes.len());
        if (taken > 0 || !write.more) && !hot.has(flag::DIRTY) {
            hot.set(flag::DIRTY);
            self.shared.dirty.push_back(id.index());
        }
        Ok(taken)
    }

    /// Reads what is there; gives how much. 0: nothing yet, or the end: see
    /// [`is_finished`](Self::is_finished).
    ///
    /// # Errors
    /// [`SocketError`] when nothing will come any more, after all that had come was read. Why a connection
    /// failed is said once, by the first call that can; then comes the end.
    pub fn recv(&mut self, id: ConnectionId, target: &mut [u8]) -> Result<usize, SocketError> {
        let now = self.now;
        let (hot, cold) = self.held(id)?;
        if cold.fifos.is_none() {
            return Err(take_failure(hot, cold).map_or(SocketError::NotConnected, Into::into));
        }
        let target = if hot.has(flag::URGENT) { up_to_mark(hot, cold, target) } else { target };
        let Some(pair) = &mut cold.fifos else { return Err(SocketError::NotConnected) };
        let count = pair.receive.peek(0, target);
        if count == 0 && hot.has(flag::PEER_CLOSED) {
            // The end was reached before anything failed, as Linux's SOCK_DONE: writes tell of the failure.
            return Ok(0);
        }
        if count == 0 {
            return take_failure(hot, cold)
                .map_or(Ok(0), |failure| Err(SocketError::Failed(failure)));
        }
        pair.receive.consume(count);
        if note_read(hot, cold, count, now) {
            self.shared.dirty.push_back(id.index());
        }
        Ok(count)
    }

    /// Copies what can be read from `offset` on, and leaves it there (`MSG_PEEK`). Gives how much.
    ///
    /// # Errors
    /// [`SocketError::Gone`], [`SocketError::NotConnected`].
    pub fn peek(
        &self,
        id: ConnectionId,
        offset: usize,
        target: &mut [u8],
    ) -> Result<usize, SocketError> {
        let found = self.slab.get(id).filter(|(hot, _)| !hot.has(flag::RELEASED));
        let (_, cold) = found.ok_or(SocketError::Gone)?;
        let pair = cold.fifos.as_ref().ok_or(SocketError::NotConnected)?;
        Ok(pair.receive.peek(offset, target))
    }

    /// Whether reading has ended: the peer has said that it sends no more, or receiving was shut down, and
    /// all that came was read. A connection that failed ends only when a call has said why.
    #[must_use]
    pub fn is_finished(&self, id: ConnectionId) -> bool {
        self.slab.get(id).is_none_or(|(hot, cold)| {
            let empty = cold.fifos.as_ref().is_none_or(|pair| pair.receive.is_empty());
            let ended = hot.state == State::Closed && !hot.has(flag::ERROR_DUE);
            empty && (hot.has(flag::PEER_CLOSED | flag::DEAF) || ended)
        })
    }

    /// Why the connection failed, said once among all calls (`SO_ERROR`).
    pub fn take_error(&mut self, id: ConnectionId) -> Option<Failure> {
        let (hot, cold) = self.held(id).ok()?;
        take_failure(hot, cold)
    }

    /// What `poll` says of a connection. When it is not writable, `Writable` tells of the change.
    pub fn readiness(&mut self, id: ConnectionId) -> Readiness {
        let gone = Readiness { hung_up: true, ..Readiness::default() };
        let Ok((hot, cold)) = self.held(id) else { return gone };
        let over = hot.state == State::Closed;
        let read_shut = over || hot.has(flag::PEER_CLOSED | flag::DEAF);
        let write_shut = over || hot.has(flag::FIN_QUEUED);
        let mut waiting = cold.fifos.as_ref().is_some_and(|pair| !pair.receive.is_empty());
        let urgent = cold.urgent_mark(hot);
        if let Some(mark) = urgent.filter(|mark| mark.ahead == 0 && !cold.options.urgent_inline) {
            waiting = mark.readable > 1;
        }
        let settled = !matches!(hot.state, State::SynSent);
        let writable = write_shut || settled && cold.has_room(hot);
        if !writable {
            hot.set(flag::WANTS_ROOM);
        }
        Readiness {
            readable: read_shut || waiting,
            writable,
            peer_closed: read_shut,
            hung_up: read_shut && write_shut,
            error: hot.has(flag::ERROR_DUE),
            urgent: urgent.is_some_and(|mark| mark.has_arrived() && !mark.taken),
        }
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

    /// The transmit FIFO has grown, by something that `write` says more about.
    pub fn sent(&mut self, id: ConnectionId, write: Write) {
        let Ok((hot, cold)) = self.held(id) else { return };
        note_write(hot, cold, write, true);
        self.touch(id);
    }

    /// `count` bytes were taken off the receive FIFO: the window may open, and the buffer grow.
    pub fn received(&mut self, id: ConnectionId, count: usize) {
        let now = self.now;
        let Ok((hot, cold)) = self.held(id) else { return };
        if note_read(hot, cold, count, now) {
            self.shared.dirty.push_back(id.index());
        }
    }
}

/// What a write says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Write {
    /// More follows at once (`MSG_MORE`): what fills no segment waits for it, 200 ms at most.
    pub more: bool,
    /// A record ends with it (`MSG_EOR`): what follows does not share its last segment. Of records that wait
    /// unsent, 256 are kept apart.
    pub end_of_record: bool,
    /// Its last byte is urgent (`MSG_OOB`, RFC 9293 3.8.5).
    pub urgent: bool,
}

/// What `poll` says of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Readiness {
    /// A read gives something, the end or an error (`EPOLLIN`).
    pub readable: bool,
    /// A write takes something, or gives an error (`EPOLLOUT`).
    pub writable: bool,
    /// Nothing more will come (`EPOLLRDHUP`).
    pub peer_closed: bool,
    /// Both directions have ended (`EPOLLHUP`).
    pub hung_up: bool,
    /// A failure was not told yet (`EPOLLERR`).
    pub error: bool,
    /// Urgent data has come that was not read yet (`EPOLLPRI`).
    pub urgent: bool,
}

/// Records that are kept apart while they wait.
const RECORDS: usize = 256;
/// What one write may have waiting unsent beyond `not_sent_low_water`, as Linux counts by large segments:
/// bytes.
const STEP: u32 = 65_536;

impl<F: ByteFifo> Cold<F> {
    /// Bytes that a write may add, the FIFO's room aside.
    fn writable(&self, hot: &Hot) -> usize {
        match self.options.not_sent_low_water {
            u32::MAX => usize::MAX,
            most => match most.saturating_sub(self.unsent(hot)) {
                0 => 0,
                room => room.max(STEP) as usize,
            },
        }
    }
}

fn note_write<F: ByteFifo>(hot: &mut Hot, cold: &mut Cold<F>, write: Write, is_whole: bool) {
    if write.more {
        hot.set(flag::MORE)
    } else {
        hot.clear(flag::MORE)
    }
    if write.urgent {
        let end = cold.data_start.add(cold.queued());
        cold.rare.note().urgent = Some(end);
    }
    if write.end_of_record && is_whole {
        let end = cold.data_start.add(cold.queued());
        let records = &mut cold.rare.note().records;
        if records.len() < RECORDS {
            records.push_back(end);
        }
    }
}

/// The failure that no call has told yet.
fn take_failure<F>(hot: &mut Hot, cold: &Cold<F>) -> Option<Failure> {
    let due = hot.has(flag::ERROR_DUE);
    hot.clear(flag::ERROR_DUE);
    cold.failure.filter(|_| due)
}

/// `count` bytes were taken off the receive FIFO. Gives whether the connection is to be put on the list of those
/// to flush: only a window that may have opened is worth a look.
#[inline]
fn note_read<F: ByteFifo>(hot: &mut Hot, cold: &mut Cold<F>, count: usize, now: u64) -> bool {
    cold.tuning.take(count);
    if let Some(taken) = cold.tuning.round(hot.srtt.max(1000), now) {
        tune(cold, taken);
    }
    let Some(pair) = cold.fifos.as_ref() else { return false };
    if hot.rcv_wnd() as usize >= pair.receive.capacity() / 2 || !hot.state.receives() {
        return false;
    }
    hot.set(flag::HAS_READ);
    let is_new = !hot.has(flag::DIRTY);
    hot.set(flag::DIRTY);
    is_new
}

/// Receive auto-tuning: a buffer that is emptied within a round trip may be what holds the peer up, so
/// it becomes twice as large as what was taken in the round trip. `taken`: bytes.
#[cold]
fn tune<F: ByteFifo>(cold: &mut Cold<F>, taken: u32) {
    let wanted = taken.saturating_mul(2).min(cold.options.receive_buffer_limit);
    if let Some(pair) = &mut cold.fifos {
        if wanted as usize > pair.receive.capacity() {
            pair.receive.resize(wanted as usize);
        }
    }
}
