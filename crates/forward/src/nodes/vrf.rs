//! `vrf-input`, `ip4-vrf`, `ip6-vrf`: packets of interfaces in other VRFs than the default one, and packets that a route
//! leads from one VRF to another. The twins `ip4-vrf-output` and `ip6-vrf-output` do the same for packets made here.
//!
//! `vrf-input` is a feature of such interfaces (see `docs/features.md`), so packets of the default VRF do not pass any of
//! this. It needs `interface`, and fills `vrf`. The look-up needs that and `network`, takes runs of packets
//! of one VRF together, and fills `next_hop`.

use graph::{CAPACITY, Context, Edge, Node, Onward, Picked, Reason, Slot, Vector};
use wire::{ipv4, ipv6};

use super::arc::{Arc, Feature};
use super::disposal::{Edges, dispose};
use super::family::{self, Family};
use super::lookup::{self, Lookup};
use super::snapshot::Snapshot;
use crate::state::{DEFAULT_VRF, Interfaces, State, VrfId, Vrfs, reserved};

/// Routes that lead from VRF to VRF which a packet follows at most in one look-up. One is what a leak takes, two a VRF of
/// shared services between two others; more than a few are a loop.
pub const MOST_LEAKS: usize = 4;

graph::edges! {
    /// Next nodes of `vrf-input`.
    pub(crate) InputNext {
        Ip4 => "ip4-vrf",
        Ip6 => "ip6-vrf",
    }
}

/// The feature.
pub(crate) struct VrfInput;

impl Feature for VrfInput {
    type Next = InputNext;

    fn process(
        &mut self,
        (arc, interfaces): (Arc, &Interfaces),
        slots: &[Slot],
        cx: &mut Context<'_, Onward<InputNext>>,
        on: &mut Picked,
    ) {
        for &slot in slots {
            let interface = arc.interface(interfaces, cx.vector, slot);
            let vrf = interface.map_or(DEFAULT_VRF, |interface| interface.vrf);
            match look_up_of(cx.vector.network(slot)).filter(|_| vrf != DEFAULT_VRF) {
                Some(next) => {
                    cx.vector.vrf[usize::from(slot)] = vrf;
                    cx.send(slot, Onward::Aside(next));
                }
                None => on.push(slot),
            }
        }
    }
}

/// Where a validated packet is looked up. `None`: it is for this router on its link, and goes on to `ip-local`.
fn look_up_of(packet: &[u8]) -> Option<InputNext> {
    if ipv4::Header::peek(packet).is_some() {
        return Some(InputNext::Ip4);
    }
    let destination = ipv6::Header::peek(packet)?.destination();
    let on_link = destination.is_multicast() || destination.is_unicast_link_local();
    (!on_link).then_some(InputNext::Ip6)
}

graph::edges! {
    /// Next nodes of a look-up in a VRF; the name of the rewrite is the family's.
    pub(crate) Next {
        Rewrite => "rewrite",
        Local => "ip-local",
        Error => "icmp-error",
        Reflect => "reflect",
    }
}

const EDGES: Edges<Next> = Edges { local: Next::Local, error: Next::Error, reflect: Next::Reflect };

/// The look-up.
pub(crate) struct VrfLookup<F: Family> {
    main: Lookup<F>,
    vrfs: Snapshot<Vrfs>,
}

impl<F: Family> VrfLookup<F> {
    /// The node for packets on their way through.
    #[must_use]
    pub(crate) fn forwarding(state: State) -> Self {
        let vrfs = Snapshot::of(&state.vrfs);
        Self { main: Lookup::forwarding(state), vrfs }
    }

    /// The node for packets that were made here.
    #[must_use]
    pub(crate) fn output(state: State) -> Self {
        let vrfs = Snapshot::of(&state.vrfs);
        Self { main: Lookup::output(state), vrfs }
    }
}

impl<F: Family> Node for VrfLookup<F> {
    type Next = Next;

    fn name(&self) -> &'static str {
        F::NAMES.vrf[usize::from(self.main.made_here)]
    }

    fn edges(&self) -> Vec<(Next, &'static str)> {
        let rewrite = F::NAMES.rewrite[usize::from(self.main.made_here)];
        let named = Next::edges().into_iter().map(|(next, name)| match next {
            Next::Rewrite => (next, rewrite),
            Next::Local | Next::Error | Next::Reflect => (next, name),
        });
        named.collect()
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let Self { main, vrfs } = self;
        let vrfs = vrfs.get();
        let mut rest = slots;
        while let [first, ..] = rest {
            let vrf = cx.vector.vrf[usize::from(*first)];
            let same = |slot: &&Slot| cx.vector.vrf[usize::from(**slot)] == vrf;
            let (run, after) = rest.split_at(rest.iter().take_while(same).count());
            look_up_run(main, vrfs, vrf, run, cx);
            rest = after;
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        let state = &self.main.state;
        let vrf = vector.vrf[usize::from(slot)];
        let packet = family::describe(vector.network(slot));
        let value = find::<F>(state, &state.vrfs.load(), vrf, F::key(vector, slot));
        let then = match reserved::vrf(value) {
            Some(next) => format!("leads to {}", state.describe_vrf(next)),
            None => {
                let hash = F::hash(vector.network(slot), state.settings.load().hash_seed);
                let chosen = state.next_hops.choose(value, hash);
                format!("next hop {chosen}: {:?}", state.next_hops.kind(chosen))
            }
        };
        format!("{packet}, in {}: {then}", state.describe_vrf(vrf))
    }
}

/// Looks up packets of one VRF, and sends them on.
fn look_up_run<F: Family>(
    main: &Lookup<F>,
    vrfs: &Vrfs,
    vrf: VrfId,
    slots: &[Slot],
    cx: &mut Context<'_, Next>,
) {
    let mut keys = [F::Key::default(); CAPACITY];
    let mut values = [reserved::MISS; CAPACITY];
    keys.iter_mut().zip(slots).for_each(|(key, &slot)| *key = F::key(cx.vector, slot));
    let count = slots.len().min(CAPACITY);
    let (keys, values) = (&keys[..count], &mut values[..count]);
    look_up::<F>(&main.state, vrfs, vrf, keys, values);
    for (key, value) in keys.iter().zip(values.iter_mut()) {
        *value = follow::<F>(&main.state, vrfs, *key, *value);
    }
    lookup::spread::<F>(&main.state, slots, values, cx.vector);
    for (&slot, &value) in slots.iter().zip(values.iter()) {
        if value >= reserved::FIRST {
            cx.vector.next_hop[usize::from(slot)] = value;
            cx.send(slot, Next::Rewrite);
        } else if reserved::vrf(value).is_some() {
            cx.drop(slot, Reason::VrfLoop);
        } else {
            dispose::<F, Next>(cx, slot, main.state.next_hops.kind(value), EDGES);
        }
    }
}

/// Looks up keys in one VRF. In one that is gone there are no routes.
fn look_up<F: Family>(state: &State, vrfs: &Vrfs, vrf: VrfId, keys: &[F::Key], values: &mut [u32]) {
    if vrf == DEFAULT_VRF {
        F::look_up(state, keys, values);
    } else if let Some(tables) = vrfs.get(vrf) {
        F::look_up_in(tables, keys, values);
    } else {
        values.fill(reserved::MISS);
    }
}

/// The same for one key.
fn find<F: Family>(state: &State, vrfs: &Vrfs, vrf: VrfId, key: F::Key) -> u32 {
    let mut value = [reserved::MISS];
    look_up::<F>(state, vrfs, vrf, &[key], &mut value);
    let [value] = value;
    value
}

/// Follows routes from VRF to VRF. Behind [`MOST_LEAKS`] of them, the value still names a VRF.
fn follow<F: Family>(state: &State, vrfs: &Vrfs, key: F::Key, mut value: u32) -> u32 {
    for _ in 0..MOST_LEAKS {
        let Some(vrf) = reserved::vrf(value) else { break };
        value = find::<F>(state, vrfs, vrf, key);
    }
    value
}
