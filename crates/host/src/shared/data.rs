//! A session's data in its process: what can be done without asking.

use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut};

use shm::fifo::{Arena, Broken, CAPACITY, Chunks, Writer};
use shm::records::Record;

use super::call::{Verb, command};
use super::own::{Kept, OVER, Own, ROOM, Status};
use super::plan::ProcessSide;
use super::remote::Remote;
use crate::errno::Errno;
use crate::mask::Mask;
use crate::message::{Incoming, Received};
use crate::session::Id;

impl Remote {
    pub(super) fn own(&mut self, id: Id) -> Result<&mut Own, Errno> {
        let own = self.own.get_mut(id.0 as usize).filter(|own| own.is_there);
        own.ok_or(Errno::BADF)
    }

    /// A session begins at this number, as the worker has answered.
    pub(super) fn begin(&mut self, id: Id) {
        forget(id, &mut self.ended, &mut self.chunks);
        if let Some(own) = self.place(id) {
            own.is_there = true;
        }
    }

    /// The same before the worker comes to it, which tells the number of the beginning then.
    pub(super) fn begin_ahead(&mut self, id: Id, kept: Kept, epoch: u32) {
        if let Some(own) = self.place(id) {
            (own.is_there, own.kept, own.awaited) = (true, kept, Some(epoch));
        }
        // Which it may have done already.
        let _ = self.here(id);
    }

    /// The worker is to disconnect a session, which begins anew then.
    pub(super) fn begin_again(&mut self, id: Id, epoch: u32) {
        let Ok(&mut Own { kept, .. }) = self.own(id) else { return };
        self.end(id);
        self.begin_ahead(id, kept, epoch);
    }

    /// The place of a session that begins: nothing is known of it.
    fn place(&mut self, id: Id) -> Option<&mut Own> {
        let at = id.0 as usize;
        self.dead.remove(&id);
        if at >= self.own.len() {
            self.own.resize_with(at + 1, Own::default);
        }
        let own = self.own.get_mut(at)?;
        own.take().end(&mut self.chunks);
        Some(own)
    }

    /// A number for a beginning.
    pub(super) fn next_epoch(&mut self) -> u32 {
        self.epoch = self.epoch.wrapping_add(1);
        self.epoch
    }

    /// It is no more. What the worker has not read yet stays as it is until then.
    pub(super) fn end(&mut self, id: Id) {
        let Self { own, end, chunks, ended, .. } = self;
        let found = own.get_mut(id.0 as usize).zip(end.records.get(id.0));
        let Some((own, record)) = found else { return };
        let mut outward = own.take();
        // If the worker does not keep to the protocol, nothing is given back.
        let _ = outward.look(&record.outward(), chunks);
        if outward.holds() {
            ended.insert(id, (record.epoch(), outward));
        }
    }

    /// A session, with what its calls need of everything else.
    pub(super) fn here(&mut self, id: Id) -> Option<Here<'_>> {
        let Self { own, end, chunks, ended, is_lost, .. } = self;
        let own = own.get_mut(id.0 as usize).filter(|own| own.is_there)?;
        let ProcessSide { records, inward, outward, .. } = end;
        let record = records.get(id.0)?;
        if own.has_begun(record) {
            (own.awaited, own.template) = (None, None);
            forget(id, ended, chunks);
        }
        Some(Here { own, record, chunks, inward, outward, is_lost })
    }

    /// How a stream is that is connected, or about to be, or listens: no switch is refused there. `None`: it is another one, or it is
    /// for the worker to say.
    pub(super) fn in_use(&mut self, id: Id) -> Option<Status> {
        if self.is_answered() || self.is_lost {
            return None;
        }
        let here = self.here(id).filter(|here| here.own.datagrams.is_none())?;
        Some(here.status()).filter(|status| status.flows() || status.mask().is_empty())
    }

    /// What `poll` says of a session.
    pub fn mask(&mut self, id: Id) -> Mask {
        if self.is_dead(id) {
            return OVER;
        }
        let Some(mut here) = self.here(id) else { return Mask::NONE };
        if here.own.datagrams.is_some() {
            return here.datagram_mask();
        }
        let (shut, low_water) = (here.own.shut, here.own.kept.low_water.max(1) as usize);
        let status = here.status();
        if *here.is_lost {
            let is_stream = status.flows() || !status.mask().is_empty();
            return if is_stream { OVER } else { Mask::NONE };
        }
        if !status.flows() {
            return status.mask();
        }
        let over = status.mask() & (Mask::ERR | Mask::HUP | Mask::RDHUP);
        let unread = here.unread();
        // What does not fit is never there.
        let can_read = unread >= low_water.min(CAPACITY as usize / 2) || !over.is_empty() || shut.0;
        let ends = Mask::READ.when(can_read) | over | Mask::RDHUP.when(shut.0);
        // The worker may not have come to it yet.
        let has_ended = shut.1 && ends.has(Mask::RDHUP);
        let ends = ends | Mask::HUP.when(has_ended);
        let fails = shut.1 || !status.takes();
        let can_write = fails || here.has_room() && self.has_chunks(id);
        ends | Mask::WRITE.when(can_write)
    }

    /// Bytes that can be read (`FIONREAD`); of datagrams, those of the first.
    ///
    /// # Errors
    /// [`Errno::BADF`].
    pub fn pending(&mut self, id: Id) -> Result<usize, Errno> {
        let mut here = self.here(id).ok_or(Errno::BADF)?;
        if here.own.datagrams.is_some() {
            return Ok(here.first_length());
        }
        Ok(if here.status().flows() { here.unread() } else { 0 })
    }

    /// As [`Sessions::recv`](crate::Sessions::recv).
    ///
    /// # Errors
    /// As there.
    pub fn recv(
        &mut self,
        id: Id,
        targets: &mut [IoSliceMut<'_>],
        incoming: Incoming,
    ) -> Result<Received, Errno> {
        self.find(id)?;
        if self.datagrams(id).is_some() {
            return self.recv_datagram(id, targets, incoming);
        }
        let is_shut = self.own(id).is_ok_and(|own| own.shut.0);
        if incoming.urgent && !incoming.errors {
            return Err(Errno::INVAL);
        }
        if incoming.errors {
            return Err(Errno::AGAIN);
        }
        let offset = if incoming.peek { incoming.offset } else { 0 };
        loop {
            // An error is told once: what was answered counts, whatever has come since.
            if !self.is_answered() {
                let mut here = self.here(id).ok_or(Errno::BADF)?;
                let status = here.status();
                if status.flows() {
                    let unread = here.unread();
                    if unread > offset {
                        let (bytes, makes_room) = here.take(targets, incoming, unread - offset)?;
                        if makes_room {
                            self.note(id);
                            self.ring();
                        }
                        return Ok(Received { bytes, shape: None });
                    }
                    if unread == 0 && status.has_ended() {
                        return Ok(Received::default());
                    }
                }
                if status.is_plain() && !is_shut {
                    return Err(Errno::AGAIN);
                }
            }
            match self.ask_to_receive(id) {
                Ok(()) => return Ok(Received::default()),
                // Something has come meanwhile.
                Err(Errno::AGAIN)
                    if !incoming.peek && self.pending(id).is_ok_and(|unread| unread > 0) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends through the FIFO. `None`: the stack is to be asked.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] when there is no room.
    pub(super) fn put(&mut self, id: Id, data: &[IoSlice<'_>]) -> Option<Result<usize, Errno>> {
        let here = self.here(id)?;
        if here.own.shut.1 || !here.status().takes() {
            return None;
        }
        let wanted: usize = data.iter().map(|piece| piece.len()).sum();
        let mut written = self.here(id)?.write(data, 0)?;
        if written < wanted {
            // Whoever finds too little room is told when there is some, also if a part of it was written.
            self.here(id)?.record.outward_waits().announce();
            if self.chunks.free() == 0 {
                self.reclaim();
            }
            written += self.here(id)?.write(data, written)?;
            self.starving |= written < wanted && self.chunks.free() == 0;
        }
        self.list(id);
        if written > 0 {
            self.note(id);
        }
        Some(if written == 0 && wanted > 0 { Err(Errno::AGAIN) } else { Ok(written) })
    }

    /// The worker has to look at a session.
    pub(super) fn note(&mut self, id: Id) {
        if self.end.records.get(id.0).is_some_and(|record| record.note()) {
            self.say(command(Verb::Look, id, |_| {}));
        }
    }

    /// Bytes that were written and that the stack has not taken yet.
    pub(super) fn waiting(&mut self, id: Id) -> usize {
        let Self { own, chunks, end, .. } = self;
        let Some((own, record)) = own.get_mut(id.0 as usize).zip(end.records.get(id.0)) else {
            return 0;
        };
        let _ = own.outward.look(&record.outward(), chunks);
        own.outward.len()
    }

    pub(super) fn list(&mut self, id: Id) {
        let Some(own) = self.own.get_mut(id.0 as usize) else { return };
        if own.outward.holds() && !own.listed {
            own.listed = true;
            self.holding.push_back(id);
        }
    }

    /// Takes back the chunks that the worker is through with.
    pub(super) fn reclaim(&mut self) {
        let Self { end, chunks, ended, .. } = self;
        ended.retain(|id, (epoch, outward)| {
            if let Some(record) = end.records.get(id.0) {
                let _ = outward.look(&record.outward(), chunks);
                // The worker has come to another one.
                if record.epoch() != *epoch {
                    outward.end(chunks);
                }
            }
            outward.holds()
        });
        for _ in 0..self.holding.len() {
            let Some(id) = self.holding.pop_front() else { return };
            self.waiting(id);
            if let Some(own) = self.own.get_mut(id.0 as usize) {
                own.listed = false;
            }
            self.list(id);
        }
    }
}

/// A session, in the process that has it.
pub(super) struct Here<'a> {
    pub(super) own: &'a mut Own,
    pub(super) record: &'a Record,
    pub(super) chunks: &'a mut Chunks,
    pub(super) inward: &'a Arena,
    pub(super) outward: &'a Arena,
    pub(super) is_lost: &'a mut bool,
}

/// The worker is through with the session that had this number before.
fn forget(id: Id, ended: &mut BTreeMap<Id, (u32, Writer)>, chunks: &mut Chunks) {
    if let Some((_, mut outward)) = ended.remove(&id) {
        outward.end(chunks);
    }
}

impl Here<'_> {
    /// How it is. Where the worker may not have come to its beginning, it is as all are there.
    pub(super) fn status(&self) -> Status {
        if self.own.awaited.is_some() { Status::FRESH } else { Status(self.record.status()) }
    }

    /// Bytes that have come.
    pub(super) fn unread(&mut self) -> usize {
        match self.own.inward.len(&self.record.inward()) {
            Ok(unread) => unread,
            Err(Broken) => {
                *self.is_lost = true;
                0
            }
        }
    }

    /// Whether there is room enough to write; if not, the end of that is told.
    pub(super) fn has_room(&mut self) -> bool {
        let Self { own, record, chunks, is_lost, .. } = self;
        let place = record.outward();
        for announced in [false, true] {
            if own.outward.look(&place, chunks).is_err() {
                **is_lost = true;
                return true;
            }
            if own.outward.room() >= ROOM {
                return true;
            }
            if !announced {
                record.outward_waits().announce();
            }
        }
        false
    }

    /// Reads, of the `unread` bytes behind the offset that is asked for. Gives how many bytes there were, and whether the
    /// worker has waited for the room that this makes.
    fn take(
        &mut self,
        targets: &mut [IoSliceMut<'_>],
        incoming: Incoming,
        unread: usize,
    ) -> Result<(usize, bool), Errno> {
        let Self { own, record, inward, .. } = self;
        let place = record.inward();
        let offset = if incoming.peek { incoming.offset } else { 0 };
        let mut bytes = 0;
        for target in targets.iter_mut() {
            let left = unread - bytes;
            let most = target.len().min(left);
            let Some(target) = target.get_mut(..most) else { break };
            bytes += if incoming.discard {
                most
            } else {
                let got = own.inward.peek(&place, inward, offset + bytes, target);
                got.map_err(|Broken| Errno::CONNRESET)?
            };
        }
        if incoming.peek {
            return Ok((bytes, false));
        }
        Ok((bytes, self.consume(bytes).map_err(|Broken| Errno::CONNRESET)?))
    }

    /// Takes bytes out. Gives whether the worker has waited for the room that this makes.
    pub(super) fn consume(&mut self, bytes: usize) -> Result<bool, Broken> {
        let Self { own, record, .. } = self;
        let place = record.inward();
        own.inward.consume(&place, bytes);
        let is_half = own.inward.len(&place)? <= CAPACITY as usize / 2;
        Ok(is_half && record.inward_waits().claim_wake())
    }

    /// Writes as much as there is room for, of what is behind the first `skipped` bytes. `None`: the worker does not keep to the
    /// protocol.
    fn write(&mut self, data: &[IoSlice<'_>], skipped: usize) -> Option<usize> {
        let Self { own, record, chunks, outward, is_lost, .. } = self;
        let place = record.outward();
        if own.outward.look(&place, chunks).is_err() {
            **is_lost = true;
            return None;
        }
        let (mut skipped, mut written) = (skipped, 0);
        for piece in data {
            let before = skipped.min(piece.len());
            skipped -= before;
            let piece = piece.get(before..).unwrap_or_default();
            let count = own.outward.write(&place, (outward, chunks), piece);
            written += count;
            if count < piece.len() {
                break;
            }
        }
        Some(written)
    }
}
