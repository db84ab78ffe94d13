//! Listening and accepting.

use std::net::SocketAddr;

use crate::error::{BindError, SocketError};
use crate::event::Event;
use crate::fifo::{Buffers, ByteFifo};
use crate::handle::{ConnectionId, ListenerId};
use crate::listener::Binding;
use crate::listener::binding::Claim;
use crate::options::Options;
use crate::stack::Stack;
use crate::tcp::hot::flag;

/// How full a listener is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Connections that wait to be accepted.
    pub waiting: usize,
    /// Connections whose handshake goes on.
    pub half_open: usize,
    /// How many of each there may be.
    pub limit: usize,
}

impl<B: Buffers> Stack<B> {
    /// Binds a socket and has it listen: [`bind`](Self::bind) and [`listen_on`](Self::listen_on) in one,
    /// beside connections that an earlier listener has left (`SO_REUSEADDR`, as servers say).
    ///
    /// # Errors
    /// [`BindError`].
    pub fn listen(
        &mut self,
        address: SocketAddr,
        backlog: usize,
        options: &Options,
    ) -> Result<ListenerId, BindError> {
        let binding = Binding { reuse_address: true, ..Binding::default() };
        let id = self.bind(address, &binding)?;
        self.listen_on(id, backlog, options).inspect_err(|_| self.close_listener(id))?;
        Ok(id)
    }

    /// Has a bound socket listen. `backlog`: connections that wait to be accepted at most, and as many
    /// half-open ones. Of one that listens already only the backlog changes.
    ///
    /// # Errors
    /// [`BindError::InUse`] when another listens at the address, [`BindError::Gone`].
    pub fn listen_on(
        &mut self,
        socket: ListenerId,
        backlog: usize,
        options: &Options,
    ) -> Result<(), BindError> {
        if let Some(listener) = self.shared.listeners.get_mut(socket) {
            listener.backlog = backlog.max(1);
            return Ok(());
        }
        let claim = self.shared.listeners.socket(socket).ok_or(BindError::Gone)?.claim;
        if !self.may_have(&Claim { listens: true, ..claim }, Some(socket)) {
            return Err(BindError::InUse);
        }
        let options = self.shared.sets.share(options);
        self.shared.listeners.listen(socket, backlog, options);
        Ok(())
    }

    /// Options of a listener. `None`: it does not listen.
    #[must_use]
    pub fn listener_options(&self, listener: ListenerId) -> Option<&Options> {
        self.shared.listeners.get(listener).map(|listener| &*listener.options)
    }

    /// Sets options of a listener, for connections that are not established yet; what their handshake has
    /// settled stays.
    ///
    /// # Errors
    /// [`SocketError::Gone`].
    pub fn set_listener_options(
        &mut self,
        listener: ListenerId,
        options: Options,
    ) -> Result<(), SocketError> {
        let listener = self.shared.listeners.get_mut(listener).ok_or(SocketError::Gone)?;
        self.shared.sets.change(&mut listener.options, &options);
        Ok(())
    }

    /// How many connections wait at a listener, without taking one. `None`: it does not listen.
    #[must_use]
    pub fn backlog(&self, listener: ListenerId) -> Option<Backlog> {
        self.shared.listeners.get(listener).map(|listener| Backlog {
            waiting: listener.queue.len(),
            half_open: listener.half_open,
            limit: listener.backlog,
        })
    }

    /// Admits nobody any more at a listener whose connections move away: SYNs are dropped, and come again. Ends with
    /// [`listen_on`](Self::listen_on).
    pub fn stop_admitting(&mut self, listener: ListenerId) {
        if let Some(listener) = self.shared.listeners.get_mut(listener) {
            listener.backlog = 0;
        }
    }

    /// The connection that has waited longest, if any.
    pub fn accept(&mut self, listener: ListenerId) -> Option<ConnectionId> {
        loop {
            let id = self.shared.listeners.get_mut(listener)?.queue.pop_front()?;
            let Some((hot, cold)) = self.slab.get_mut(id) else { continue };
            hot.clear(flag::QUEUED);
            cold.known = true;
            let waiting = cold.fifos.as_ref().is_some_and(|pair| !pair.receive.is_empty());
            // What came while it waited was not told.
            if waiting || hot.has(flag::PEER_CLOSED) {
                hot.set(flag::TOLD_READABLE);
                self.shared.events.push_back(Event::Readable(id));
            }
            if let Some(failure) = cold.failure {
                self.shared.events.push_back(Event::Failed(id, failure));
            }
            return Some(id);
        }
    }

    /// Closes a socket that listens or is only bound; connections that wait to be accepted are reset. The
    /// port stays taken for as long as connections have it, but for who shares it.
    pub fn close_listener(&mut self, socket: ListenerId) {
        let Some(mut closed) = self.shared.listeners.close(socket) else { return };
        while let Some(id) = closed.queue.pop_front() {
            if let Some((hot, _)) = self.slab.get_mut(id) {
                hot.clear(flag::QUEUED);
            }
            self.abort(id);
        }
    }
}
