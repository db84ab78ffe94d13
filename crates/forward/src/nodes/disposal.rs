//! What becomes of a packet whose next hop is not to be rewritten and sent.

use graph::{Context, Edge, Reason, Slot};

use super::family::{Family, Refusal};
use crate::Cause;
use crate::state::Kind;

/// Where a node sends such packets.
#[derive(Clone, Copy)]
pub(super) struct Edges<N> {
    /// `ip-local`.
    pub(super) local: N,
    /// `icmp-error`.
    pub(super) error: N,
    /// `reflect`.
    pub(super) reflect: N,
}

/// Does what the kind of the next hop says.
#[cold]
pub(super) fn dispose<F: Family, N: Edge>(
    cx: &mut Context<'_, N>,
    slot: Slot,
    kind: Kind,
    edges: Edges<N>,
) {
    match kind {
        Kind::Local => cx.send(slot, edges.local),
        // RFC 2644: neither forwarded nor answered.
        Kind::Broadcast => cx.drop(slot, Reason::Ip4DirectedBroadcast),
        Kind::Unresolved => cx.punt(slot, Cause::Unresolved as u16),
        Kind::Glean => cx.punt(slot, Cause::Glean as u16),
        Kind::Blackhole => cx.drop(slot, Reason::Blackhole),
        Kind::MissDrop => cx.drop(slot, F::NO_ROUTE.reason),
        Kind::MissReflect => cx.send(slot, edges.reflect),
        Kind::MissUnreachable => refuse(cx, slot, F::NO_ROUTE, edges.error),
        Kind::Unreachable => refuse(cx, slot, F::UNREACHABLE, edges.error),
        Kind::HostUnreachable => refuse(cx, slot, F::HOST_UNREACHABLE, edges.error),
        // It changed since the look-up.
        _ => cx.drop(slot, Reason::NextHopInvalid),
    }
}

/// Counts the drop and lets `icmp-error` tell the sender.
pub(super) fn refuse<N: Edge>(cx: &mut Context<'_, N>, slot: Slot, refusal: Refusal, error: N) {
    cx.vector.icmp_error[usize::from(slot)] = refusal.error;
    cx.exits.refuse(&cx.vector.buffers[usize::from(slot)], refusal.reason);
    cx.send(slot, error);
}
