//! Opening connections.

use std::net::{IpAddr, SocketAddr};

use crate::ends::Ends;
use crate::error::ConnectError;
use crate::fifo::{Buffers, Grant, Opening};
use crate::handle::{ConnectionId, ListenerId};
use crate::isn;
use crate::options::Options;
use crate::ports::Ports;
use crate::stack::Stack;
use crate::tcp::hot::flag;
use crate::tcp::state::State;

impl<B: Buffers> Stack<B> {
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
        if port == 0 {
            return self.connect_where(now, local, remote, options, &mut |_| true);
        }
        let ends = Ends::new(SocketAddr::new(local, port), remote).ok_or(ConnectError::Address)?;
        self.open(now, &ends, options, None)
    }

    /// The same from a port that `accepts` likes: one whose answers RSS brings to this stack, or one that
    /// was leased. It is asked about free ports only, and about each at most once.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_where(
        &mut self,
        now: u64,
        local: IpAddr,
        remote: SocketAddr,
        options: &Options,
        accepts: &mut dyn FnMut(&Ends) -> bool,
    ) -> Result<ConnectionId, ConnectError> {
        if local.is_ipv4() != remote.is_ipv4() {
            return Err(ConnectError::Address);
        }
        let secret = self.shared.secret;
        let mut ports = std::mem::replace(&mut self.ports, Ports::none());
        let mut choose = |late: bool| {
            ports.choose(&secret, local, remote, |ends| {
                let bound = self.shared.listeners.has_port(ends.local.port());
                let is_free = match self.find(ends) {
                    None => !late,
                    Some(value) => late && self.may_take_over(value, options.timestamps),
                };
                // None is its own peer.
                let is_free = is_free && ends.local != ends.remote;
                !bound && is_free && !self.held.has(ends, self.now) && accepts(ends)
            })
        };
        // When all are taken, those in TIME-WAIT are as good.
        let chosen = choose(false).or_else(|| choose(true));
        self.ports = ports;
        self.open(now, &chosen.ok_or(ConnectError::NoPort)?, options, None)
    }

    /// The same from a bound socket, whose handle is spent when that succeeds. `local`: the source address
    /// when it is bound to any.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); [`ConnectError::Gone`] when the socket is closed or listens.
    pub fn connect_from(
        &mut self,
        now: u64,
        socket: ListenerId,
        local: IpAddr,
        remote: SocketAddr,
        options: &Options,
    ) -> Result<ConnectionId, ConnectError> {
        let claim = self.shared.listeners.socket(socket).ok_or(ConnectError::Gone)?.claim;
        let own = claim.address.ip() == local || claim.covers(local);
        if claim.listens || !own {
            return Err(if own { ConnectError::Gone } else { ConnectError::Address });
        }
        let local = SocketAddr::new(local, claim.address.port());
        let ends = Ends::new(local, remote).ok_or(ConnectError::Address)?;
        let id = self.open(now, &ends, options, Some(socket))?;
        self.shared.listeners.close(socket);
        Ok(id)
    }

    fn open(
        &mut self,
        now: u64,
        ends: &Ends,
        options: &Options,
        bound: Option<ListenerId>,
    ) -> Result<ConnectionId, ConnectError> {
        self.now = self.now.max(now);
        if !ends.is_possible() {
            return Err(ConnectError::Address);
        }
        if self.held.has(ends, self.now) {
            return Err(ConnectError::InUse);
        }
        let mut after = None;
        if let Some(value) = self.find(ends) {
            if !self.may_take_over(value, options.timestamps) {
                return Err(ConnectError::InUse);
            }
            after = self.take_over(value);
        }
        let options = self.shared.sets.share(options);
        let (receive, transmit) =
            (options.receive_buffer as usize, options.transmit_buffer as usize);
        let id = self.make(ends, options, None).ok_or(ConnectError::Full)?;
        match bound {
            Some(socket) => self.shared.listeners.enter(socket),
            None => self.shared.listeners.count_opened(ends.local.port(), true),
        }
        let opening = Opening { connection: id, ends: *ends, listener: None, receive, transmit };
        let given = match self.buffers.open(&opening) {
            Grant::Given(pair) => Some(pair),
            Grant::Later | Grant::Refused => None,
        };
        let refused = given.is_none();
        if let Some((hot, cold)) = self.slab.get_mut(id) {
            cold.listener = bound;
            cold.fifos = given;
            cold.known = true;
            hot.state = State::SynSent;
            cold.iss = isn::beyond(cold.iss, after);
            hot.snd_una = cold.iss;
            hot.snd_nxt = cold.iss;
            cold.progress_at = self.now;
            cold.data_start = cold.iss.add(1);
            hot.rcv_scale = cold.options.own_scale();
            hot.set(flag::DIRTY);
            self.shared.dirty.push_back(id.index());
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
}
