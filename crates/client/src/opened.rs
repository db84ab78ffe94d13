//! What the daemon hands over, checked before anything of it is used.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use shm::attach::{BufferPlace, ChannelPlace, Direction, Opened, Reply, Request, RingPlace};
use shm::{Buffers, Consumer, Doorbell, Layout, Producer, Region, Segment, Trusting};

use crate::channel::Channel;
use crate::connection::Connection;
use crate::lease::Lease;
use crate::pair::Pair;
use crate::{Error, Options};

/// Queues that the daemon has opened. They are closed when the last channel is dropped.
#[derive(Debug)]
pub struct Queues {
    /// Their number, as in `millrace show clients`.
    pub number: u32,
    /// As many as were asked for; each can go to a thread of its own.
    pub channels: Vec<Channel>,
}

/// A doorbell that the daemon has handed over.
pub(crate) fn doorbell(file: OwnedFd) -> Result<Doorbell, Error> {
    Doorbell::from_file(file).map_err(|source| Error::System { what: "a doorbell", source })
}

pub(crate) fn nonsense(what: impl Into<String>) -> Error {
    Error::Nonsense(what.into())
}

/// Maps the segment and sets up each channel.
pub(crate) fn unpack(
    connection: &Arc<Connection>,
    opened: Opened,
    files: Vec<OwnedFd>,
    options: &Options,
) -> Result<Queues, Error> {
    // From here on an error gives the queues back.
    let lease = Arc::new(Lease::new(connection, opened.queues));
    let workers = usize::from(opened.workers);
    check_counts(&opened, files.len(), usize::from(options.channels))?;
    check_apart(&opened)?;
    let mut files = files.into_iter();
    let segment = files.next().ok_or_else(|| nonsense("no segment"))?;
    let segment = Arc::new(Segment::from_file(segment)?);
    let mut doorbells = files.map(doorbell).collect::<Result<Vec<_>, _>>()?;
    let theirs: Vec<_> =
        doorbells.split_off(opened.channels.len()).into_iter().map(Arc::new).collect();
    let mut buffers = opened.buffers.map(|place| buffers(&segment, &place)).transpose()?;
    let mut channels = Vec::with_capacity(opened.channels.len());
    for (index, (place, bell)) in opened.channels.iter().zip(doorbells).enumerate() {
        let mut pairs = Vec::with_capacity(workers);
        for (worker, theirs) in theirs.iter().enumerate() {
            let at = |direction| place.ring(worker, direction);
            let (Some(receive), Some(transmit)) = (at(Direction::Receive), at(Direction::Transmit))
            else {
                return Err(nonsense("a channel without rings"));
            };
            let (receive, transmit) = rings(&segment, receive, transmit)?;
            // There is one pair when there are buffers, as `check_counts` saw.
            pairs.push(Pair::new(receive, transmit, Arc::clone(theirs), buffers.take()));
        }
        channels.push(Channel::new(index, pairs, bell, Arc::clone(&lease))?);
    }
    match connection.ask(&Request::Start(opened.queues))?.0 {
        Reply::Started(_) => Ok(Queues { number: opened.queues, channels }),
        _ => Err(nonsense("queues do not start")),
    }
}

fn check_counts(opened: &Opened, files: usize, channels: usize) -> Result<(), Error> {
    let workers = usize::from(opened.workers);
    if opened.channels.len() != channels {
        let text = format!("{} channels instead of {channels}", opened.channels.len());
        return Err(nonsense(text));
    }
    if workers == 0 || opened.channels.iter().any(|channel| channel.rings.len() != workers) {
        return Err(nonsense(format!(
            "a channel has not a pair of rings for each of {workers} workers"
        )));
    }
    if opened.buffers.is_some() && (channels, workers) != (1, 1) {
        return Err(nonsense("buffers of a device for more than one pair of rings"));
    }
    let expected = 1 + channels + workers;
    if files != expected {
        return Err(nonsense(format!("{files} descriptors instead of {expected}")));
    }
    Ok(())
}

/// Where a part of a segment begins and ends: bytes.
pub(crate) type Span = (u64, u64);

/// The rings of a client, and its buffers.
fn check_apart(opened: &Opened) -> Result<(), Error> {
    let mut spans = ring_spans(&opened.channels)?;
    if let Some(BufferPlace { offset, count, size }) = opened.buffers {
        spans.push(span(offset, u64::from(count) * u64::from(size))?);
    }
    check_spans(spans)
}

/// The parts in which the rings of channels lie.
pub(crate) fn ring_spans(channels: &[ChannelPlace]) -> Result<Vec<Span>, Error> {
    let rings = channels.iter().flat_map(|channel| channel.rings.iter().flatten());
    let part = |place: &RingPlace| -> Result<Span, Error> {
        span(place.offset, place.layout()?.bytes() as u64)
    };
    rings.map(part).collect()
}

pub(crate) fn span(offset: u64, length: u64) -> Result<Span, Error> {
    let end = offset.checked_add(length);
    let beyond = || nonsense(format!("{length} bytes at {offset} end beyond all memory"));
    end.map(|end| (offset, end)).ok_or_else(beyond)
}

/// Two rings in the same memory would be two owners of one packet.
pub(crate) fn check_spans(mut spans: Vec<Span>) -> Result<(), Error> {
    spans.sort_unstable();
    let overlap = spans.windows(2).any(|pair| matches!(pair, [(_, end), (next, _)] if next < end));
    if overlap {
        Err(nonsense("two rings, or a ring and something else, in the same memory"))
    } else {
        Ok(())
    }
}

fn outside(place: &RingPlace) -> Error {
    nonsense(format!("a ring at {} does not lie within the segment", place.offset))
}

fn region(segment: &Arc<Segment>, place: &RingPlace) -> Result<(Region, Layout), Error> {
    let layout = place.layout()?;
    let offset = usize::try_from(place.offset).map_err(|_| outside(place))?;
    let region = segment.region(offset, layout.bytes()).ok_or_else(|| outside(place))?;
    Ok((region, layout))
}

/// The device's buffers.
fn buffers(segment: &Arc<Segment>, place: &BufferPlace) -> Result<Buffers, Error> {
    let BufferPlace { offset, count, size } = *place;
    let outside = || nonsense(format!("buffers at {offset} do not lie within the segment"));
    let length = u64::from(count) * u64::from(size);
    let (Ok(start), Ok(length)) = (usize::try_from(offset), usize::try_from(length)) else {
        return Err(outside());
    };
    let region = segment.region(start, length).ok_or_else(outside)?;
    // SAFETY: the other side is the daemon, which a client trusts to keep to the protocol (docs/build.md); no ring
    // overlaps, as `check_apart` saw. `Pair` has them alone: it accepts what the daemon refers to, and whoever sees a
    // packet's bytes borrows it, so that nothing is sent or released meanwhile.
    let buffers = unsafe { Buffers::trust(region, count, size) };
    buffers.ok_or_else(outside)
}

pub(crate) fn rings(
    segment: &Arc<Segment>,
    receive: RingPlace,
    transmit: RingPlace,
) -> Result<(Trusting, Producer), Error> {
    let (memory, layout) = region(segment, &receive)?;
    let consumer = Consumer::new(memory, layout)?;
    // SAFETY: the producer is the daemon, which a client trusts to keep to the protocol (docs/build.md); rings do
    // not overlap, as `check_spans` saw, and this is the ring's only consumer.
    let receive = unsafe { consumer.trust() };
    let (memory, layout) = region(segment, &transmit)?;
    let transmit = Producer::new(memory, layout)?;
    Ok((receive, transmit))
}
