//! A received segment, taken apart.

use wire::checksum::Sum;
use wire::flow::{FiveTuple, FiveTuple4, FiveTuple6};
use wire::tcp::{self, Option as TcpOption};
use wire::{Protocol, ipv4, ipv6};

use crate::fast_open::{Cookie, Told};
use crate::packet::Packet;
use crate::reason::Reason;
use crate::sequence::Seq;

/// The control bits.
pub(crate) mod bits {
    pub(crate) const FIN: u16 = 0x01;
    pub(crate) const SYN: u16 = 0x02;
    pub(crate) const RST: u16 = 0x04;
    pub(crate) const PSH: u16 = 0x08;
    pub(crate) const ACK: u16 = 0x10;
    pub(crate) const URG: u16 = 0x20;
    pub(crate) const ECE: u16 = 0x40;
    pub(crate) const CWR: u16 = 0x80;
    /// Accurate ECN (RFC 9768): the bit before the others.
    pub(crate) const AE: u16 = 0x100;
    /// On no wire: it came with a SYN, which was taken before.
    pub(crate) const WITH_SYN: u16 = 0x200;
    /// On no wire: its window is a SYN's, which is never scaled (RFC 7323 2.2).
    pub(crate) const UNSCALED: u16 = 0x400;
}

/// Kind of the Fast Open option (RFC 7413 4.1.1).
pub(crate) const FAST_OPEN: u8 = 34;
/// Kinds of the accurate ECN options (RFC 9768 3.2.3).
pub(crate) const ACCURATE_0: u8 = 172;
pub(crate) const ACCURATE_1: u8 = 174;

/// Byte counters of an accurate ECN option, 24 bits each; those that it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Echo {
    pub(crate) e0b: Option<u32>,
    pub(crate) ceb: Option<u32>,
    pub(crate) e1b: Option<u32>,
}

/// Congestion experienced: the IP header's two bits (RFC 3168 5).
pub(crate) const CONGESTION_EXPERIENCED: u8 = 3;

/// What a segment says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment<'a> {
    pub(crate) seq: Seq,
    pub(crate) ack: Seq,
    pub(crate) flags: u16,
    /// As written, before scaling.
    pub(crate) window: u16,
    pub(crate) urgent: u16,
    pub(crate) timestamps: Option<(u32, u32)>,
    pub(crate) mss: Option<u16>,
    pub(crate) window_scale: Option<u8>,
    pub(crate) sack_permitted: bool,
    /// SACK blocks that the options hold.
    pub(crate) sack_count: u8,
    pub(crate) ecn: u8,
    /// All options, for what only some connections ask about.
    pub(crate) options: &'a [u8],
    pub(crate) data: &'a [u8],
}

impl Segment<'_> {
    /// The counters of an accurate ECN option (RFC 9768 3.2.3): whole fields, whatever the length.
    pub(crate) fn accurate_option(&self) -> Option<Echo> {
        let mut options = tcp::Options::new(self.options).map_while(Result::ok);
        options.find_map(|option| {
            let TcpOption::Other { kind: kind @ (ACCURATE_0 | ACCURATE_1), data } = option else {
                return None;
            };
            let mut fields = data.chunks_exact(3).map(|field| match *field {
                [a, b, c] => u32::from_be_bytes([0, a, b, c]),
                _ => 0,
            });
            let [first, ceb, last] = [fields.next(), fields.next(), fields.next()];
            let (e0b, e1b) = if kind == ACCURATE_0 { (first, last) } else { (last, first) };
            Some(Echo { e0b, ceb, e1b })
        })
    }

    /// What it says of Fast Open (RFC 7413 4.1.1).
    pub(crate) fn fast_open(&self) -> Told {
        let mut options = tcp::Options::new(self.options).map_while(Result::ok);
        let told = options.find_map(|option| match option {
            TcpOption::Other { kind: FAST_OPEN, data } => Some(data),
            _ => None,
        });
        match told {
            None => Told::Nothing,
            Some([]) => Told::Request,
            Some(bytes) => Cookie::new(bytes).map_or(Told::Nothing, Told::Cookie),
        }
    }

    #[inline(always)]
    pub(crate) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Sequence numbers that it takes: data, SYN and FIN.
    #[inline(always)]
    pub(crate) fn length(&self) -> u32 {
        let marks = u32::from(self.has(bits::SYN)) + u32::from(self.has(bits::FIN));
        self.data.len() as u32 + marks
    }

    /// Behind the last sequence number.
    #[inline(always)]
    pub(crate) fn end(&self) -> Seq {
        self.seq.add(self.length())
    }

    /// The SACK blocks, as many as are counted: the last option of the kind has them.
    pub(crate) fn sack_blocks(&self) -> [(Seq, Seq); 4] {
        let mut found = [(Seq(0), Seq(0)); 4];
        for option in tcp::Options::new(self.options).map_while(Result::ok) {
            let TcpOption::Sack(blocks) = option else { continue };
            for ((start, end), place) in blocks.iter().zip(&mut found) {
                *place = (Seq(start), Seq(end));
            }
        }
        found
    }
}

/// The upper layer of a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Upper<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) bytes: &'a [u8],
    pub(crate) ecn: u8,
    /// Sum of the pseudo header.
    pub(crate) pseudo: Sum,
}

/// The flow of a packet, as far as it can be told at a glance.
#[inline(always)]
pub(crate) fn key(packet: &[u8]) -> Option<FiveTuple> {
    match packet.first()? >> 4 {
        4 => Some(FiveTuple::V4(FiveTuple4::of(ipv4::Header::peek(packet)?, packet))),
        6 => Some(FiveTuple::V6(FiveTuple6::of(ipv6::Header::peek(packet)?, packet))),
        _ => None,
    }
}

/// The flow of a packet whose segment was checked, even if it has a fragment header although it is whole (RFC 6946):
/// [`key`] takes that for a fragment.
pub(crate) fn whole_key(packet: &[u8]) -> Option<FiveTuple> {
    let key = key(packet)?;
    let FiveTuple::V6(flow) = key else { return Some(key) };
    let upper = ipv6::upper_layer(packet).ok()?;
    if upper.fragment.is_none() {
        return Some(key);
    }
    let &[a, b, c, d, ..] = packet.get(upper.offset..)? else { return None };
    let source = (flow.source(), u16::from_be_bytes([a, b]));
    let destination = (flow.destination(), u16::from_be_bytes([c, d]));
    Some(FiveTuple::V6(FiveTuple6::new(source, destination, upper.protocol)))
}

/// A whole TCP segment over IPv4, without IP options or padding, and both addresses in a word. `None`: malformed, or
/// merely unusual; [`upper`] tells.
#[inline(always)]
pub(crate) fn plain(packet: &[u8]) -> Option<(Upper<'_>, u64)> {
    let (head, bytes) = packet.split_first_chunk()?;
    let header = ipv4::Header::of_plain(head, packet.len())?;
    let is_whole = header.protocol() == Protocol::TCP && !header.is_fragment();
    let (source, destination) = (header.source().to_bits(), header.destination().to_bits());
    let addresses = u64::from(source) << 32 | u64::from(destination);
    is_whole.then(|| (upper_v4(header, bytes), addresses))
}

#[inline(always)]
fn upper_v4<'a>(header: &ipv4::Header, bytes: &'a [u8]) -> Upper<'a> {
    let (protocol, length) = (header.protocol(), bytes.len() as u16);
    let pseudo = Sum::new().pseudo_v4(header.source(), header.destination(), protocol, length);
    Upper { protocol, bytes, ecn: header.ecn(), pseudo }
}

/// Checks the IP header. Errors: `IpHeader`, `Fragment`.
#[inline(always)]
pub(crate) fn upper(packet: &[u8]) -> Result<Upper<'_>, Reason> {
    if packet.first().is_some_and(|first| first >> 4 == 4) {
        let header = ipv4::Header::parse(packet).map_err(|_| Reason::IpHeader)?;
        if header.is_fragment() {
            return Err(Reason::Fragment);
        }
        let bytes = packet
            .get(header.header_length()..usize::from(header.total_length()))
            .ok_or(Reason::IpHeader)?;
        Ok(upper_v4(header, bytes))
    } else {
        let header = ipv6::Header::parse(packet).map_err(|_| Reason::IpHeader)?;
        let upper = ipv6::upper_layer(packet).map_err(|_| Reason::IpHeader)?;
        if upper.fragment.is_some_and(|fragment| !fragment.is_whole()) {
            return Err(Reason::Fragment);
        }
        let bytes = packet.get(upper.offset..header.total_length()).ok_or(Reason::IpHeader)?;
        let (protocol, length) = (upper.protocol, bytes.len() as u32);
        let pseudo = Sum::new().pseudo_v6(header.source(), header.destination(), protocol, length);
        Ok(Upper { protocol, bytes, ecn: header.ecn(), pseudo })
    }
}

/// Checks a TCP segment. Errors: `TcpHeader`, `TcpChecksum`.
#[inline(always)]
pub(crate) fn check<'a>(
    packet: &Packet<'a>,
    upper: &Upper<'a>,
) -> Result<tcp::Segment<'a>, Reason> {
    let found = tcp::Segment::parse(upper.bytes).map_err(|_| Reason::TcpHeader)?;
    if !packet.checksum_is_good && !upper.pseudo.bytes(upper.bytes).is_valid() {
        return Err(Reason::TcpChecksum);
    }
    Ok(found)
}

impl<'a> Segment<'a> {
    /// What a segment says, but for its options: unless [`is_read`](Self::is_read), they are to be read yet. That is
    /// two steps, so that the whole is never copied.
    #[inline(always)]
    pub(crate) fn of(found: &tcp::Segment<'a>, ecn: u8) -> Self {
        let header = found.header;
        // The layout that nearly every segment has (RFC 7323 appendix A).
        let timestamps = match *found.options {
            [k, l, m, n, a, b, c, d, e, f, g, h] if [k, l, m, n] == [1, 1, 8, 10] => {
                Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])))
            }
            _ => None,
        };
        Self {
            seq: Seq(header.sequence()),
            ack: Seq(header.acknowledgment()),
            flags: u16::from(header.flags().0) | u16::from(header.accurate_ecn()) << 8,
            window: header.window(),
            urgent: header.urgent(),
            timestamps,
            mss: None,
            window_scale: None,
            sack_permitted: false,
            sack_count: 0,
            ecn,
            options: found.options,
            data: found.data,
        }
    }

    #[inline(always)]
    pub(crate) fn is_read(&self) -> bool {
        self.timestamps.is_some() || self.options.is_empty()
    }

    /// Takes what the options say; what is malformed ends them, as every host does.
    #[cold]
    pub(crate) fn read_options(&mut self) {
        for option in tcp::Options::new(self.options).map_while(Result::ok) {
            match option {
                TcpOption::MaximumSegmentSize(size) => self.mss = Some(size),
                TcpOption::WindowScale(shift) => self.window_scale = Some(shift.min(14)),
                TcpOption::SackPermitted => self.sack_permitted = true,
                TcpOption::Timestamps { value, echo } => self.timestamps = Some((value, echo)),
                TcpOption::Sack(blocks) => self.sack_count = blocks.iter().take(4).count() as u8,
                TcpOption::Other { .. } => {}
            }
        }
    }
}
