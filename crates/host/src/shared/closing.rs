//! Sessions that the process has closed with more to send than the stack takes at once: the rest waits here, so that the
//! session's number, its FIFOs and its chunks can be used again.

use std::io::IoSlice;

use super::flow::Closing;
use super::served::Served;
use crate::close::Lingering;
use crate::mask::Mask;
use crate::message::Outgoing;
use crate::session::Id;

/// Of a process at most; one more is reset.
const MOST: usize = 1024;

impl Served {
    /// Closes a session. Gives what the process waits for when it lingers.
    pub(super) fn close(&mut self, id: Id) -> Option<Lingering> {
        // What was written before goes before.
        if self.flow(id).moves() {
            self.attend(id, Mask::NONE);
        }
        // tcp_close: of data that nobody has read, the peer is told by a reset.
        if self.flow(id).flows && self.unread(id) > 0 {
            let unread = self.unread_bytes(id);
            self.sessions.take_back(id, &unread, &[]);
        }
        // Datagrams for which there is no room are lost, as in any network.
        let rest = if self.flow(id).frames { Vec::new() } else { self.rest(id) };
        self.end_flow(id);
        if self.sessions.ends_with_reset(id) {
            return self.reset(id);
        }
        if rest.is_empty() {
            return self.sessions.close(id);
        }
        let lingering = self.sessions.lingering(id);
        match self.free_number().filter(|new| self.sessions.rename(id, *new)) {
            Some(new) => {
                self.closing.push(Closing { id: new, rest, sent: 0 });
                self.go_on_closing(new);
                lingering.filter(|lingering| self.sessions.is_lingering(lingering))
            }
            // What it has sent does not arrive: the peer is to know.
            None => {
                self.sessions.abort(id);
                None
            }
        }
    }

    /// A number behind those of the process.
    fn free_number(&self) -> Option<Id> {
        let mut numbers = (self.end.plan.sessions()..).map(Id).take(MOST);
        numbers.find(|id| !self.sessions.has(*id)).filter(|_| !self.is_tight)
    }

    /// Closes a session that ends with a reset. What the stack has for the peer goes before it, as it would have gone when it was
    /// written.
    fn reset(&mut self, id: Id) -> Option<Lingering> {
        let waits = self.sessions.unsent(id).is_ok_and(|(_, never)| never > 0);
        let free = if waits { self.free_number() } else { None };
        match free.filter(|new| self.sessions.rename(id, *new)) {
            Some(new) => {
                self.resetting.push(new);
                None
            }
            None => self.sessions.close(id),
        }
    }

    /// What went before resets has been sent.
    pub(super) fn finish_resetting(&mut self) {
        while let Some(id) = self.resetting.pop() {
            self.sessions.close(id);
        }
    }

    /// What the stack has not taken yet.
    pub(super) fn rest(&mut self, id: Id) -> Vec<u8> {
        let waiting = self.unsent(id);
        let over = !(self.sessions.mask(id) & (Mask::ERR | Mask::HUP)).is_empty();
        let Self { flows, end, .. } = self;
        let found = flows.get(id.0 as usize).zip(end.records.get(id.0));
        let Some((flow, record)) = found.filter(|_| waiting > 0 && !over) else {
            return Vec::new();
        };
        let mut rest = vec![0; waiting];
        match flow.outward.peek(&record.outward(), &end.outward, 0, &mut rest) {
            Ok(got) => rest.truncate(got),
            Err(_) => {
                self.is_broken = true;
                rest.clear();
            }
        }
        rest
    }

    /// The stack takes what sessions that end have left, whatever its room: they are closed, and can leave it.
    pub(super) fn finish_closing(&mut self) {
        self.finish_resetting();
        for Closing { id, rest, sent } in std::mem::take(&mut self.closing) {
            self.sessions.take_back(id, &[], rest.get(sent..).unwrap_or_default());
            self.sessions.close(id);
        }
    }

    /// Something has happened to a session that ends: the rest goes, and then it is closed.
    pub(super) fn go_on_closing(&mut self, id: Id) {
        let Some(at) = self.closing.iter().position(|closing| closing.id == id) else { return };
        let Some(closing) = self.closing.get_mut(at) else { return };
        loop {
            let rest = closing.rest.get(closing.sent..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            match self.sessions.send(id, &[IoSlice::new(rest)], Outgoing::default()) {
                Ok(sent) => closing.sent += sent,
                Err(crate::Errno::AGAIN) => {
                    // The end of that is told.
                    let _ = self.sessions.mask(id);
                    return;
                }
                Err(_) => break,
            }
        }
        self.closing.swap_remove(at);
        self.sessions.close(id);
    }
}
