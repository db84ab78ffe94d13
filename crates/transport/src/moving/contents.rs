//! What is in the FIFOs, as bytes.

use super::error::ExportError;
use crate::carried::Carried;
use crate::carried::ImportError;
use crate::carried::{Reader, Writer};
use crate::fifo::{ByteFifo, Pair};
use crate::sequence::Seq;
use crate::tcp::gaps::Gaps;

/// FIFOs larger than this are not asked for: bytes.
const LARGEST: u32 = 1 << 30;

/// Data of both directions.
#[derive(Debug)]
pub(crate) struct Data<'a> {
    /// Bytes that the FIFOs could hold: receive, transmit.
    pub(crate) capacities: (u32, u32),
    /// Received, not read yet.
    readable: &'a [u8],
    /// Received out of order: how far beyond what is readable.
    beyond: Vec<(u32, &'a [u8])>,
    /// Written, not acknowledged yet.
    pub(crate) queued: &'a [u8],
}

/// Writes all that the FIFOs hold; what arrived out of order by `gaps`, from `next` on.
pub(crate) fn put<F: ByteFifo>(
    pair: &Pair<F>,
    gaps: &Gaps,
    next: Seq,
    to: &mut Writer,
) -> Result<(), ExportError> {
    (pair.receive.capacity().min(LARGEST as usize) as u32).put(to);
    (pair.transmit.capacity().min(LARGEST as usize) as u32).put(to);
    let whole = |copied: usize, block: Vec<u8>, to: &mut Writer| {
        to.block(&block);
        if copied == block.len() { Ok(()) } else { Err(ExportError::Fifo) }
    };
    let mut readable = room(&pair.receive)?;
    whole(pair.receive.peek(0, &mut readable), readable, to)?;
    for (start, end) in gaps.pieces() {
        let mut piece = vec![0; end.since(start) as usize];
        whole(pair.receive.peek_beyond(start.since(next) as usize, &mut piece), piece, to)?;
    }
    let mut queued = room(&pair.transmit)?;
    whole(pair.transmit.peek(0, &mut queued), queued, to)
}

/// Memory for what can be read, as long as the FIFO's word is possible.
fn room<F: ByteFifo>(fifo: &F) -> Result<Vec<u8>, ExportError> {
    match fifo.len() {
        length if length > fifo.capacity().min(LARGEST as usize) => Err(ExportError::Fifo),
        length => Ok(vec![0; length]),
    }
}

/// Reads them. Memory for the data is asked for later.
pub(crate) fn take<'a>(
    from: &mut Reader<'a>,
    gaps: &Gaps,
    next: Seq,
) -> Result<Data<'a>, ImportError> {
    from.field = "capacities";
    let capacities = <(u32, u32)>::take(from)?;
    if capacities.0.max(capacities.1) > LARGEST {
        return from.refuse();
    }
    from.field = "readable";
    let readable = from.block()?;
    from.field = "beyond";
    let mut beyond = Vec::new();
    for (start, end) in gaps.pieces() {
        let piece = from.block()?;
        if piece.len() != end.since(start) as usize {
            return from.refuse();
        }
        beyond.push((start.since(next), piece));
    }
    from.field = "queued";
    Ok(Data { capacities, readable, beyond, queued: from.block()? })
}

impl Data<'_> {
    /// Bytes that were received and not read yet.
    pub(crate) fn readable(&self) -> usize {
        self.readable.len()
    }

    /// Puts the data into empty FIFOs. Gives whether all of it found room.
    pub(crate) fn fill<F: ByteFifo>(&self, pair: &mut Pair<F>) -> bool {
        let receive = &mut pair.receive;
        receive.append(self.readable) == self.readable.len()
            && self
                .beyond
                .iter()
                .all(|(at, piece)| receive.write_at(*at as usize, piece) == piece.len())
            && pair.transmit.append(self.queued) == self.queued.len()
    }
}
