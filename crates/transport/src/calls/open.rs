//! Listening, connecting, accepting.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::ends::Ends;
use crate::error::{ConnectError, ListenError};
use crate::fifo::{Buffers, Grant, Opening};
use crate::handle::{ConnectionId, ListenerId};
use crate::options::Options;
use crate::stack::Stack;
use crate::tcp::hot::flag;
use crate::tcp::state::State;

impl<B: Buffers> Stack<B> {
    /// Listens at an address; an unspecified one stands for all of its version, `[::]` for both.
    /// `backlog`: connections that wait to be accepted at most.
    ///
    /// # Errors
    /// [`ListenError`] when the address is taken or the port is 0.
    pub fn listen(
        &mut self,
        address: SocketAddr,
        backlog: usize,
        options: &Options,
    ) -> Result<ListenerId, ListenError> {
        if address.port() == 0 {
            return Err(ListenError::Port);
        }
        if self.is_listening(address) {
            return Err(ListenError::InUse);
        }
        Ok(self.shared.listeners.add(address, backlog, Arc::new(options.clone())))
    }

    /// Opens a connection; `port`: the local one, 0 to have one chosen. The SYN leaves with the next
    /// flush, `Connected` or `Failed` follow.
    ///
    /// # Errors
    /// [`ConnectError`]; nothing has changed then.
    pub fn connect(
        &mut self,
        now: u64,
        local: IpAddr,
        port: u16,
        remote: SocketAddr,
        options: &Options,
    ) -> Result<ConnectionId, ConnectError> {
        self.now = self.now.max(now);
        let ends = if port == 0 {
            self.choose_port(local, remote)?
        } else {
            Ends::new(SocketAddr::new(local, port), remote).ok_or(ConnectError::Address)?
        };
        if !ends.is_possible() {
            return Err(ConnectError::Address);
        }
        if self.find(&ends).is_some() {
            return Err(ConnectError::InUse);
        }
        let options = Arc::new(options.clone());
        let (receive, transmit) = (options.receive_buffer, options.transmit_buffer);
        let id = self.make(&ends, options, None).ok_or(ConnectError::Full)?;
        let (receive, transmit) = (receive as usize, transmit as usize);
        let opening = Opening { connection: id, ends, listener: None, receive, transmit };
        let given = match self.buffers.open(&opening) {
            Grant::Given(pair) => Some(pair),
            Grant::Later | Grant::Refused => None,
        };
        let refused = given.is_none();
        if let Some((hot, cold)) = self.slab.get_mut(id) {
            cold.fifos = given;
            cold.known = true;
            hot.state = State::SynSent;
            hot.snd_una = cold.iss;
            hot.snd_nxt = cold.iss;
            cold.progress_at = self.now;
            cold.data_start = cold.iss.add(1);
            hot.rcv_scale = cold.options.own_scale();
            hot.set(flag::DIRTY);
            self.shared.dirty.push(id.index());
            if refused {
                hot.state = State::Closed;
                hot.set(flag::RELEASED);
                cold.known = false;
            }
        }
        if refused {
            self.settle(id.index());
            return Err(ConnectError::NoBuffers);
        }
        Ok(id)
    }

    fn choose_port(&mut self, local: IpAddr, remote: SocketAddr) -> Result<Ends, ConnectError> {
        if local.is_ipv4() != remote.is_ipv4() {
            return Err(ConnectError::Address);
        }
        let secret = self.shared.secret;
        let mut ports = std::mem::replace(&mut self.ports, crate::ports::Ports::none());
        let chosen = ports.choose(&secret, local, remote, |ends| {
            self.find(ends).is_none() && !self.is_listening(ends.local)
        });
        self.ports = ports;
        chosen.ok_or(ConnectError::NoPort)
    }

    /// The connection that has waited longest, if any.
    pub fn accept(&mut self, listener: ListenerId) -> Option<ConnectionId> {
        loop {
            let id = self.shared.listeners.get_mut(listener)?.queue.pop_front()?;
            let Some((hot, cold)) = self.slab.get_mut(id) else { continue };
            hot.clear(flag::QUEUED);
            cold.known = true;
            let waiting = cold
                .fifos
                .as_ref()
                .is_some_and(|pair| !crate::fifo::ByteFifo::is_empty(&pair.receive));
            // What came while it waited was not told.
            if waiting || hot.has(flag::PEER_CLOSED) {
                hot.set(flag::TOLD_READABLE);
                self.shared.events.push_back(crate::event::Event::Readable(id));
            }
            if let Some(failure) = cold.failure {
                self.shared.events.push_back(crate::event::Event::Failed(id, failure));
            }
            return Some(id);
        }
    }

    /// Ends listening; connections that wait to be accepted are reset.
    pub fn close_listener(&mut self, listener: ListenerId) {
        let Some(closed) = self.shared.listeners.remove(listener) else { return };
        for id in closed.queue {
            if let Some((hot, _)) = self.slab.get_mut(id) {
                hot.clear(flag::QUEUED);
            }
            self.abort(id);
        }
    }
}
