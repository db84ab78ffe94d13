//! `ip6-fragment`: cuts what a stack has sent to be cut (RFC 8200 4.5). Packets that are forwarded are never cut.
//!
//! Needs `network`, of a packet with a fragment header behind the fixed one, which says that it is whole. The fragments fit
//! the smallest MTU that a link may have: the stack has met a path that does not take the packet whole, and nobody on the
//! way could cut them further. They are new buffers that go on to `ip6-output`.

use dpdk::{Buffer, BufferPool};
use graph::{Context, Handoff, InterfaceId, Node, Reason, Slot, Vector};
use wire::Protocol;
use wire::ipv6::{self, Fragment, HEADER_LENGTH, Header};

use super::family::V6;
use super::fragment::{self, filled, plan6};

graph::edges! {
    /// Next nodes of `ip6-fragment`.
    pub(crate) Next {
        Output => "ip6-output",
    }
}

/// The node.
pub(crate) struct Ip6Fragment {
    pool: BufferPool,
}

impl Ip6Fragment {
    /// The node; fragments are written into buffers of `pool`.
    #[must_use]
    pub(crate) fn new(pool: BufferPool) -> Self {
        Self { pool }
    }
}

impl Node for Ip6Fragment {
    type Next = Next;

    fn name(&self) -> &'static str {
        "ip6-fragment"
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        for &slot in slots {
            let fragments = cut(cx.vector.network(slot), &self.pool);
            let Some(fragments) = fragments else {
                cx.drop(slot, Reason::Ip6Fragments);
                continue;
            };
            for buffer in fragments {
                let part = Handoff { interface: InterfaceId::NONE, ..Handoff::of(buffer) };
                cx.originate(part, Next::Output);
            }
            // The original is used up; it is not a drop.
            drop(cx.take(slot));
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        let length = vector.network(slot).len();
        format!("{length} bytes, cut to MTU {}", ipv6::MINIMUM_MTU)
    }
}

/// The fragment header right behind the fixed one of a packet that is whole, and what follows it. `None`: there is no such
/// header, or others belong to the packet.
pub(super) fn whole(packet: &[u8]) -> Option<(Fragment, &[u8])> {
    if Header::peek(packet)?.next_header() != Protocol::FRAGMENT {
        return None;
    }
    let fragment = ipv6::upper_layer(packet).ok()?.fragment?;
    let payload = packet.get(HEADER_LENGTH + Fragment::HEADER_LENGTH..)?;
    (fragment.header_at == HEADER_LENGTH && fragment.is_whole()).then_some((fragment, payload))
}

/// The fragments of such a packet, or, where its payload fits without a fragment header, a packet without one (RFC 8021).
fn cut(packet: &[u8], pool: &BufferPool) -> Option<Vec<Buffer>> {
    let (fragment, payload) = whole(packet)?;
    let mut fixed = *packet.first_chunk()?;
    if HEADER_LENGTH + payload.len() <= ipv6::MINIMUM_MTU {
        let header = Header::peek_mut(&mut fixed)?;
        header.set_payload_length(u16::try_from(payload.len()).ok()?);
        header.set_next_header(fragment.next_header);
        return Some(vec![filled(pool, &[&fixed, payload])?]);
    }
    let carried = (fragment.next_header, packet.len() - payload.len()..packet.len());
    let plan = plan6(&fixed, carried, fragment.identification)?;
    let read = |from: usize, out: &mut [u8]| {
        out.copy_from_slice(packet.get(from..from + out.len())?);
        Some(())
    };
    fragment::cut::<V6>(&plan, read, ipv6::MINIMUM_MTU, pool)
}
