//! Writing packets.

use wire::checksum::Sum;
use wire::flow::{FiveTuple, FiveTuple4, FiveTuple6};
use wire::tcp::{Fields, Flags, HEADER_LENGTH};
use wire::{Protocol, ipv4, ipv6};

use crate::ends::Ends;
use crate::fifo::{ByteFifo, Ring};
use crate::packet::{Departure, Sink};
use crate::reason::Reason;
use crate::segment::bits;
use crate::sequence::Seq;
use crate::shared::Shared;

pub(crate) use options::OptionBytes;

mod options;

/// A segment to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Out<'a> {
    /// Its connection, as segments from the peer have it.
    pub(crate) key: &'a FiveTuple,
    /// The path that it leaves by; 0: the network.
    pub(crate) path: u16,
    pub(crate) seq: Seq,
    pub(crate) ack: Seq,
    pub(crate) flags: u16,
    pub(crate) window: u16,
    /// Urgent pointer, with [`bits::URG`].
    pub(crate) urgent: u16,
    pub(crate) options: &'a OptionBytes,
    pub(crate) ttl: u8,
    /// DSCP and ECN.
    pub(crate) service: u8,
    pub(crate) dont_fragment: bool,
    /// Bytes of data.
    pub(crate) data: usize,
    /// Bytes of data of each segment to cut it into; 0: it is one.
    pub(crate) segment_size: u16,
}

/// A FIFO with data to send, and where in it the data begins.
pub(crate) type Source<'a, F> = Option<(&'a F, usize)>;

/// Writes a packet. Returns whether there was a buffer, and a segment was still allowed.
pub(crate) fn emit<F: ByteFifo, S: Sink + ?Sized>(
    sink: &mut S,
    shared: &mut Shared,
    out: &Out<'_>,
    source: Source<'_, F>,
) -> bool {
    emit_here(sink, shared, out, source)
}

/// The same, compiled for what its caller knows of the packet.
#[inline(always)]
pub(crate) fn emit_here<F: ByteFifo, S: Sink + ?Sized>(
    sink: &mut S,
    shared: &mut Shared,
    out: &Out<'_>,
    source: Source<'_, F>,
) -> bool {
    if shared.allowance == 0 {
        return false;
    }
    let ip = match out.key {
        FiveTuple::V4(_) => ipv4::HEADER_LENGTH,
        FiveTuple::V6(_) => ipv6::HEADER_LENGTH,
    };
    let header_length = ip + HEADER_LENGTH + out.options.len();
    let length = header_length + out.data;
    // What a port cuts, it also sums. Other paths than the network are memory.
    let sums = !shared.offloads.checksum && out.segment_size == 0 && out.path == 0;
    let buffer = match out.path {
        0 => sink.buffer(length),
        path => sink.buffer_by(path, length),
    };
    let Some((header, body)) = buffer.and_then(|buffer| buffer.split_at_mut_checked(header_length))
    else {
        shared.counters.drop(Reason::SinkFull);
        return false;
    };
    let filled = body.len().min(out.data);
    let mut sum = match body.get_mut(..filled) {
        Some(body) => fill(source, sums, body),
        None => Sum::new(),
    };
    let mut header = header;
    if filled < out.data {
        let rest = fill_chain(sink, source, sums, (filled, out.data));
        let whole = rest.and_then(|rest| Some((rest, sink.head()?.get_mut(..header_length)?)));
        let Some((rest, head)) = whole else {
            shared.counters.drop(Reason::SinkFull);
            return false;
        };
        sum = sum.join(rest, filled);
        header = head;
    }
    write_headers(header, out, length, sums.then_some(sum));
    sink.send(Departure {
        length,
        segment_size: out.segment_size,
        header_length: header_length as u16,
    });
    let segments = match out.segment_size {
        0 => 1,
        size => out.data.div_ceil(usize::from(size)),
    };
    shared.counters.segments_out += segments as u64;
    shared.allowance = shared.allowance.saturating_sub(segments);
    true
}

/// Copies data from a FIFO, and sums it if asked to.
#[inline(always)]
fn fill<F: ByteFifo>(source: Source<'_, F>, sums: bool, target: &mut [u8]) -> Sum {
    if target.is_empty() {
        return Sum::new();
    }
    let (copied, sum) = match source {
        Some((fifo, offset)) if sums => fifo.peek_summed(offset, target),
        Some((fifo, offset)) => (fifo.peek(offset, target), Sum::new()),
        None => (0, Sum::new()),
    };
    // A FIFO that its other side made shorter: zeroes stand for what is missing, and add nothing.
    if copied < target.len() {
        if let Some(rest) = target.get_mut(copied..) {
            rest.fill(0);
        }
    }
    sum
}

/// Fills further pieces of a packet with data from `filled` on, `total` bytes in all. Gives their sum, `None`
/// when the sink has no more pieces.
#[cold]
fn fill_chain<F: ByteFifo, S: Sink + ?Sized>(
    sink: &mut S,
    source: Source<'_, F>,
    sums: bool,
    (filled, total): (usize, usize),
) -> Option<Sum> {
    let (mut at, mut sum) = (filled, Sum::new());
    while at < total {
        let piece = sink.extend(total - at).filter(|piece| !piece.is_empty())?;
        let length = piece.len().min(total - at);
        let source = source.map(|(fifo, offset)| (fifo, offset + at));
        let part = fill(source, sums, piece.get_mut(..length)?);
        sum = sum.join(part, at - filled);
        at += length;
    }
    Some(sum)
}

/// Writes both headers and the options; `data`: sum of the data, `None` when the port does the rest.
#[inline(always)]
fn write_headers(bytes: &mut [u8], out: &Out<'_>, length: usize, data: Option<Sum>) {
    let (ports, pseudo, tcp) = match out.key {
        FiveTuple::V4(flow) => {
            let Some((ip, tcp)) = bytes.split_first_chunk_mut() else { return };
            ((flow.destination_port(), flow.source_port()), write_v4(ip, flow, out, length), tcp)
        }
        FiveTuple::V6(flow) => {
            let Some((ip, tcp)) = bytes.split_first_chunk_mut() else { return };
            ((flow.destination_port(), flow.source_port()), write_v6(ip, flow, out, length), tcp)
        }
    };
    let fields = Fields {
        source_port: ports.0,
        destination_port: ports.1,
        sequence: out.seq.0,
        acknowledgment: out.ack.0,
        flags: Flags(out.flags as u8),
        window: out.window,
    };
    let mut header = fields.header(out.options.len());
    header.set_accurate_ecn(out.flags & bits::AE != 0);
    if out.urgent != 0 {
        header.set_urgent(out.urgent);
    }
    let Some((place, options)) = tcp.split_first_chunk_mut::<HEADER_LENGTH>() else { return };
    let options_sum = write_options(options, out.options);
    header.set_checksum(match data {
        // Headers and options are whole words, so the data begins at an even place.
        Some(data) => pseudo.join(header.sum(), 0).join(options_sum, 0).join(data, 0).finish(),
        // The port adds the rest to the pseudo header's sum.
        None => !pseudo.finish(),
    });
    *place = zerocopy::transmute!(header);
}

/// Gives their sum.
#[inline(always)]
fn write_options(place: &mut [u8], options: &OptionBytes) -> Sum {
    let (mut place, mut sum) = (place, Sum::new());
    if let Some((value, echo)) = options.stamps() {
        // RFC 7323 appendix A: the layout that everybody looks for first.
        const START: u32 = u32::from_be_bytes([1, 1, 8, 10]);
        let Some((stamps, rest)) = place.split_first_chunk_mut::<12>() else { return sum };
        for (word, number) in stamps.chunks_exact_mut(4).zip([START, value, echo]) {
            word.copy_from_slice(&number.to_be_bytes());
        }
        sum = sum.u32(START).u32(value).u32(echo);
        place = rest;
    }
    let rest = options.rest();
    if rest.is_empty() { sum } else { sum.copy(rest, place) }
}

/// Gives the pseudo header's sum.
#[inline(always)]
fn write_v4(
    place: &mut [u8; ipv4::HEADER_LENGTH],
    flow: &FiveTuple4,
    out: &Out<'_>,
    length: usize,
) -> Sum {
    let (source, destination) = (flow.destination(), flow.source());
    let fields = ipv4::Fields {
        source,
        destination,
        protocol: Protocol::TCP,
        ttl: out.ttl,
        service: out.service,
        // RFC 6864 4.1: any value does where nobody may fragment.
        identification: if out.dont_fragment { 0 } else { out.seq.0 as u16 },
        dont_fragment: out.dont_fragment,
    };
    *place = zerocopy::transmute!(fields.header(length as u16));
    let segment = (length - ipv4::HEADER_LENGTH) as u16;
    Sum::new().pseudo_v4(source, destination, Protocol::TCP, segment)
}

/// The same.
#[inline]
fn write_v6(
    place: &mut [u8; ipv6::HEADER_LENGTH],
    flow: &FiveTuple6,
    out: &Out<'_>,
    length: usize,
) -> Sum {
    let (source, destination) = (flow.destination(), flow.source());
    let fields = ipv6::Fields {
        source,
        destination,
        next_header: Protocol::TCP,
        hop_limit: out.ttl,
        traffic_class: out.service,
        flow_label: 0,
    };
    let segment = length - ipv6::HEADER_LENGTH;
    *place = zerocopy::transmute!(fields.header(segment as u16));
    Sum::new().pseudo_v6(source, destination, Protocol::TCP, segment as u32)
}

/// Answers a segment that belongs to nothing (RFC 9293 3.10.7.1). Gives whether there was room.
pub(crate) fn reset_for<S: Sink + ?Sized>(
    sink: &mut S,
    shared: &mut Shared,
    ends: &Ends,
    segment: &crate::segment::Segment<'_>,
) -> bool {
    let (seq, ack, flags) = if segment.has(bits::ACK) {
        (segment.ack, Seq(0), bits::RST)
    } else {
        (Seq(0), segment.end(), bits::RST | bits::ACK)
    };
    let out = Out {
        key: &ends.key(),
        path: shared.path,
        seq,
        ack,
        flags,
        window: 0,
        urgent: 0,
        options: &OptionBytes::default(),
        ttl: 64,
        service: 0,
        dont_fragment: true,
        data: 0,
        segment_size: 0,
    };
    let left = emit::<Ring, _>(sink, shared, &out, None);
    if left {
        shared.counters.resets_out += 1;
    }
    left
}
