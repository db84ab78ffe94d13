//! A round: packets in, timers, events, packets out.

use transport::{Ends, Event, Packet, Path, Sink};

use crate::mask::Mask;
use crate::session::{Id, Role};
use crate::sessions::Sessions;

impl Sessions {
    /// Takes packets in; `now`: ns that never go back, as everywhere.
    pub fn input<S: Sink + ?Sized>(&mut self, now: u64, packets: &[Packet<'_>], sink: &mut S) {
        self.now = self.now.max(now);
        self.stack.input(now, packets, sink);
        self.take_events();
    }

    /// The same where connections hold as much data as they may: what is no segment is taken in.
    pub fn input_datagrams<S: Sink + ?Sized>(
        &mut self,
        now: u64,
        packets: &[Packet<'_>],
        sink: &mut S,
    ) {
        self.now = self.now.max(now);
        self.stack.input_datagrams(now, packets, sink);
        self.take_events();
    }

    /// As [`input`](Self::input), for packets that came by a path other than the network: connections that they open take that
    /// path.
    pub fn input_by<S: Sink + ?Sized>(
        &mut self,
        path: Path,
        now: u64,
        packets: &[Packet<'_>],
        sink: &mut S,
    ) {
        self.now = self.now.max(now);
        self.stack.input_by(path, now, packets, sink);
        self.take_events();
    }

    /// A connection that has just begun ([`connect`](Self::connect)) takes a path, from its SYN on. Gives whether there is one.
    pub fn take_path(&mut self, id: Id, path: Path) -> bool {
        match self.get(id).map(|session| session.role) {
            Ok(Role::Connection(connection)) => self.stack.take_path(connection, path),
            _ => false,
        }
    }

    /// A path is there no more: its connections go by the network. Gives how many there were.
    pub fn end_path(&mut self, path: u16, sink: &mut dyn Sink) -> usize {
        self.stack.end_path(path, self.now, sink)
    }

    /// The other end of a path has turned away what was for these ends: it goes by the network.
    pub fn leave_path(&mut self, path: u16, ends: &Ends, sink: &mut dyn Sink) -> bool {
        self.stack.leave_path(path, ends, self.now, sink)
    }

    /// Acts on timers that are due, and sends what packets, timers and calls have left to send.
    pub fn turn<S: Sink + ?Sized>(&mut self, now: u64, sink: &mut S) {
        self.now = self.now.max(now);
        self.stack.expire(now, sink);
        self.stack.flush(now, sink);
        if !self.outbox.is_empty() {
            self.flush_datagrams(sink);
        }
        self.take_events();
        self.stack.buffers_mut().release_gone();
        self.note_changes();
    }

    /// When to call [`turn`](Self::turn): ns. `None`: only after something else happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.stack.next_deadline()
    }

    /// Whether something is left to send.
    #[must_use]
    pub fn wants_turn(&self) -> bool {
        self.stack.is_flush_due() || !self.outbox.is_empty()
    }

    /// Whether all that was sent through sessions that are closed now has been acknowledged or given up, and no
    /// datagram waits: a process that ends now loses nothing.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.leaving == 0 && self.outbox.is_empty()
    }

    /// Wakes the sessions that something happened to.
    pub(crate) fn take_events(&mut self) {
        while let Some(event) = self.stack.poll_event() {
            match event {
                Event::Readable(connection) => self.wake_connection(connection, Mask::READABLE),
                Event::Writable(connection) => self.wake_connection(connection, Mask::WRITABLE),
                Event::Urgent(connection) => {
                    self.wake_connection(connection, Mask::PRI | Mask::URGED);
                }
                // Linux: sk_state_change and sk_error_report.
                Event::Connected(connection)
                | Event::PeerClosed(connection)
                | Event::Failed(connection, _) => self.wake_connection(connection, Mask::ALL),
                Event::Incoming(listener) => {
                    if let Some(id) = self.of_listener(listener) {
                        self.wake(id, Mask::READABLE);
                    }
                }
                Event::UdpReadable(socket) => {
                    if let Some(id) = self.of_socket(socket) {
                        self.wake(id, Mask::READABLE);
                    }
                }
                Event::UdpError(socket) => self.note_trouble(socket),
                Event::Gone(..) => self.leaving = self.leaving.saturating_sub(1),
            }
        }
    }
}
