//! Connections that leave a stack, and come to it, in pieces that fit a message.

use transport::moving::{Carried, Reader, Writer};

use super::PIECE;
use super::call::{answer, malformed, plain, put_ends};
use super::served::Served;
use crate::errno::Errno;
use crate::moving::Parcel;

/// Bytes of connections that travel at most: as many as the daemon takes from a process in one file.
const LONGEST: usize = 16 << 20;

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
        answer(piece, |piece, to| to.bytes.extend_from_slice(piece))
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

    pub(super) fn import_unheld(&mut self, from: &mut Reader<'_>) -> Result<(), Errno> {
        let age = u64::take(from).map_err(malformed)?;
        let bytes = std::mem::take(&mut self.travelling.coming);
        self.sessions.import_unheld(self.now, age, &bytes).map(drop).map_err(malformed)
    }
}
