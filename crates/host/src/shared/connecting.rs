//! Connecting and disconnecting: what the process knows of a connection begins and ends there.

use std::net::{IpAddr, SocketAddr};

use transport::moving::Carried;

use super::call::{Verb, command};
use super::data::Here;
use super::own::Status;
use super::remote::Remote;
use crate::errno::Errno;
use crate::session::Id;

/// The calls of [`Sessions`](crate::Sessions), with its errors, as in `calls`.
#[expect(clippy::missing_errors_doc, reason = "as those of `Sessions`")]
impl Remote {
    /// Connects a socket, from an address. Nobody is asked whether that has succeeded.
    pub fn connect(&mut self, id: Id, source: IpAddr, remote: SocketAddr) -> Result<(), Errno> {
        type Begun = (i32, Option<(SocketAddr, SocketAddr)>);
        self.find(id)?;
        if self.takes_connected(id) {
            self.say_along(command(Verb::Conclude, id, |_| {}));
            return Ok(());
        }
        self.forget_connection(id);
        let begun: Result<Begun, Errno> = self.call(Verb::Connect, id, |to| {
            source.put(to);
            remote.put(to);
        });
        let (done, ends) = match begun {
            Ok((0, ends)) => (Ok(()), ends),
            Ok((error, ends)) => (Err(Errno(error)), ends),
            Err(error) => (Err(error), None),
        };
        if done == Err(Errno::IOCBQUEUED) {
            return done;
        }
        if done == Err(Errno::BADF) && self.here(id).is_some_and(|here| here.own.awaited.is_some())
        {
            // The worker could not open it, for whatever reason. The application has its socket still, and may try again.
            let template = self.own(id)?.template.take();
            self.end(id);
            if let Some(template) = template {
                let _ = self.open_like(id, &template);
            }
            return Err(Errno::NOBUFS);
        }
        if let Ok(own) = self.own(id) {
            own.connecting = matches!(done, Err(Errno::INPROGRESS | Errno::ALREADY));
            own.ends = ends.or(own.ends);
        }
        if let Some(known) = self.datagrams(id) {
            known.name = None;
            known.has_peer = done.is_ok() && remote.port() != 0;
        }
        done
    }

    /// Whether a connect that has begun has led to a connection, of which it is told once.
    fn takes_connected(&mut self, id: Id) -> bool {
        let is_connected = self.in_use(id).is_some_and(Status::takes);
        self.own(id).is_ok_and(|own| is_connected && std::mem::take(&mut own.connecting))
    }

    /// Makes a socket one that is not connected.
    pub fn disconnect(&mut self, id: Id) -> Result<(), Errno> {
        self.find(id)?;
        let (epoch, is_answered) = (self.next_epoch(), self.is_answered());
        let done = self.tell(Verb::Disconnect, id, |to| epoch.put(to));
        if let Some(known) = self.datagrams(id) {
            if done != Err(Errno::IOCBQUEUED) {
                (known.name, known.has_peer) = (None, false);
            }
        } else if !is_answered && !self.has_to_ask() {
            // Already before the answer: other threads find what the worker clears meanwhile.
            self.begin_again(id, epoch);
        }
        done
    }

    /// Before a stream may be connected: what is known of its last connection is not of the one that begins.
    pub(super) fn forget_connection(&mut self, id: Id) {
        let is_closed = |here: &Here<'_>| here.own.datagrams.is_none() && here.status().is_closed();
        let Some(mut here) = self.here(id).filter(is_closed) else { return };
        // What was shut down before stays so, as the worker says.
        (here.own.shut, here.own.ends) = ((false, false), None);
        if here.own.awaited.is_none() {
            // tcp_disconnect: what had come before it failed, nobody reads.
            let unread = here.unread();
            let _ = here.consume(unread);
        }
    }
}
