//! Urgent data (RFC 9293 3.8.5, RFC 6093): reading stops ahead of it, and may take it ahead of the rest.

use crate::error::SocketError;
use crate::fifo::{Buffers, ByteFifo};
use crate::handle::ConnectionId;
use crate::stack::Stack;
use crate::tcp::cold::Cold;
use crate::tcp::hot::{Hot, flag};

/// Where what the peer has called urgent is in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UrgentMark {
    /// Bytes that are to be read before it. 0: it is next (`SIOCATMARK`).
    pub ahead: usize,
    /// Bytes that can be read, it among them if it has arrived.
    pub readable: usize,
    /// It was read ahead of the rest.
    pub taken: bool,
}

impl UrgentMark {
    /// Whether the urgent byte is there, and not only announced.
    #[must_use]
    pub fn has_arrived(&self) -> bool {
        self.ahead < self.readable
    }
}

impl<B: Buffers> Stack<B> {
    /// Where urgent data is that was not passed by reading yet. `None`: there is none.
    #[must_use]
    pub fn urgent(&self, id: ConnectionId) -> Option<UrgentMark> {
        let (hot, cold) = self.slab.get(id)?;
        cold.urgent_mark(hot)
    }

    /// The urgent byte, ahead of the rest; once, unless it is only looked at (`keep`). `None`: it has not arrived.
    ///
    /// # Errors
    /// [`SocketError::Gone`], [`SocketError::NotConnected`]; [`SocketError::NoUrgent`] when there is none, it was taken, or
    /// stays in the stream.
    pub fn take_urgent(&mut self, id: ConnectionId, keep: bool) -> Result<Option<u8>, SocketError> {
        let (hot, cold) = self.held(id)?;
        let mark = cold.urgent_mark(hot).filter(|mark| !mark.taken && !cold.options.urgent_inline);
        let mark = mark.ok_or(SocketError::NoUrgent)?;
        let pair = cold.fifos.as_ref().ok_or(SocketError::NotConnected)?;
        let mut byte = [0];
        if !mark.has_arrived() || pair.receive.peek(mark.ahead, &mut byte) == 0 {
            return Ok(None);
        }
        if !keep {
            cold.rare.note().urgent_taken = true;
        }
        Ok(Some(byte[0]))
    }

    /// Reading passes the urgent byte if it is next and not for those who read the stream, as [`recv`](Self::recv) does.
    pub fn pass_urgent(&mut self, id: ConnectionId) {
        let Ok((hot, cold)) = self.held(id) else { return };
        if hot.has(flag::URGENT) {
            pass(hot, cold);
        }
    }
}

/// What of `target` a read may fill: it stops ahead of urgent data, and goes on behind it.
#[cold]
pub(super) fn up_to_mark<'a, F: ByteFifo>(
    hot: &mut Hot,
    cold: &mut Cold<F>,
    target: &'a mut [u8],
) -> &'a mut [u8] {
    match cold.urgent_mark(hot) {
        Some(mark) if mark.ahead > 0 => {
            let most = target.len().min(mark.ahead);
            target.get_mut(..most).unwrap_or_default()
        }
        Some(_) => {
            if !target.is_empty() {
                pass(hot, cold);
            }
            target
        }
        None => {
            hot.clear(flag::URGENT);
            target
        }
    }
}

/// Passes the urgent byte, if it is next and there. One byte is no reason to tell of a wider window.
fn pass<F: ByteFifo>(hot: &mut Hot, cold: &mut Cold<F>) {
    if !cold.urgent_mark(hot).is_some_and(|mark| mark.ahead == 0 && mark.has_arrived()) {
        return;
    }
    hot.clear(flag::URGENT);
    if let Some(pair) = cold.fifos.as_mut().filter(|_| !cold.options.urgent_inline) {
        pair.receive.consume(1);
    }
}

impl<F: ByteFifo> Cold<F> {
    /// Where urgent data is that was not passed by reading yet.
    #[inline]
    pub(super) fn urgent_mark(&self, hot: &Hot) -> Option<UrgentMark> {
        if hot.has(flag::URGENT) { self.find_mark(hot) } else { None }
    }

    #[cold]
    fn find_mark(&self, hot: &Hot) -> Option<UrgentMark> {
        let readable = self.fifos.as_ref()?.receive.len();
        // The peer's FIN has a number too.
        let end = hot.rcv_nxt.sub(u32::from(hot.has(flag::PEER_CLOSED)));
        let next = end.sub(readable as u32);
        let byte = self.urgent.sub(1);
        if byte.before(next) {
            return None;
        }
        let ahead = byte.since(next) as usize;
        Some(UrgentMark { ahead, readable, taken: self.rare.urgent_taken })
    }
}
