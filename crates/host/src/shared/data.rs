//! A session's data in its process: what can be done without asking.

use std::io::{IoSlice, IoSliceMut};

use shm::fifo::{Broken, CAPACITY};
use shm::records::Record;

use super::own::{OVER, Own, ROOM, Status};
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

    /// A session begins at this number.
    pub(super) fn begin(&mut self, id: Id) {
        let at = id.0 as usize;
        self.dead.remove(&id);
        if at >= self.own.len() {
            self.own.resize_with(at + 1, Own::default);
        }
        if let Some(own) = self.own.get_mut(at) {
            own.outward.end(&mut self.chunks);
            *own = Own { is_there: true, ..Own::default() };
        }
    }

    /// It is no more.
    pub(super) fn end(&mut self, id: Id) {
        if let Some(own) = self.own.get_mut(id.0 as usize) {
            own.outward.end(&mut self.chunks);
            *own = Own::default();
        }
    }

    /// What `poll` says of a session.
    pub fn mask(&mut self, id: Id) -> Mask {
        if self.is_dead(id) {
            return OVER;
        }
        let Ok(own) = self.own(id) else { return Mask::NONE };
        let (shut, low_water) = (own.shut, own.low_water.max(1) as usize);
        let records = self.end.records.clone();
        let Some(record) = records.get(id.0) else { return Mask::NONE };
        let status = Status(record.status());
        if self.is_lost {
            let is_stream = status.flows() || !status.mask().is_empty();
            return if is_stream { OVER } else { Mask::NONE };
        }
        if !status.flows() {
            return status.mask();
        }
        let over = status.mask() & (Mask::ERR | Mask::HUP | Mask::RDHUP);
        let unread = self.unread(id, record);
        // What does not fit is never there.
        let can_read = unread >= low_water.min(CAPACITY as usize / 2) || !over.is_empty() || shut.0;
        let ends = Mask::READ.when(can_read) | over | Mask::RDHUP.when(shut.0);
        let can_write = shut.1 || !status.takes() || self.has_room(id, record);
        ends | Mask::WRITE.when(can_write)
    }

    fn unread(&mut self, id: Id, record: &Record) -> usize {
        let Some(own) = self.own.get(id.0 as usize) else { return 0 };
        match own.inward.len(&record.inward()) {
            Ok(unread) => unread,
            Err(Broken) => {
                self.is_lost = true;
                0
            }
        }
    }

    /// Whether there is room enough to write; if not, the end of that is told.
    fn has_room(&mut self, id: Id, record: &Record) -> bool {
        let Self { own, chunks, .. } = self;
        let Some(own) = own.get_mut(id.0 as usize) else { return false };
        let place = record.outward();
        for announced in [false, true] {
            if own.outward.look(&place, chunks).is_err() {
                self.is_lost = true;
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

    /// Bytes that can be read (`FIONREAD`).
    ///
    /// # Errors
    /// [`Errno::BADF`].
    pub fn pending(&mut self, id: Id) -> Result<usize, Errno> {
        self.own(id)?;
        let records = self.end.records.clone();
        let record = records.get(id.0).ok_or(Errno::BADF)?;
        Ok(if Status(record.status()).flows() { self.unread(id, record) } else { 0 })
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
        let is_shut = self.own(id)?.shut.0;
        if incoming.urgent {
            return Err(Errno::INVAL);
        }
        if incoming.errors {
            return Err(Errno::AGAIN);
        }
        let records = self.end.records.clone();
        let record = records.get(id.0).ok_or(Errno::BADF)?;
        loop {
            let status = Status(record.status());
            if status.flows() {
                let unread = self.unread(id, record);
                let offset = if incoming.peek { incoming.offset } else { 0 };
                if unread > offset {
                    return self.take(id, record, targets, incoming);
                }
            }
            if status.is_plain() && !is_shut {
                return Err(Errno::AGAIN);
            }
            match self.ask_to_receive(id) {
                Ok(()) => return Ok(Received::default()),
                // Something has come meanwhile.
                Err(Errno::AGAIN) if self.unread(id, record) > 0 && !incoming.peek => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take(
        &mut self,
        id: Id,
        record: &Record,
        targets: &mut [IoSliceMut<'_>],
        incoming: Incoming,
    ) -> Result<Received, Errno> {
        let own = self.own.get_mut(id.0 as usize).ok_or(Errno::BADF)?;
        let (place, mut offset) = (record.inward(), 0);
        if incoming.peek {
            offset = incoming.offset;
        }
        let unread = own.inward.len(&place).map_err(|Broken| Errno::CONNRESET)?;
        let mut bytes = 0;
        for target in targets.iter_mut() {
            let left = unread.saturating_sub(offset + bytes);
            bytes += if incoming.discard {
                target.len().min(left)
            } else {
                let got = own.inward.peek(&place, &self.end.inward, offset + bytes, target);
                got.map_err(|Broken| Errno::CONNRESET)?
            };
        }
        if !incoming.peek {
            own.inward.consume(&place, bytes);
            let left = unread - bytes;
            if left <= CAPACITY as usize / 2 && record.inward_waits().claim_wake() {
                self.note(id, record);
                self.ring();
            }
        }
        Ok(Received { bytes, shape: None })
    }

    /// Sends through the FIFO. `None`: the stack is to be asked.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] when there is no room.
    pub(super) fn put(&mut self, id: Id, data: &[IoSlice<'_>]) -> Option<Result<usize, Errno>> {
        let is_shut = self.own(id).ok()?.shut.1;
        let records = self.end.records.clone();
        let record = records.get(id.0)?;
        if is_shut || !Status(record.status()).takes() {
            return None;
        }
        let wanted: usize = data.iter().map(|piece| piece.len()).sum();
        let place = record.outward();
        let mut written = 0;
        for announced in [false, true] {
            let Self { own, chunks, end, .. } = self;
            let own = own.get_mut(id.0 as usize)?;
            if own.outward.look(&place, chunks).is_err() {
                self.is_lost = true;
                return None;
            }
            for piece in data {
                let count = own.outward.write(&place, (&end.outward, chunks), piece);
                written += count;
                if count < piece.len() {
                    break;
                }
            }
            if written > 0 || wanted == 0 || announced {
                break;
            }
            record.outward_waits().announce();
            if self.chunks.free() == 0 {
                self.reclaim();
                self.starving = true;
            }
        }
        self.list(id);
        if written > 0 {
            self.note(id, record);
        }
        Some(if written == 0 && wanted > 0 { Err(Errno::AGAIN) } else { Ok(written) })
    }

    /// Bytes that were written and that the stack has not taken yet.
    pub(super) fn waiting(&mut self, id: Id) -> usize {
        let records = self.end.records.clone();
        let Some(record) = records.get(id.0) else { return 0 };
        let Self { own, chunks, .. } = self;
        let Some(own) = own.get_mut(id.0 as usize) else { return 0 };
        let _ = own.outward.look(&record.outward(), chunks);
        own.outward.len()
    }

    fn list(&mut self, id: Id) {
        let Some(own) = self.own.get_mut(id.0 as usize) else { return };
        if own.outward.holds() && !own.listed {
            own.listed = true;
            self.holding.push_back(id);
        }
    }

    /// Takes back the chunks that the worker is through with.
    pub(super) fn reclaim(&mut self) {
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
