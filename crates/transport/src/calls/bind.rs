//! Binding: an address and port for a socket that will listen or connect.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::ends::Ends;
use crate::error::BindError;
use crate::fifo::Buffers;
use crate::handle::ListenerId;
use crate::listener::Binding;
use crate::listener::binding::{Claim, canonical};
use crate::stack::Stack;
use crate::tcp::hot::{Hot, flag};

impl<B: Buffers> Stack<B> {
    /// Reserves an address and port for a socket, which [`listen_on`](Self::listen_on) and
    /// [`connect_from`](Self::connect_from) then use and [`close_listener`](Self::close_listener) gives
    /// back. An unspecified address stands for all of its version, `[::]` for both unless the binding says
    /// otherwise. Port 0: one is chosen. Addresses conflict as Linux has it, with connections too.
    ///
    /// # Errors
    /// [`BindError`]; nothing has changed then.
    pub fn bind(
        &mut self,
        address: SocketAddr,
        binding: &Binding,
    ) -> Result<ListenerId, BindError> {
        self.bind_where(address, binding, &mut |_| true)
    }

    /// The same; a port that is chosen is one that `accepts` likes, as one whose packets RSS brings to this
    /// stack, or one that was leased.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_where(
        &mut self,
        address: SocketAddr,
        binding: &Binding,
        accepts: &mut dyn FnMut(u16) -> bool,
    ) -> Result<ListenerId, BindError> {
        let address = canonical(address);
        let broadcast = address.ip() == IpAddr::V4(Ipv4Addr::BROADCAST);
        if address.ip().is_multicast() || broadcast {
            return Err(BindError::Address);
        }
        let mut claim = Claim { address, binding: *binding, listens: false };
        if address.port() == 0 {
            claim.address = self.choose_bound(claim, accepts).ok_or(BindError::NoPort)?;
        } else if !self.may_have(&claim, None) {
            return Err(BindError::InUse);
        }
        Ok(self.shared.listeners.add(claim.address, *binding))
    }

    fn choose_bound(
        &mut self,
        claim: Claim,
        accepts: &mut dyn FnMut(u16) -> bool,
    ) -> Option<SocketAddr> {
        let (secret, ip) = (self.shared.secret, claim.address.ip());
        let listeners = &self.shared.listeners;
        let free = |ends: &Ends| {
            let port = ends.local.port();
            let claim = Claim { address: ends.local, ..claim };
            listeners.is_free(&claim, None, true) && !listeners.has_opened(port) && accepts(port)
        };
        let chosen = self.ports.choose(&secret, ip, SocketAddr::new(ip, 0), free);
        chosen.map(|ends| ends.local)
    }

    /// Whether a socket could have its address beside all others.
    pub(super) fn may_have(&self, claim: &Claim, own: Option<ListenerId>) -> bool {
        if !self.shared.listeners.is_free(claim, own, false) {
            return false;
        }
        let port = claim.address.port();
        let binding = Binding::default();
        let meets = |local: SocketAddr| {
            let other = Claim { address: local, binding, listens: false };
            local.port() == port && claim.overlaps(&other)
        };
        // Whoever shares addresses does so with what is left in TIME-WAIT.
        let shares = claim.binding.reuse_address || claim.binding.reuse_port;
        if !shares && self.time_waits.all().any(|waiting| meets(waiting.ends().local)) {
            return false;
        }
        if !self.shared.listeners.has_opened(port) {
            return true;
        }
        // Rare: connections that were opened from this port without being bound to it.
        let opened =
            |hot: &Hot, listener: Option<ListenerId>| hot.has(flag::IN_TABLE) && listener.is_none();
        !self.slab.all().any(|(hot, cold)| opened(hot, cold.listener) && meets(cold.ends().local))
    }

    /// Address, port and binding of a socket that listens or is only bound. `None`: it is closed.
    #[must_use]
    pub fn bound(&self, socket: ListenerId) -> Option<(SocketAddr, Binding)> {
        let claim = &self.shared.listeners.socket(socket)?.claim;
        Some((claim.address, claim.binding))
    }
}
