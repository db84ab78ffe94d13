//! What applications need of a transport with connections, whatever it is: TCP, and later TLS or QUIC on it.

use std::net::{IpAddr, SocketAddr};

use crate::calls::{Backlog, Readiness, Write};
use crate::ends::Ends;
use crate::error::{BindError, ConnectError, SocketError};
use crate::event::Event;
use crate::failure::Failure;
use crate::fifo::Buffers;
use crate::handle::{ConnectionId, ListenerId};
use crate::options::Options;
use crate::packet::{Packet, Sink};
use crate::stack::Stack;

/// A transport without I/O or clock: packets and time in, packets and events out, and the calls of sockets.
///
/// `docs/transport.md` has the order of a round. [`Stack`] is one. A layer above it keeps the handles of
/// the layer below or makes its own ([`ConnectionId::new`]), hands on packets and time, and changes what calls
/// read and write and which events are told. All times: ns that never go back.
pub trait Transport {
    /// Takes packets in.
    fn input(&mut self, now: u64, packets: &[Packet<'_>], sink: &mut dyn Sink);

    /// Acts on timers whose time has come.
    fn expire(&mut self, now: u64, sink: &mut dyn Sink);

    /// Sends what packets, timers and calls have left to send.
    fn flush(&mut self, now: u64, sink: &mut dyn Sink);

    /// When to call [`expire`](Self::expire). `None`: only after something else happens.
    fn next_deadline(&self) -> Option<u64>;

    /// The next event.
    fn poll_event(&mut self) -> Option<Event>;

    /// Listens at an address; port 0: one is chosen.
    ///
    /// # Errors
    /// [`BindError`].
    fn listen(
        &mut self,
        address: SocketAddr,
        backlog: usize,
        options: &Options,
    ) -> Result<ListenerId, BindError>;

    /// Where a listener is bound. `None`: it is closed.
    fn listener_address(&self, listener: ListenerId) -> Option<SocketAddr>;

    /// How many connections wait. `None`: it does not listen.
    fn backlog(&self, listener: ListenerId) -> Option<Backlog>;

    /// The connection that has waited longest.
    fn accept(&mut self, listener: ListenerId) -> Option<ConnectionId>;

    /// Ends listening.
    fn close_listener(&mut self, listener: ListenerId);

    /// Opens a connection; port 0: one is chosen. `Connected` or `Failed` follow.
    ///
    /// # Errors
    /// [`ConnectError`].
    fn connect(
        &mut self,
        now: u64,
        local: IpAddr,
        port: u16,
        remote: SocketAddr,
        options: &Options,
    ) -> Result<ConnectionId, ConnectError>;

    /// Addresses and ports. `None`: the connection is gone.
    fn ends(&self, id: ConnectionId) -> Option<Ends>;

    /// Writes; gives how much. After less than all, `Writable` follows.
    ///
    /// # Errors
    /// [`SocketError`].
    fn send_with(
        &mut self,
        id: ConnectionId,
        bytes: &[u8],
        write: Write,
    ) -> Result<usize, SocketError>;

    /// The same, for a write that says nothing more about itself.
    ///
    /// # Errors
    /// [`SocketError`].
    fn send(&mut self, id: ConnectionId, bytes: &[u8]) -> Result<usize, SocketError> {
        self.send_with(id, bytes, Write::default())
    }

    /// Reads; 0: nothing yet, or the end: [`is_finished`](Self::is_finished).
    ///
    /// # Errors
    /// [`SocketError`].
    fn recv(&mut self, id: ConnectionId, target: &mut [u8]) -> Result<usize, SocketError>;

    /// Reads without taking, from `offset` on.
    ///
    /// # Errors
    /// [`SocketError`].
    fn peek(
        &self,
        id: ConnectionId,
        offset: usize,
        target: &mut [u8],
    ) -> Result<usize, SocketError>;

    /// Whether reading has ended.
    fn is_finished(&self, id: ConnectionId) -> bool;

    /// What `poll` says.
    fn readiness(&mut self, id: ConnectionId) -> Readiness;

    /// Why it failed, said once.
    fn take_error(&mut self, id: ConnectionId) -> Option<Failure>;

    /// Options of a connection. `None`: it is gone.
    fn options(&self, id: ConnectionId) -> Option<&Options>;

    /// Sets options, in any state.
    ///
    /// # Errors
    /// [`SocketError::Gone`].
    fn set_options(&mut self, id: ConnectionId, options: Options) -> Result<(), SocketError>;

    /// Sends no more.
    ///
    /// # Errors
    /// [`SocketError::NotConnected`].
    fn shutdown(&mut self, id: ConnectionId) -> Result<(), SocketError>;

    /// Receives no more.
    ///
    /// # Errors
    /// [`SocketError::NotConnected`].
    fn shutdown_receive(&mut self, id: ConnectionId) -> Result<(), SocketError>;

    /// Gives the connection up; what was written is still sent. `Gone` follows.
    fn close(&mut self, id: ConnectionId);

    /// Gives it up and throws away what was written. `Gone` follows.
    fn abort(&mut self, id: ConnectionId);
}

/// Hands calls on to the stack's own of the same name.
macro_rules! hand_on {
    ($(fn $name:ident(&self $(, $argument:ident: $kind:ty)*) $(-> $result:ty)?;)*) => {
        $(#[inline]
        fn $name(&self $(, $argument: $kind)*) $(-> $result)? {
            Stack::$name(self $(, $argument)*)
        })*
    };
    ($(fn $name:ident(&mut self $(, $argument:ident: $kind:ty)*) $(-> $result:ty)?;)*) => {
        $(#[inline]
        fn $name(&mut self $(, $argument: $kind)*) $(-> $result)? {
            Stack::$name(self $(, $argument)*)
        })*
    };
}

impl<B: Buffers> Transport for Stack<B> {
    hand_on! {
        fn input(&mut self, now: u64, packets: &[Packet<'_>], sink: &mut dyn Sink);
        fn expire(&mut self, now: u64, sink: &mut dyn Sink);
        fn flush(&mut self, now: u64, sink: &mut dyn Sink);
        fn poll_event(&mut self) -> Option<Event>;
        fn listen(&mut self, address: SocketAddr, backlog: usize, options: &Options) -> Result<ListenerId, BindError>;
        fn accept(&mut self, listener: ListenerId) -> Option<ConnectionId>;
        fn close_listener(&mut self, listener: ListenerId);
        fn connect(&mut self, now: u64, local: IpAddr, port: u16, remote: SocketAddr, options: &Options) -> Result<ConnectionId, ConnectError>;
        fn send_with(&mut self, id: ConnectionId, bytes: &[u8], write: Write) -> Result<usize, SocketError>;
        fn recv(&mut self, id: ConnectionId, target: &mut [u8]) -> Result<usize, SocketError>;
        fn readiness(&mut self, id: ConnectionId) -> Readiness;
        fn take_error(&mut self, id: ConnectionId) -> Option<Failure>;
        fn set_options(&mut self, id: ConnectionId, options: Options) -> Result<(), SocketError>;
        fn shutdown(&mut self, id: ConnectionId) -> Result<(), SocketError>;
        fn shutdown_receive(&mut self, id: ConnectionId) -> Result<(), SocketError>;
        fn close(&mut self, id: ConnectionId);
        fn abort(&mut self, id: ConnectionId);
    }

    hand_on! {
        fn next_deadline(&self) -> Option<u64>;
        fn backlog(&self, listener: ListenerId) -> Option<Backlog>;
        fn peek(&self, id: ConnectionId, offset: usize, target: &mut [u8]) -> Result<usize, SocketError>;
        fn is_finished(&self, id: ConnectionId) -> bool;
        fn options(&self, id: ConnectionId) -> Option<&Options>;
    }

    fn listener_address(&self, listener: ListenerId) -> Option<SocketAddr> {
        self.bound(listener).map(|(address, _)| address)
    }

    fn ends(&self, id: ConnectionId) -> Option<Ends> {
        self.slab.get(id).map(|(_, cold)| cold.ends())
    }
}
