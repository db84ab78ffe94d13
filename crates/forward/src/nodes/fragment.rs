//! `ip4-fragment`: cuts an IPv4 packet to the egress MTU (RFC 791 3.2, RFC 1812 5.2.6).
//!
//! Needs `network` and `next_hop`. The fragments are new buffers that go on to `ip4-rewrite` or `ip4-send`. Routers do not
//! cut IPv6 packets, but those that are made here (and by stacks: `ip6-fragment`): the function here cuts both.

use std::ops::Range;
use std::sync::Arc;

use dpdk::{Buffer, BufferPool};
use graph::{Context, Handoff, InterfaceId, Node, Reason, Slot, Vector};
use wire::ipv4::{self, Header, Options};
use wire::{Protocol, ipv6};

use super::family::{Family, V4, V6};
use crate::state::NextHops;

graph::edges! {
    /// Next nodes of `ip4-fragment`.
    pub(crate) Next {
        Rewrite => "ip4-rewrite",
        Send => "ip4-send",
    }
}

/// Ends the list of options and fills it up (RFC 791 3.1).
const END: u8 = 0;

/// The node.
pub(crate) struct Fragment {
    next_hops: Arc<NextHops>,
    pool: BufferPool,
}

impl Fragment {
    /// The node; fragments are written into buffers of `pool`.
    #[must_use]
    pub(crate) fn new(next_hops: Arc<NextHops>, pool: BufferPool) -> Self {
        Self { next_hops, pool }
    }
}

impl Node for Fragment {
    type Next = Next;

    fn name(&self) -> &'static str {
        "ip4-fragment"
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        for &slot in slots {
            let at = usize::from(slot);
            let (interface, next_hop) = (cx.vector.interface[at], cx.vector.next_hop[at]);
            let network = usize::from(cx.vector.network[at]);
            let mtu = usize::from(self.next_hops.get(next_hop).mtu);
            let Some(whole) = cx.vector.buffer(slot) else { continue };
            let start = whole.data().get(network..).unwrap_or(&[]);
            let read = |from, out: &mut [u8]| gather(whole, network + from, out);
            let plan = V4::plan(start, 0);
            let fragments = plan.and_then(|plan| cut::<V4>(&plan, read, mtu, &self.pool));
            let Some(fragments) = fragments else {
                cx.drop(slot, Reason::Ip4Fragments);
                continue;
            };
            for buffer in fragments {
                let part = Handoff { interface, next_hop, ..Handoff::of(buffer) };
                // What a stack has sent was not forwarded, and keeps its hop count.
                let made_here = interface == InterfaceId::NONE;
                cx.originate(part, if made_here { Next::Send } else { Next::Rewrite });
            }
            // The original is used up; it is not a drop.
            drop(cx.take(slot));
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        let hop = self.next_hops.get(vector.next_hop[usize::from(slot)]);
        format!("{} bytes, cut to MTU {}", vector.network(slot).len(), hop.mtu)
    }
}

/// What the fragments of a packet have ahead of their payloads, and what that is.
pub(super) struct Plan {
    /// Headers of the first one, and of all others.
    headers: [Vec<u8>; 2],
    /// Where the payload is in the packet: bytes.
    payload: Range<usize>,
    /// Where it belongs, because the packet is a fragment itself: units of 8 bytes.
    offset: usize,
    /// Whether another fragment follows the packet.
    more: bool,
}

/// How the packets of a family are cut.
pub(super) trait Fragments: Family {
    /// `start`: at least the packet's headers; `identification`: for fragments of a packet that has none. `None`: it cannot
    /// be cut.
    fn plan(start: &[u8], identification: u32) -> Option<Plan>;

    /// Makes a fragment say what it is; `header`: bytes ahead of its payload, `offset`: units of 8 bytes.
    fn label(fragment: &mut [u8], header: usize, offset: usize, more: bool) -> Option<()>;
}

/// The fragments of a packet, each at most `mtu` bytes, all or none. `read` fills a slice with its bytes from an offset on.
pub(super) fn cut<F: Fragments>(
    Plan { headers: [first, later], payload, offset, more }: &Plan,
    read: impl Fn(usize, &mut [u8]) -> Option<()>,
    mtu: usize,
    pool: &BufferPool,
) -> Option<Vec<Buffer>> {
    let mut fragments = Vec::new();
    let mut at = payload.start;
    while at < payload.end {
        let header = if at == payload.start { first } else { later };
        let room = mtu.checked_sub(header.len())?;
        let left = payload.end - at;
        // All but the last carry a multiple of 8 bytes.
        let size = if left <= room { left } else { room & !7 };
        if size == 0 {
            return None;
        }
        let mut buffer = pool.alloc()?;
        let out = buffer.append(header.len() + size)?;
        out.get_mut(..header.len())?.copy_from_slice(header);
        read(at, out.get_mut(header.len()..)?)?;
        let last = at + size == payload.end;
        F::label(out, header.len(), offset + (at - payload.start) / 8, !last || *more)?;
        fragments.push(buffer);
        at += size;
    }
    (!fragments.is_empty()).then_some(fragments)
}

impl Fragments for V4 {
    fn plan(start: &[u8], _: u32) -> Option<Plan> {
        let header = Header::peek(start)?;
        let length = header.header_length();
        let first = start.get(..length)?;
        Some(Plan {
            headers: [first.to_vec(), copied_options(first)?],
            payload: length..usize::from(header.total_length()),
            offset: header.fragment_offset().into(),
            more: header.more_fragments(),
        })
    }

    fn label(fragment: &mut [u8], header: usize, offset: usize, more: bool) -> Option<()> {
        let total = u16::try_from(fragment.len()).ok()?;
        let new = Header::peek_mut(fragment)?;
        new.set_total_length(total);
        new.set_header_length(u8::try_from(header).ok()?);
        new.set_fragment(false, more, u16::try_from(offset).ok()?);
        ipv4::write_checksum(fragment).ok()
    }
}

impl Fragments for V6 {
    /// Everything behind the fixed header is cut, extension headers too: of what this router makes, none has to be in each
    /// fragment.
    fn plan(start: &[u8], identification: u32) -> Option<Plan> {
        let header = ipv6::Header::peek(start)?;
        let payload = ipv6::HEADER_LENGTH..header.total_length();
        plan6(start.first_chunk()?, (header.next_header(), payload), identification)
    }

    fn label(fragment: &mut [u8], _: usize, offset: usize, more: bool) -> Option<()> {
        let payload = fragment.len().checked_sub(ipv6::HEADER_LENGTH)?;
        let fixed = ipv6::Header::peek_mut(fragment)?;
        fixed.set_payload_length(u16::try_from(payload).ok()?);
        // RFC 8200 4.5: offset and flag are in the third and fourth octet of the fragment header.
        let place = fragment.get_mut(ipv6::HEADER_LENGTH + 2..ipv6::HEADER_LENGTH + 4)?;
        let word = u16::try_from(offset << 3).ok()? | u16::from(more);
        place.copy_from_slice(&word.to_be_bytes());
        Some(())
    }
}

/// For a payload, of this protocol, behind a fixed header.
pub(super) fn plan6(
    fixed: &[u8; ipv6::HEADER_LENGTH],
    (next_header, payload): (Protocol, Range<usize>),
    identification: u32,
) -> Option<Plan> {
    let own = ipv6::Fragment {
        offset: 0,
        more: false,
        identification,
        header_at: ipv6::HEADER_LENGTH,
        named_at: 6,
        next_header,
    };
    let mut fixed = *fixed;
    ipv6::Header::peek_mut(&mut fixed)?.set_next_header(Protocol::FRAGMENT);
    let headers = [&fixed[..], &own.header()].concat();
    Some(Plan { headers: [headers.clone(), headers], payload, offset: 0, more: false })
}

/// The header for all fragments but the first: only options with the copy bit stay (RFC 791 3.1).
fn copied_options(header: &[u8]) -> Option<Vec<u8>> {
    let mut copied = header.get(..ipv4::HEADER_LENGTH)?.to_vec();
    for option in Options::new(header) {
        let option = option.ok()?;
        if option.is_copied() {
            copied.extend_from_slice(&[option.kind, u8::try_from(option.data.len() + 2).ok()?]);
            copied.extend_from_slice(option.data);
        }
    }
    while copied.len() % 4 != 0 {
        copied.push(END);
    }
    Some(copied)
}

/// Copies bytes of a packet that may be chained, from `offset` on, into all of `out`.
fn gather(packet: &Buffer, mut offset: usize, mut out: &mut [u8]) -> Option<()> {
    for segment in packet.segments() {
        let Some(data) = segment.data.get(offset..) else {
            offset -= segment.data.len();
            continue;
        };
        offset = 0;
        let n = data.len().min(out.len());
        let (here, rest) = out.split_at_mut(n);
        here.copy_from_slice(&data[..n]);
        out = rest;
    }
    out.is_empty().then_some(())
}

/// A buffer with these bytes.
pub(super) fn filled(pool: &BufferPool, parts: &[&[u8]]) -> Option<Buffer> {
    let mut buffer = pool.alloc()?;
    for part in parts {
        buffer.append(part.len())?.copy_from_slice(part);
    }
    Some(buffer)
}
