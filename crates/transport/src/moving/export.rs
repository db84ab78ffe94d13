//! A connection leaves.

use super::contents;
use super::error::ExportError;
use super::{MAGIC, VERSION};
use crate::carried::Carried;
use crate::carried::Writer;
use crate::ends::Ends;
use crate::event::Event;
use crate::fifo::{Buffers, Pair};
use crate::handle::ConnectionId;
use crate::stack::Stack;
use crate::tcp::hot::flag;

/// What becomes of the data in the FIFOs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// It stays where it is: the FIFOs themselves go along, as those in shared memory can.
    InPlace,
    /// It is copied into the bytes, and the FIFOs go back to their [`Buffers`].
    Copied,
}

/// A connection that is in no stack.
#[derive(Debug)]
pub struct Exported<F> {
    /// Its addresses and ports.
    pub ends: Ends,
    /// All of its state, with the data when it was copied.
    pub bytes: Vec<u8>,
    /// Its FIFOs, when the data was left in place and it had some.
    pub fifos: Option<Pair<F>>,
}

/// Where the data is: the third word of the format.
pub(crate) mod place {
    /// There are no FIFOs.
    pub(crate) const NOWHERE: u8 = 0;
    pub(crate) const FIFOS: u8 = 1;
    pub(crate) const BYTES: u8 = 2;
}

/// Events that the application has not seen yet.
pub(crate) mod pending {
    pub(crate) const CONNECTED: u8 = 1;
    pub(crate) const PEER_CLOSED: u8 = 2;
    pub(crate) const URGENT: u8 = 4;
    pub(crate) const FAILED: u8 = 8;
    pub(crate) const WRITABLE: u8 = 16;
}

impl<B: Buffers> Stack<B> {
    /// Takes a connection out, in whatever state it is, and leaves nothing of it behind: its handle means
    /// nothing any more, its events are withdrawn. Segments that come for it from now on are answered by a reset
    /// unless [`hold`](Self::hold) was called before. Nothing is lost that the peer could notice: what was
    /// due at once is sent by the stack that imports it.
    ///
    /// # Errors
    /// [`ExportError`]; the connection stays.
    pub fn export(
        &mut self,
        now: u64,
        connection: ConnectionId,
        contents: Contents,
    ) -> Result<Exported<B::Fifo>, ExportError> {
        self.now = self.now.max(now);
        let (hot, cold) = self.slab.get(connection).ok_or(ExportError::Gone)?;
        let (ends, flags, listener) = (cold.ends(), hot.flags, cold.listener);
        let place = match (&cold.fifos, contents) {
            (None, _) => place::NOWHERE,
            (Some(_), Contents::InPlace) => place::FIFOS,
            (Some(_), Contents::Copied) => place::BYTES,
        };
        let mut to = begin(self.now, place, self.pending(connection));
        hot.put(&mut to);
        cold.put(&mut to);
        if let (Some(pair), Contents::Copied) = (&cold.fifos, contents) {
            contents::put(pair, &cold.gaps, hot.rcv_nxt, &mut to)?;
        }
        let fifos = self.slab.get_mut(connection).and_then(|(_, cold)| cold.fifos.take());
        let fifos = match contents {
            Contents::InPlace => fifos,
            Contents::Copied => {
                fifos.into_iter().for_each(|pair| self.buffers.close(connection, pair));
                None
            }
        };
        if let Some(listener) = listener.and_then(|id| self.shared.listeners.get_mut(id)) {
            let has = |flag| usize::from(flags & flag != 0);
            listener.half_open = listener.half_open.saturating_sub(has(flag::HALF_OPEN));
            listener.fast_open = listener.fast_open.saturating_sub(has(flag::FAST_PENDING));
            if flags & flag::QUEUED != 0 {
                listener.queue.retain(|waiting| *waiting != connection);
            }
        }
        if flags & flag::ORPHAN != 0 {
            self.shared.orphans = self.shared.orphans.saturating_sub(1);
        }
        self.shared.events.retain(|event| !is_about(event, connection));
        if flags & flag::IN_TABLE != 0 {
            self.unlist(&ends);
        }
        self.timers.cancel(connection.index());
        self.free(connection.index());
        Ok(Exported { ends, bytes: to.bytes, fifos })
    }

    /// All connections that have a handle, in the order of their places: those that nobody was told of yet, and those that
    /// nobody holds any more, too.
    #[must_use]
    pub fn all_connections(&self) -> Vec<ConnectionId> {
        self.slab.ids().collect()
    }

    /// Events about it that wait to be told.
    fn pending(&self, connection: ConnectionId) -> u8 {
        let events = self.shared.events.iter().filter(|event| is_about(event, connection));
        events.fold(0, |all, event| {
            all | match event {
                Event::Connected(_) => pending::CONNECTED,
                Event::PeerClosed(_) => pending::PEER_CLOSED,
                Event::Urgent(_) => pending::URGENT,
                Event::Failed(..) => pending::FAILED,
                Event::Writable(_) => pending::WRITABLE,
                // What is there to read tells by itself.
                _ => 0,
            }
        })
    }
}

/// What comes in front.
fn begin(now: u64, place: u8, pending: u8) -> Writer {
    let mut to = Writer::new(now);
    MAGIC.put(&mut to);
    VERSION.put(&mut to);
    place.put(&mut to);
    pending.put(&mut to);
    to
}

/// `Gone` is about a handle that was given up: it stays.
fn is_about(event: &Event, connection: ConnectionId) -> bool {
    match event {
        Event::Connected(id)
        | Event::Readable(id)
        | Event::Writable(id)
        | Event::PeerClosed(id)
        | Event::Urgent(id)
        | Event::Failed(id, _) => *id == connection,
        Event::Gone(..) | Event::Incoming(_) | Event::UdpReadable(_) | Event::UdpError(_) => false,
    }
}

/// Flags that mean something in one stack only.
pub(crate) const LOCAL: u64 = flag::IN_TABLE
    | flag::HALF_OPEN
    | flag::TOLD_READABLE
    | flag::TOLD_WRITABLE
    | flag::DIRTY
    | flag::ASIDE;
