//! `ip4-lookup`, `ip6-lookup`: longest-prefix match, and what its answer says to do. Their twins
//! `ip4-output` and `ip6-output` do the same for packets that were made here.
//!
//! Needs `interface` and `network`, of a validated packet; fills `next_hop`.

use graph::{CAPACITY, Context, Node, Reason, Slot, Vector};

use super::family::{Family, Refusal};
use crate::Cause;
use crate::state::{GROUP_BIT, Kind, State};

graph::edges! {
    /// Next nodes of a look-up; the names are the family's.
    pub(crate) Next {
        Rewrite => "rewrite",
        Local => "ip-local",
        Error => "icmp-error",
        Reflect => "reflect",
    }
}

/// The node.
pub(crate) struct Lookup<F: Family> {
    state: State,
    made_here: bool,
    family: std::marker::PhantomData<F>,
}

impl<F: Family> Lookup<F> {
    /// The node for packets on their way through.
    #[must_use]
    pub(crate) fn forwarding(state: State) -> Self {
        Self { state, made_here: false, family: std::marker::PhantomData }
    }

    /// The node for packets that were made here.
    #[must_use]
    pub(crate) fn output(state: State) -> Self {
        Self { made_here: true, ..Self::forwarding(state) }
    }

    fn spread(&self, slots: &[Slot], values: &mut [u32], vector: &Vector) {
        for (&slot, value) in slots.iter().zip(values) {
            if *value & GROUP_BIT != 0 {
                *value = self.state.next_hops.choose(*value, F::hash(vector.network(slot)));
            }
        }
    }
}

impl<F: Family> Node for Lookup<F> {
    type Next = Next;

    fn name(&self) -> &'static str {
        F::NAMES.lookup[usize::from(self.made_here)]
    }

    fn targets(&self) -> &'static [&'static str] {
        F::LOOKUP_TARGETS[usize::from(self.made_here)]
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let mut keys = [F::Key::default(); CAPACITY];
        let mut values = [0; CAPACITY];
        let count = slots.len().min(CAPACITY);
        for (key, &slot) in keys.iter_mut().zip(slots) {
            *key = F::key(cx.vector, slot);
        }
        let values = &mut values[..count];
        F::look_up(&self.state, &keys[..count], values);
        if values.iter().fold(0, |all, value| all | value) & GROUP_BIT != 0 {
            self.spread(slots, values, cx.vector);
        }
        let mut known = [0; CAPACITY];
        let mut len = 0;
        for (&slot, &value) in slots.iter().zip(values.iter()) {
            cx.vector.next_hop[usize::from(slot)] = value;
            match self.state.next_hops.kind(value) {
                Kind::Forward | Kind::ForwardStale | Kind::Bridge | Kind::BridgeStale => {
                    known[len % CAPACITY] = slot;
                    len += 1;
                }
                kind => except::<F>(cx, slot, kind),
            }
        }
        cx.send_all(&known[..len], Next::Rewrite);
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        let mut value = [0];
        F::look_up(&self.state, &[F::key(vector, slot)], &mut value);
        let chosen = self.state.next_hops.choose(value[0], F::hash(vector.network(slot)));
        let hop = self.state.next_hops.get(chosen);
        let way = if value[0] & GROUP_BIT == 0 { "" } else { ", chosen by flow hash" };
        format!("next hop {chosen}{way}: {:?}", hop.kind)
    }
}

/// What is not simply rewritten and sent.
#[cold]
fn except<F: Family>(cx: &mut Context<'_, Next>, slot: Slot, kind: Kind) {
    match kind {
        Kind::Local => cx.send(slot, Next::Local),
        // RFC 2644: neither forwarded nor answered.
        Kind::Broadcast => cx.drop(slot, Reason::Ip4DirectedBroadcast),
        Kind::Unresolved => cx.punt(slot, Cause::Unresolved as u16),
        Kind::Glean => cx.punt(slot, Cause::Glean as u16),
        Kind::Blackhole => cx.drop(slot, Reason::Blackhole),
        Kind::MissDrop => cx.drop(slot, F::NO_ROUTE.reason),
        Kind::MissReflect => cx.send(slot, Next::Reflect),
        Kind::MissUnreachable => refuse(cx, slot, F::NO_ROUTE, Next::Error),
        Kind::Unreachable => refuse(cx, slot, F::UNREACHABLE, Next::Error),
        Kind::HostUnreachable => refuse(cx, slot, F::HOST_UNREACHABLE, Next::Error),
        _ => cx.drop(slot, Reason::NextHopInvalid),
    }
}

/// Counts the drop and lets `icmp-error` tell the sender.
pub(super) fn refuse<N: graph::Edge>(
    cx: &mut Context<'_, N>,
    slot: Slot,
    refusal: Refusal,
    error: N,
) {
    cx.vector.word[usize::from(slot)] = refusal.word;
    cx.exits.refuse(&cx.vector.buffers[usize::from(slot)], refusal.reason);
    cx.send(slot, error);
}
