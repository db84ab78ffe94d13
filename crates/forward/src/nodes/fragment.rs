//! `ip4-fragment`: cuts an IPv4 packet to the egress MTU (RFC 791 3.2, RFC 1812 5.2.6).
//!
//! Needs `network` and `next_hop`. The fragments are new buffers that go on to `ip4-rewrite` or `ip4-send`.

use std::sync::Arc;

use dpdk::{Buffer, BufferPool};
use graph::{Context, Handoff, NO_INTERFACE, Node, Reason, Slot, Vector};
use wire::ipv4::{self, Header, Options};

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
            let Some(fragments) = cut(start, read, mtu, &self.pool) else {
                cx.drop(slot, Reason::Ip4Fragments);
                continue;
            };
            for buffer in fragments {
                let part = Handoff { interface, next_hop, ..Handoff::of(buffer) };
                // What a stack has sent was not forwarded, and keeps its hop count.
                let made_here = interface == NO_INTERFACE;
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

/// The fragments of a packet, each at most `mtu` bytes, all or none. `start`: at least its header;
/// `read` fills a slice with its bytes from an offset on.
pub(super) fn cut(
    start: &[u8],
    read: impl Fn(usize, &mut [u8]) -> Option<()>,
    mtu: usize,
    pool: &BufferPool,
) -> Option<Vec<Buffer>> {
    let header = *Header::peek(start)?;
    let length = header.header_length();
    let first_header = start.get(..length)?;
    let later_header = copied_options(first_header)?;
    let payload = usize::from(header.total_length()).checked_sub(length)?;
    let mut fragments = Vec::new();
    let mut done = 0;
    while done < payload {
        let bytes = if done == 0 { first_header } else { &later_header };
        let room = mtu.checked_sub(bytes.len())?;
        let left = payload - done;
        // All but the last carry a multiple of 8 bytes.
        let size = if left <= room { left } else { room & !7 };
        if size == 0 {
            return None;
        }
        let last = done + size == payload;
        let offset = usize::from(header.fragment_offset()) + done / 8;
        let mut buffer = pool.alloc()?;
        let out = buffer.append(bytes.len() + size)?;
        out.get_mut(..bytes.len())?.copy_from_slice(bytes);
        read(length + done, out.get_mut(bytes.len()..)?)?;
        let total = u16::try_from(bytes.len() + size).ok()?;
        let new = Header::peek_mut(out)?;
        new.set_total_length(total);
        new.set_header_length(u8::try_from(bytes.len()).ok()?);
        new.set_fragment(false, !last || header.more_fragments(), u16::try_from(offset).ok()?);
        ipv4::write_checksum(out).ok()?;
        fragments.push(buffer);
        done += size;
    }
    (!fragments.is_empty()).then_some(fragments)
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
