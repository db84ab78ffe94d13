//! Connections that leave a stack, and come to it, in pieces that fit a message.

use transport::Ends;
use transport::moving::{Carried, Reader, Writer};

use super::PIECE;
use super::call::{Verb, answer, bare, malformed, plain, put_ends, take_ends};
use super::remote::Remote;
use super::served::Served;
use crate::errno::Errno;
use crate::mask::Mask;
use crate::moving::Parcel;
use crate::session::Id;

/// Bytes of connections that travel at most: as many as the daemon takes from a process in one file.
const LONGEST: usize = 16 << 20;
/// How long a connection that has left gets no answer here, while packets for it still come: ns.
const HELD: u64 = 2_000_000_000;

impl Served {
    /// Connections that leave: how many bytes there are to be fetched.
    pub(super) fn give(&mut self, parcels: Vec<Parcel>) -> Vec<u8> {
        let mut to = Writer::new(0);
        let mut count = 0;
        for parcel in parcels {
            // The others end here.
            if to.bytes.len() + parcel.bytes.len() > LONGEST {
                break;
            }
            // At once: until the process says so, packets would be answered by a reset.
            if let Some(ends) = &parcel.ends {
                self.sessions.hold(ends, self.now + HELD);
            }
            put_ends(parcel.ends.as_ref(), &mut to);
            to.block(&parcel.bytes);
            count += 1;
        }
        let length = to.bytes.len() as u32;
        self.travelling.leaving = to.bytes;
        plain(Ok((count as u32, length)))
    }

    pub(super) fn give_piece(&mut self, from: &mut Reader<'_>) -> Vec<u8> {
        let at = u32::take(from).map_err(malformed);
        let piece = at.map(|at| {
            let rest = self.travelling.leaving.get(at as usize..).unwrap_or_default();
            rest.get(..rest.len().min(PIECE)).unwrap_or_default()
        });
        let is_last = piece.is_ok_and(|piece| piece.len() < PIECE);
        let bytes = answer(piece, |piece, to| to.bytes.extend_from_slice(piece));
        if is_last {
            self.travelling.leaving = Vec::new();
        }
        bytes
    }

    pub(super) fn take_piece(&mut self, from: &mut Reader<'_>) -> Result<(), Errno> {
        let is_first = bool::take(from).map_err(malformed)?;
        let piece = from.slice(from.left()).map_err(malformed)?;
        let coming = &mut self.travelling.coming;
        if is_first {
            coming.clear();
        }
        if coming.len() + piece.len() > LONGEST {
            return Err(Errno::NOBUFS);
        }
        coming.extend_from_slice(piece);
        Ok(())
    }

    /// A connection leaves, with what lies in its FIFOs.
    pub(super) fn export(&mut self, id: Id) -> Vec<u8> {
        match self.try_export(id) {
            Ok(parcel) => self.give(vec![parcel]),
            Err(error) => bare(Err(error)),
        }
    }

    fn try_export(&mut self, id: Id) -> Result<Parcel, Errno> {
        if self.flow(id).flows {
            self.attend(id, Mask::NONE);
            let unread = self.unread_bytes(id);
            let unsent = self.rest(id);
            self.sessions.take_back(id, &unread, &unsent);
            if let Some(how) = self.flow(id).ending.take() {
                // A connection that is over has nothing to end.
                let _ = self.sessions.shutdown(id, how);
            }
        }
        let parcel = self.sessions.export(id, self.now)?;
        self.end_flow(id);
        Ok(parcel)
    }

    pub(super) fn export_waiting(
        &mut self,
        id: Id,
        from: &mut Reader<'_>,
    ) -> Result<Vec<u8>, Errno> {
        let most = u32::take(from).map_err(malformed)?;
        let parcels = self.sessions.export_waiting(id, self.now, most as usize);
        Ok(self.give(parcels))
    }

    /// A connection comes to a session of its own. Gives its ends, what the process goes by itself, and the directions that
    /// were ended.
    pub(super) fn import(&mut self, id: Id, from: &mut Reader<'_>) -> Result<Vec<u8>, Errno> {
        let age = u64::take(from).map_err(malformed)?;
        let bytes = std::mem::take(&mut self.travelling.coming);
        let ends = self.sessions.import(id, self.now, age, &bytes).map_err(malformed)?;
        self.begin(id, self.sessions.was_established(id));
        let (kept, shut) = (self.kept(id), self.sessions.has_shut(id));
        Ok(answer(Ok(()), |(), to| {
            put_ends(ends.as_ref(), to);
            kept.put(to);
            shut.put(to);
        }))
    }

    pub(super) fn import_unheld(&mut self, from: &mut Reader<'_>) -> Result<(), Errno> {
        let age = u64::take(from).map_err(malformed)?;
        let bytes = std::mem::take(&mut self.travelling.coming);
        self.sessions.import_unheld(self.now, age, &bytes).map(drop).map_err(malformed)
    }
}

/// The calls of [`Sessions`](crate::Sessions), with its errors, as in `calls`.
#[expect(clippy::missing_errors_doc, reason = "as those of `Sessions`")]
impl Remote {
    /// Takes out all connections that wait at a socket that listens, which admits nobody from then on.
    #[must_use]
    pub fn export_unaccepted(&mut self, id: Id) -> Vec<Parcel> {
        self.fetch(Verb::ExportUnaccepted, id, |_| {}).unwrap_or_default()
    }

    /// Takes out those that have waited longest there, so many at most.
    #[must_use]
    pub fn export_waiting(&mut self, id: Id, most: usize) -> Vec<Parcel> {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        self.fetch(Verb::ExportWaiting, id, |to| most.put(to)).unwrap_or_default()
    }

    /// Connections that leave.
    fn fetch(
        &mut self,
        verb: Verb,
        id: Id,
        fill: impl FnOnce(&mut Writer),
    ) -> Result<Vec<Parcel>, Errno> {
        let (count, length): (u32, u32) = self.call(verb, id, fill)?;
        let mut bytes = Vec::new();
        while bytes.len() < length as usize {
            let at = bytes.len() as u32;
            let mut from = self.ask(Verb::Get, Id(0), |to| at.put(to))?;
            let piece = from.slice(from.left()).map_err(malformed)?;
            if piece.is_empty() {
                return Err(Errno::NOBUFS);
            }
            bytes.extend_from_slice(piece);
        }
        let mut from = Reader::new(&bytes, 0, 0);
        let mut parcel = || {
            let ends = take_ends(&mut from)?;
            let bytes = from.block().map_err(malformed)?.to_vec();
            Ok(Parcel { ends, bytes })
        };
        (0..count).map(|_| parcel()).collect()
    }

    /// Takes a stream out, with its connection and all data that was not read or sent yet.
    pub fn export(&mut self, id: Id) -> Result<Parcel, Errno> {
        self.own(id)?;
        let parcel = self.fetch(Verb::Export, id, |_| {})?.pop();
        self.end(id);
        parcel.ok_or(Errno::NOBUFS)
    }

    /// Takes a stream in at a place that is free. `age`: ns since it was exported. Gives the ends of its connection.
    pub fn import(&mut self, id: Id, age: u64, bytes: &[u8]) -> Result<Option<Ends>, Errno> {
        self.bring(bytes)?;
        let mut from = self.ask(Verb::Import, id, |to| age.put(to))?;
        let ends = take_ends(&mut from)?;
        let (kept, shut) = Carried::take(&mut from).map_err(malformed)?;
        self.begin(id);
        let own = self.own(id)?;
        (own.kept, own.shut) = (kept, shut);
        Ok(ends)
    }

    /// Takes in a connection that no session has. `age`: ns since it was exported.
    pub fn import_unheld(&mut self, age: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.bring(bytes)?;
        self.tell(Verb::ImportUnheld, Id(0), |to| age.put(to))
    }

    /// Brings a connection that comes to the worker, in pieces.
    fn bring(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        for (number, piece) in bytes.chunks(PIECE).enumerate() {
            self.tell(Verb::Put, Id(0), |to| {
                (number == 0).put(to);
                to.bytes.extend_from_slice(piece);
            })?;
        }
        Ok(())
    }
}
