//! `ip4-lookup`, `ip6-lookup`: longest-prefix match, and what its answer says to do. Their twins
//! `ip4-output` and `ip6-output` do the same for packets that were made here.
//!
//! Needs `interface` and `network`, of a validated packet, and the destination address as the input
//! node noted it; fills `next_hop`. The twins read the address from the packet.
//! Both look in the default VRF; packets that another VRF's routes are for go on to `ip4-vrf` or `ip6-vrf`, with that VRF in
//! `vrf`.

use graph::{CAPACITY, Context, Edge as _, Node, Slot, Vector, in_place};

use super::disposal::{Edges, dispose};
use super::family::{self, Family, Names};
use crate::state::{GROUP_BIT, State, reserved};

graph::edges! {
    /// Next nodes of a look-up; the names of the rewrite and of the look-up in a VRF are the family's.
    pub(crate) Next {
        Rewrite => "rewrite",
        Local => "ip-local",
        Error => "icmp-error",
        Reflect => "reflect",
        Vrf => "vrf",
    }
}

const EDGES: Edges<Next> = Edges { local: Next::Local, error: Next::Error, reflect: Next::Reflect };

/// The node.
pub(crate) struct Lookup<F: Family> {
    pub(super) state: State,
    pub(super) made_here: bool,
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

    /// Sends on what names a next hop, and does at once what a reserved index says.
    fn sort(&self, slots: &[Slot], values: &[u32], cx: &mut Context<'_, Next>) {
        for (&slot, &value) in slots.iter().zip(values) {
            if value >= reserved::FIRST {
                cx.send(slot, Next::Rewrite);
            } else if let Some(vrf) = reserved::vrf(value) {
                cx.vector.vrf[usize::from(slot)] = vrf;
                cx.send(slot, Next::Vrf);
            } else {
                dispose::<F, Next>(cx, slot, self.state.next_hops.kind(value), EDGES);
            }
        }
    }
}

impl<F: Family> Node for Lookup<F> {
    type Next = Next;

    fn name(&self) -> &'static str {
        F::NAMES.lookup[usize::from(self.made_here)]
    }

    fn edges(&self) -> Vec<(Next, &'static str)> {
        let Names { rewrite, vrf, .. } = F::NAMES;
        let twin = usize::from(self.made_here);
        let named = Next::edges().into_iter().map(|(next, name)| match next {
            Next::Rewrite => (next, rewrite[twin]),
            Next::Vrf => (next, vrf[twin]),
            Next::Local | Next::Error | Next::Reflect => (next, name),
        });
        named.collect()
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let mut gathered = [F::Key::default(); CAPACITY];
        let mut values = [0; CAPACITY];
        let count = slots.len().min(CAPACITY);
        let in_place = in_place(slots);
        let keys = if self.made_here {
            gathered.iter_mut().zip(slots).for_each(|(key, &slot)| *key = F::key(cx.vector, slot));
            &gathered
        } else if in_place {
            F::noted(cx.vector)
        } else {
            let noted = F::noted(cx.vector);
            gathered.iter_mut().zip(slots).for_each(|(key, &slot)| *key = noted[usize::from(slot)]);
            &gathered
        };
        let values = &mut values[..count];
        F::look_up(&self.state, &keys[..count], values);
        if values.iter().fold(0, |all, value| all | value) & GROUP_BIT != 0 {
            spread::<F>(&self.state, slots, values, cx.vector);
        }
        if in_place {
            cx.vector.next_hop[..count].copy_from_slice(values);
        } else {
            for (&slot, &value) in slots.iter().zip(values.iter()) {
                cx.vector.next_hop[usize::from(slot)] = value;
            }
        }
        if values.iter().fold(true, |all, value| all & (*value >= reserved::FIRST)) {
            cx.send_all(slots, Next::Rewrite);
        } else {
            self.sort(slots, values, cx);
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        let mut value = [0];
        F::look_up(&self.state, &[F::key(vector, slot)], &mut value);
        let seed = self.state.settings.load().hash_seed;
        let hash = F::hash(vector.network(slot), seed);
        let chosen = self.state.next_hops.choose(value[0], hash);
        if let Some(vrf) = reserved::vrf(chosen) {
            let packet = family::describe(vector.network(slot));
            return format!("{packet}: to be looked up in {}", self.state.describe_vrf(vrf));
        }
        let hop = self.state.next_hops.get(chosen);
        let way = if value[0] & GROUP_BIT == 0 { "" } else { ", chosen by flow hash" };
        let packet = family::describe(vector.network(slot));
        format!("{packet}: next hop {chosen}{way}: {:?}", hop.kind)
    }
}

/// Replaces the groups among `values` by next hops of theirs, chosen by the packets' flows.
pub(super) fn spread<F: Family>(
    state: &State,
    slots: &[Slot],
    values: &mut [u32],
    vector: &Vector,
) {
    let seed = state.settings.load().hash_seed;
    for (&slot, value) in slots.iter().zip(values) {
        if *value & GROUP_BIT != 0 {
            *value = state.next_hops.choose(*value, F::hash(vector.network(slot), seed));
        }
    }
}
