//! Datagrams in byte FIFOs: each has a head, which says how long both are, and what else there is to say.

use std::io::IoSlice;
use std::net::SocketAddr;

use shm::fifo::{self, Arena, Broken, Chunks, Place};
use transport::moving::{Carried, Reader, Writer};

use super::call::malformed;
use crate::datagram::LONGEST;
use crate::errno::Errno;
use crate::message::{Report, Shape};

/// Bytes of a head at most.
pub(super) const HEAD: usize = 96;
/// Its first bytes: how long the data is, and how long the head.
const FRONT: usize = 8;

/// The first datagram of a FIFO.
#[derive(Debug)]
pub(super) struct Frame {
    bytes: [u8; HEAD],
    head: usize,
    data: usize,
}

impl Frame {
    /// `None`: there is none.
    pub(super) fn first(
        fifo: &fifo::Reader,
        place: &Place<'_>,
        arena: &Arena,
    ) -> Result<Option<Self>, Broken> {
        let mut bytes = [0; HEAD];
        if fifo.peek(place, arena, 0, &mut bytes)? == 0 {
            return Ok(None);
        }
        let lengths = <(u32, u32)>::take(&mut Reader::new(&bytes, 0, 0)).map_err(|_| Broken)?;
        let (data, head) = (lengths.0 as usize, lengths.1 as usize);
        // A frame is shown as a whole.
        let is_whole =
            (FRONT..=HEAD).contains(&head) && data <= LONGEST && head + data <= fifo.len(place)?;
        if is_whole { Ok(Some(Self { bytes, head, data })) } else { Err(Broken) }
    }

    /// Where its data begins.
    pub(super) fn offset(&self) -> usize {
        self.head
    }

    /// Bytes of data.
    pub(super) fn length(&self) -> usize {
        self.data
    }

    /// Bytes of both.
    pub(super) fn whole(&self) -> usize {
        self.head + self.data
    }

    /// What else the head says.
    pub(super) fn says(&self) -> Reader<'_> {
        Reader::new(self.bytes.get(FRONT..self.head).unwrap_or_default(), 0, 0)
    }
}

/// Writes one, for which there is room: [`HEAD`] and its data.
pub(super) fn write(
    fifo: &mut fifo::Writer,
    place: &Place<'_>,
    (arena, chunks): (&Arena, &mut Chunks),
    data: &[IoSlice<'_>],
    fill: impl FnOnce(&mut Writer),
) {
    let length: usize = data.iter().map(|piece| piece.len()).sum();
    let mut head = Writer::new(0);
    (length as u32, 0_u32).put(&mut head);
    fill(&mut head);
    let whole = head.bytes.len() as u32;
    if let Some(place) = head.bytes.get_mut(4..FRONT) {
        place.copy_from_slice(&whole.to_le_bytes());
    }
    fifo.put(place, (arena, chunks), &head.bytes);
    for piece in data {
        fifo.put(place, (arena, chunks), piece);
    }
    fifo.show(place);
}

/// What there is to say of a datagram beside its bytes, but for how many those are.
pub(super) fn put_shape(shape: &Shape, to: &mut Writer) {
    (shape.from, shape.to).put(to);
    ((shape.ttl, shape.service), (shape.segment_size, shape.at)).put(to);
}

pub(super) fn take_shape(from: &mut Reader<'_>, length: usize) -> Result<Shape, Errno> {
    let ends: (SocketAddr, SocketAddr) = Carried::take(from).map_err(malformed)?;
    let ((ttl, service), (segment_size, at)) = Carried::take(from).map_err(malformed)?;
    Ok(Shape { length, from: ends.0, to: ends.1, ttl, service, segment_size, at, report: None })
}

pub(super) fn put_report(report: &Report, to: &mut Writer) {
    let message = report.message.map(|(offender, kind, code)| (offender, (kind, code)));
    (report.errno.0, (message, report.info)).put(to);
}

pub(super) fn take_report(from: &mut Reader<'_>) -> Result<Report, Errno> {
    let (errno, (message, info)) = Carried::take(from).map_err(malformed)?;
    let message: Option<(_, (u8, u8))> = message;
    let message = message.map(|(offender, (kind, code))| (offender, kind, code));
    Ok(Report { errno: Errno(errno), message, info })
}
