//! Sockets with an address of their own: bound ones, and those that listen, where connections come in and
//! wait to be accepted.

use std::sync::Arc;

use tables::PagedQueue;

use crate::handle::{ConnectionId, ListenerId};
use crate::options::{Options, SECOND};

pub(crate) mod binding;
mod table;

pub use binding::{Binding, Spread};
pub(crate) use table::Listeners;

/// A socket that is bound to an address.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) id: ListenerId,
    pub(crate) claim: binding::Claim,
    /// Connections that hold its address: those that came in, or the one that was opened from it.
    users: u32,
    /// The application has it.
    is_open: bool,
    /// Boxed: connections that outlive their listener need none of it.
    listener: Option<Box<Listener>>,
}

/// What a socket that listens has beside its address.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) id: ListenerId,
    pub(crate) options: Arc<Options>,
    /// Connections that wait at most, half-open ones too.
    pub(crate) backlog: usize,
    /// Connections whose handshake goes on.
    pub(crate) half_open: usize,
    /// Of those that wait or were accepted: made by Fast Open, handshake not over.
    pub(crate) fast_open: usize,
    /// Until then those that were reset during the handshake are counted too (RFC 7413 5.1): ns.
    pub(crate) fast_resets: PagedQueue<u64>,
    /// Connections that wait to be accepted.
    pub(crate) queue: PagedQueue<ConnectionId>,
    /// `Incoming` is in the queue of events.
    pub(crate) told: bool,
    /// SYN cookies were sent: their answers are taken until then: ns.
    pub(crate) cookies_until: u64,
}

/// How long a connection that was reset during its handshake counts (RFC 7413 5.1): ns.
const RESET_LIFE: u64 = 60 * SECOND;

impl Listener {
    fn new(id: ListenerId, backlog: usize, options: Arc<Options>) -> Self {
        Self {
            id,
            options,
            backlog: backlog.max(1),
            half_open: 0,
            fast_open: 0,
            fast_resets: PagedQueue::new(),
            queue: PagedQueue::new(),
            told: false,
            cookies_until: 0,
        }
    }

    /// Whether no more connections may wait.
    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() >= self.backlog
    }

    /// Whether one more connection may be made by Fast Open.
    pub(crate) fn takes_fast_open(&mut self, now: u64) -> bool {
        while self.fast_resets.front().is_some_and(|until| *until <= now) {
            self.fast_resets.pop_front();
        }
        self.fast_open + self.fast_resets.len() < usize::from(self.options.fast_open_pending)
    }

    /// The handshake of a connection that Fast Open made is over; `reset`: by a reset.
    pub(crate) fn end_fast_open(&mut self, reset: bool, now: u64) {
        self.fast_open = self.fast_open.saturating_sub(1);
        if reset {
            self.fast_resets.push_back(now.saturating_add(RESET_LIFE));
        }
    }
}
