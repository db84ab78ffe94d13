//! What the service manager has no room for yet: nobody waits for it, and nothing that it must know is lost.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// What becomes of a message that cannot be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// It does not wait: it is said again soon.
    Never,
    /// It waits until the next of its kind takes its place.
    ForTheNext,
    /// It waits until it is sent.
    Always,
    /// The same, and those before it have no meaning any more.
    Alone,
}

/// Messages that wait, in order. However long the service manager takes, they are a handful.
#[derive(Debug)]
pub(super) struct Outbox(VecDeque<(Waits, String)>);

impl Outbox {
    /// Nothing waits.
    pub(super) const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Whether everything was sent.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sends a message after those that wait, as far as there is room.
    ///
    /// Errors: nobody is there, or the system's.
    pub(super) fn send(&mut self, waits: Waits, message: String, to: &Path) -> io::Result<()> {
        match waits {
            Waits::Never | Waits::Always => {}
            Waits::ForTheNext => self.forget(Waits::ForTheNext),
            Waits::Alone => self.0.clear(),
        }
        self.0.push_back((waits, message));
        let sent = self.flush(to);
        self.forget(Waits::Never);
        sent
    }

    /// Sends what waits, as far as there is room.
    ///
    /// Errors: as [`Self::send`].
    pub(super) fn flush(&mut self, to: &Path) -> io::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        socket.connect(to)?;
        while let Some((_, message)) = self.0.front() {
            match socket.send(message.as_bytes()) {
                Ok(_) => self.0.pop_front(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
        }
        Ok(())
    }

    fn forget(&mut self, kind: Waits) {
        self.0.retain(|(waits, _)| *waits != kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(socket: &UnixDatagram) -> String {
        let mut message = [0; 64];
        let length = socket.recv(&mut message).unwrap();
        String::from_utf8_lossy(&message[..length]).into_owned()
    }

    #[test]
    fn what_finds_no_room_waits_in_order_and_is_said_once() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("notify");
        let socket = UnixDatagram::bind(&to).unwrap();
        let mut outbox = Outbox::new();
        let mut filled = 0;
        while outbox.is_empty() {
            outbox.send(Waits::Always, "fill".to_owned(), &to).unwrap();
            filled += 1;
        }
        // The last of them waits, and what begins now takes its place.
        filled -= 1;
        for (waits, message) in [
            (Waits::ForTheNext, "status 1"),
            (Waits::Alone, "reloading"),
            (Waits::ForTheNext, "status 2"),
            (Waits::Never, "alive"),
            (Waits::Always, "ready"),
            (Waits::ForTheNext, "status 3"),
        ] {
            outbox.send(waits, message.to_owned(), &to).unwrap();
        }
        for _ in 0..filled {
            assert_eq!(receive(&socket), "fill");
        }
        outbox.flush(&to).unwrap();
        assert!(outbox.is_empty());
        let said = [receive(&socket), receive(&socket), receive(&socket)];
        assert_eq!(said, ["reloading", "ready", "status 3"]);
        socket.set_nonblocking(true).unwrap();
        assert!(socket.recv(&mut [0]).is_err());
    }

    #[test]
    fn what_nobody_was_there_for_is_said_when_somebody_is() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("notify");
        let mut outbox = Outbox::new();
        assert!(outbox.send(Waits::Always, "ready".to_owned(), &to).is_err());
        assert!(outbox.send(Waits::Never, "alive".to_owned(), &to).is_err());
        let socket = UnixDatagram::bind(&to).unwrap();
        outbox.flush(&to).unwrap();
        assert!(outbox.is_empty());
        assert_eq!(receive(&socket), "ready");
    }
}
