//! Calls on UDP sockets.

use std::net::{IpAddr, SocketAddr};

use crate::ends::Ends;
use crate::fifo::Buffers;
use crate::handle::UdpId;
use crate::paths::Limit;
use crate::stack::Stack;
use crate::udp::{Received, Run, UdpError, UdpOptions, UdpReport, UdpTrouble};

impl<B: Buffers> Stack<B> {
    /// A socket at an address: an unspecified one stands for all of its version, `[::]` for both unless the
    /// options say otherwise. Port 0: one is chosen.
    ///
    /// # Errors
    /// [`UdpError::InUse`], [`UdpError::NoPort`].
    pub fn udp_bind(
        &mut self,
        address: SocketAddr,
        options: &UdpOptions,
    ) -> Result<UdpId, UdpError> {
        let mut address = address;
        if address.port() == 0 {
            let secret = self.shared.secret;
            let remote = SocketAddr::new(address.ip(), 0);
            let free = |ends: &Ends| self.udp.is_free(ends.local, options);
            let chosen = self.udp_ports.choose(&secret, address.ip(), remote, free);
            address = chosen.ok_or(UdpError::NoPort)?.local;
        } else if !self.udp.is_free(address, options) {
            return Err(UdpError::InUse);
        }
        Ok(self.udp.add(address, options.clone()))
    }

    /// Has the socket talk to one peer only, from `local`, which is the source address towards it. Another
    /// call changes the peer.
    ///
    /// # Errors
    /// [`UdpError::Address`] when the addresses do not go together; [`UdpError::InUse`],
    /// [`UdpError::Full`].
    pub fn udp_connect(
        &mut self,
        id: UdpId,
        local: IpAddr,
        remote: SocketAddr,
    ) -> Result<(), UdpError> {
        let socket = self.udp.get(id).ok_or(UdpError::Gone)?;
        let bound = socket.local;
        let fits = socket.takes_version_of(local)
            && (bound.ip() == local || bound.ip().is_unspecified())
            && !local.is_multicast()
            && !local.is_unspecified()
            && remote.port() != 0;
        let ends = Ends::new(SocketAddr::new(local, bound.port()), remote);
        let ends =
            ends.filter(|_| fits && !remote.ip().is_unspecified()).ok_or(UdpError::Address)?;
        let taken = self.udp.with_port(bound.port()).any(|other| {
            other.id != id && other.local == ends.local && other.remote == Some(remote)
        });
        if taken {
            return Err(UdpError::InUse);
        }
        self.udp_disconnect(id)?;
        if !self.list_datagrams(&ends, id.index()) {
            return Err(UdpError::Full);
        }
        let socket = self.udp.get_mut(id).ok_or(UdpError::Gone)?;
        socket.local = ends.local;
        socket.remote = Some(remote);
        Ok(())
    }

    /// Has the socket talk to everybody again; its own address stays as it is.
    ///
    /// # Errors
    /// [`UdpError::Gone`].
    pub fn udp_disconnect(&mut self, id: UdpId) -> Result<(), UdpError> {
        let socket = self.udp.get_mut(id).ok_or(UdpError::Gone)?;
        let local = socket.local;
        if let Some(remote) = socket.remote.take() {
            self.unlist_datagrams(&Ends { local, remote });
        }
        Ok(())
    }

    /// The next datagram: as much of it as `target` holds, the rest is lost. `None`: there is none.
    ///
    /// # Errors
    /// [`UdpError::Trouble`] once, when the network has said something about what a connected socket sent.
    pub fn udp_recv(&mut self, id: UdpId, target: &mut [u8]) -> Result<Option<Received>, UdpError> {
        let received = self
            .udp
            .change_own(id, |socket, _| socket.tell_trouble().map(|()| socket.queue.pop(target)));
        received.unwrap_or(Err(UdpError::Gone))
    }

    /// The same, without taking it (`MSG_PEEK`).
    ///
    /// # Errors
    /// [`UdpError::Gone`].
    pub fn udp_peek(&self, id: UdpId, target: &mut [u8]) -> Result<Option<Received>, UdpError> {
        Ok(self.udp.get(id).ok_or(UdpError::Gone)?.queue.peek(target))
    }

    /// The next datagram and those behind it that are of its flow and size, as many as `target` holds whole,
    /// one behind the other; a shorter one is the last. `None`: there is none.
    ///
    /// # Errors
    /// As [`udp_recv`](Self::udp_recv).
    pub fn udp_recv_run(&mut self, id: UdpId, target: &mut [u8]) -> Result<Option<Run>, UdpError> {
        let received = self.udp.change_own(id, |socket, _| {
            socket.tell_trouble().map(|()| socket.queue.pop_run(target))
        });
        received.unwrap_or(Err(UdpError::Gone))
    }

    /// What the network said last about what was sent, and to whom; told once.
    pub fn udp_trouble(&mut self, id: UdpId) -> Option<(UdpTrouble, SocketAddr)> {
        self.udp.get_mut(id)?.trouble.take()
    }

    /// The first of what was said about datagrams that were sent and is kept ([`UdpOptions::errors_v4`]), taken out.
    pub fn udp_report(&mut self, id: UdpId) -> Option<UdpReport> {
        self.udp.change_own(id, |socket, _| socket.reports.pop())?
    }

    /// The same, without taking it.
    #[must_use]
    pub fn udp_first_report(&self, id: UdpId) -> Option<&UdpReport> {
        self.udp.get(id)?.reports.first()
    }

    /// Keeps what the caller itself says about a datagram. Gives whether there was room.
    pub fn udp_add_report(&mut self, id: UdpId, report: UdpReport) -> bool {
        self.udp.change_own(id, |socket, room| socket.report(report, room)).unwrap_or(false)
    }

    /// Forgets what is kept.
    pub fn udp_clear_reports(&mut self, id: UdpId) {
        self.udp.change_own(id, |socket, _| socket.reports.clear());
    }

    /// Bytes of memory of what waits in all sockets: datagrams, and what was said about those that were sent. Queues that are
    /// empty keep [a bit](Self::UDP_SPARE_BYTES) beside it.
    #[must_use]
    pub fn udp_memory(&self) -> usize {
        self.udp.memory_bytes()
    }

    /// From now on, a datagram that would take more than so many bytes of memory, together with all that waits, is dropped and
    /// counted as if its socket's queue were full.
    pub fn limit_udp_memory(&mut self, most: usize) {
        self.udp.limit_memory(most);
    }

    /// Joins a group; with `source` only that one's datagrams are taken (RFC 4607). Telling routers of it
    /// is the host's task: [`udp_groups`](Self::udp_groups).
    ///
    /// # Errors
    /// [`UdpError::Group`] when it is none, or not of the socket's version.
    pub fn udp_join(
        &mut self,
        id: UdpId,
        group: IpAddr,
        source: Option<IpAddr>,
    ) -> Result<(), UdpError> {
        self.udp.set_group(id, group, source, true)
    }

    /// Leaves a group.
    ///
    /// # Errors
    /// [`UdpError::Group`] when it was not joined.
    pub fn udp_leave(
        &mut self,
        id: UdpId,
        group: IpAddr,
        source: Option<IpAddr>,
    ) -> Result<(), UdpError> {
        self.udp.set_group(id, group, source, false)
    }

    /// Groups that some socket has joined; each may come more than once.
    pub fn udp_groups(&self) -> impl Iterator<Item = (IpAddr, Option<IpAddr>)> {
        self.udp.all().flat_map(|socket| socket.groups.iter().copied())
    }

    /// Has a socket that is not connected take datagrams for any address again, after a connect has given it
    /// one. `any`: the unspecified address of its version.
    ///
    /// # Errors
    /// [`UdpError::Gone`]; [`UdpError::Address`] when it is connected, or the address a certain one.
    pub fn udp_widen(&mut self, id: UdpId, any: IpAddr) -> Result<(), UdpError> {
        let socket = self.udp.get_mut(id).ok_or(UdpError::Gone)?;
        if socket.remote.is_some() || !any.is_unspecified() {
            return Err(UdpError::Address);
        }
        socket.local.set_ip(any);
        Ok(())
    }

    /// Bytes of a packet that the path to `peer` takes, as far as is known.
    #[must_use]
    pub fn path_mtu(&self, peer: IpAddr) -> u16 {
        let port = self.shared.config.mtu;
        self.shared.paths.known(peer, self.now).map_or(port, |known| known.min(port))
    }

    /// The first link of the path to `peer` takes packets of `mtu` bytes, as whoever routes them says.
    pub fn note_first_link(&mut self, now: u64, peer: IpAddr, mtu: u16) {
        self.now = self.now.max(now);
        if mtu < self.path_mtu(peer) {
            self.shared.paths.learn(peer, Limit { mtu, narrow: false }, self.now);
        }
    }

    /// Address and peer of a socket.
    #[must_use]
    pub fn udp_ends(&self, id: UdpId) -> Option<(SocketAddr, Option<SocketAddr>)> {
        self.udp.get(id).map(|socket| (socket.local, socket.remote))
    }

    /// Its options.
    #[must_use]
    pub fn udp_options(&self, id: UdpId) -> Option<&UdpOptions> {
        self.udp.get(id).map(|socket| &socket.options)
    }

    /// Sets options; whether the address is shared, and with which version, stays as it is.
    ///
    /// # Errors
    /// [`UdpError::Gone`].
    pub fn udp_set_options(&mut self, id: UdpId, options: &UdpOptions) -> Result<(), UdpError> {
        let socket = self.udp.get_mut(id).ok_or(UdpError::Gone)?;
        let UdpOptions { share, reuse_address, v6_only, .. } = socket.options;
        socket.options = UdpOptions { share, reuse_address, v6_only, ..options.clone() };
        Ok(())
    }

    /// Closes the socket; what waits in it is dropped.
    pub fn udp_close(&mut self, id: UdpId) {
        if self.udp_disconnect(id).is_ok() {
            self.udp.remove(id);
        }
    }
}
