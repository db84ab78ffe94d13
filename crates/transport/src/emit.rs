//! Writing packets.

use std::net::IpAddr;

use wire::tcp::{Fields, Flags};
use wire::{Protocol, ipv4, ipv6};
use zerocopy::IntoBytes;

use crate::ends::{Ends, to_v6};
use crate::packet::{Departure, Sink};
use crate::reason::{Counters, Reason};
use crate::segment::{FAST_OPEN, bits};
use crate::sequence::Seq;

/// TCP options as they are written, padded to whole words.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OptionBytes {
    bytes: [[u8; 8]; 5],
    length: usize,
}

impl OptionBytes {
    fn push(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if let Some(place) = self.bytes.as_flattened_mut().get_mut(self.length..end) {
            place.copy_from_slice(bytes);
            self.length = end;
        }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.bytes.as_flattened().get(..self.length).unwrap_or(&[])
    }

    pub(crate) fn mss(&mut self, mss: u16) {
        let [a, b] = mss.to_be_bytes();
        self.push(&[2, 4, a, b]);
    }

    pub(crate) fn window_scale(&mut self, shift: u8) {
        self.push(&[1, 3, 3, shift]);
    }

    pub(crate) fn sack_permitted(&mut self) {
        self.push(&[1, 1, 4, 2]);
    }

    /// Both in three words.
    pub(crate) fn sack_permitted_and_timestamps(&mut self, value: u32, echo: u32) {
        self.push(&[4, 2, 8, 10]);
        self.push(&value.to_be_bytes());
        self.push(&echo.to_be_bytes());
    }

    /// Accurate ECN: the counters' lower 24 bits.
    pub(crate) fn accurate(&mut self, kind: u8, fields: &[u32]) {
        let length = 2 + 3 * fields.len();
        self.push(&[kind, length as u8]);
        for field in fields {
            let [_, a, b, c] = field.to_be_bytes();
            self.push(&[a, b, c]);
        }
        self.push([1; 3].get(..(4 - length % 4) % 4).unwrap_or(&[]));
    }

    /// Bytes that are free.
    pub(crate) fn room(&self) -> usize {
        40 - self.length
    }

    /// Fast Open: a cookie, or none to ask for one. Gives whether there was room.
    pub(crate) fn fast_open(&mut self, cookie: &[u8]) -> bool {
        let length = 2 + cookie.len();
        if self.length + length.next_multiple_of(4) > 40 {
            return false;
        }
        self.push(&[FAST_OPEN, length as u8]);
        self.push(cookie);
        self.push([1; 3].get(..(4 - length % 4) % 4).unwrap_or(&[]));
        true
    }

    pub(crate) fn timestamps(&mut self, value: u32, echo: u32) {
        self.push(&[1, 1, 8, 10]);
        self.push(&value.to_be_bytes());
        self.push(&echo.to_be_bytes());
    }

    /// As many blocks as fit.
    pub(crate) fn sack(&mut self, blocks: &[(Seq, Seq)]) {
        let count = blocks.len().min((36 - self.length.min(36)) / 8);
        if count == 0 {
            return;
        }
        self.push(&[1, 1, 5, 2 + 8 * count as u8]);
        for (start, end) in blocks.iter().take(count) {
            self.push(&start.0.to_be_bytes());
            self.push(&end.0.to_be_bytes());
        }
    }
}

/// A segment to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Out<'a> {
    pub(crate) ends: &'a Ends,
    pub(crate) seq: Seq,
    pub(crate) ack: Seq,
    pub(crate) flags: u16,
    pub(crate) window: u16,
    pub(crate) options: &'a [u8],
    pub(crate) ttl: u8,
    /// DSCP and ECN.
    pub(crate) service: u8,
    pub(crate) dont_fragment: bool,
    /// Bytes of data.
    pub(crate) data: usize,
    /// Bytes of data of each segment to cut it into; 0: it is one.
    pub(crate) segment_size: u16,
}

/// Writes a packet, its data by `fill`. Returns whether there was a buffer.
pub(crate) fn emit(
    sink: &mut dyn Sink,
    counters: &mut Counters,
    out: &Out<'_>,
    fill: impl FnOnce(&mut [u8]),
) -> bool {
    let ip = out.ends.ip_header();
    let header_length = ip + wire::tcp::HEADER_LENGTH + out.options.len();
    let length = header_length + out.data;
    let offload = sink.offloads().checksum || out.segment_size != 0;
    let Some(buffer) = sink.buffer(length) else {
        counters.drop(Reason::SinkFull);
        return false;
    };
    let Some((ip_bytes, rest)) = buffer.split_at_mut_checked(ip) else { return false };
    write_ip(ip_bytes, out, length);
    let Some((header, rest)) = rest.split_at_mut_checked(wire::tcp::HEADER_LENGTH) else {
        return false;
    };
    let fields = Fields {
        source_port: out.ends.local.port(),
        destination_port: out.ends.remote.port(),
        sequence: out.seq.0,
        acknowledgment: out.ack.0,
        flags: Flags(out.flags as u8),
        window: out.window,
    };
    let mut tcp = fields.header(out.options.len());
    tcp.set_accurate_ecn(out.flags & bits::AE != 0);
    let Some((options, data)) = rest.split_at_mut_checked(out.options.len()) else { return false };
    options.copy_from_slice(out.options);
    fill(data);
    let pseudo = out.ends.pseudo(length - ip);
    let checksum = if offload {
        // The port adds the rest to the pseudo header's sum.
        !pseudo.finish()
    } else {
        pseudo.bytes(tcp.as_bytes()).bytes(options).bytes(data).finish()
    };
    tcp.set_checksum(checksum);
    header.copy_from_slice(tcp.as_bytes());
    sink.send(Departure {
        length,
        segment_size: out.segment_size,
        header_length: header_length as u16,
    });
    let size = usize::from(out.segment_size.max(1));
    let segments = if out.segment_size == 0 { 1 } else { out.data.div_ceil(size) };
    counters.segments_out += segments as u64;
    true
}

fn write_ip(bytes: &mut [u8], out: &Out<'_>, length: usize) {
    match (out.ends.local.ip(), out.ends.remote.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
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
            bytes.copy_from_slice(fields.header(length as u16).as_bytes());
        }
        (source, destination) => {
            let fields = ipv6::Fields {
                source: to_v6(source),
                destination: to_v6(destination),
                next_header: Protocol::TCP,
                hop_limit: out.ttl,
                traffic_class: out.service,
                flow_label: 0,
            };
            let payload = (length - ipv6::HEADER_LENGTH) as u16;
            bytes.copy_from_slice(fields.header(payload).as_bytes());
        }
    }
}

/// Answers a segment that belongs to nothing (RFC 9293 3.10.7.1).
pub(crate) fn reset_for(
    sink: &mut dyn Sink,
    counters: &mut Counters,
    ends: &Ends,
    segment: &crate::segment::Segment<'_>,
) {
    let (seq, ack, flags) = if segment.has(bits::ACK) {
        (segment.ack, Seq(0), bits::RST)
    } else {
        (Seq(0), segment.end(), bits::RST | bits::ACK)
    };
    let out = Out {
        ends,
        seq,
        ack,
        flags,
        window: 0,
        options: &[],
        ttl: 64,
        service: 0,
        dont_fragment: true,
        data: 0,
        segment_size: 0,
    };
    if emit(sink, counters, &out, |_| {}) {
        counters.resets_out += 1;
    }
}
