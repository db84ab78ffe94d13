//! The short path: plain packets are looked up, rewritten and put into the transmit buffers by `ethernet-input` itself, a block
//! at a time, while their headers are at hand.
//!
//! It does what `ip4-lookup` and `ip4-rewrite` (`ip6-...`) do for the packets that are most common, by the same functions, and
//! leaves all others to them: those whose next hop is not by a port, or whose egress has features, those that are too long or
//! on their last hop. It is not taken where something comes between: flows, which are looked for before routes, features of
//! the ingress, and a trace, which is to tell of each node.

use graph::{Context, Edge, Slot};

use super::family::Family;
use super::lookup;
use super::plain::{BLOCK, Block, HEADER, Ingress};
use super::rewrite;
use crate::state::{GROUP_BIT, State, reserved};

/// Where packets of a family go that the short path does not send.
#[derive(Clone, Copy)]
pub(super) struct Around<N> {
    /// A next hop is found there.
    pub(super) look_up: N,
    /// The next hop that was found is used there.
    pub(super) rewrite: N,
    /// The features of the ingress are.
    pub(super) features: N,
}

/// The short path of a family.
pub(super) struct ShortPath<F: Family, N> {
    /// Packets to be sent.
    pub(super) block: Block<F::Key>,
    state: State,
    around: Around<N>,
    /// Each packet goes to `around.look_up`.
    closed: bool,
}

impl<F: Family, N: Edge> ShortPath<F, N> {
    /// The path by these tables; `closed`: no packet takes it.
    pub(super) fn new(state: State, around: Around<N>, closed: bool) -> Self {
        Self { block: Block::new(), state, around, closed }
    }

    /// Sends the packets of the block, which came in like this.
    #[inline]
    pub(super) fn send(&self, from: Ingress, cx: &mut Context<'_, N>) {
        if self.block.slots().is_empty() {
            return;
        }
        if self.closed | from.has_features() | cx.traced {
            return self.send_on(from, cx);
        }
        let mut values = [0; BLOCK];
        let values = &mut values[..self.block.slots().len()];
        F::look_up(&self.state, self.block.keys(), values);
        if values.iter().fold(0, |all, value| all | value) & GROUP_BIT != 0 {
            self.spread(from, values, cx);
        }
        let first = values.first().copied().unwrap_or_default();
        // One way for a whole block: packets in a row mostly leave alike, and each way sends what it cannot to the nodes.
        if from.is_tagged() || self.state.next_hops.reader().words(first).tag().is_some() {
            self.transmit::<true>(from, values, cx);
        } else {
            self.transmit::<false>(from, values, cx);
        }
    }

    /// Chooses among the members of groups.
    #[cold]
    fn spread(&self, from: Ingress, values: &mut [u32], cx: &mut Context<'_, N>) {
        for &slot in self.block.slots() {
            cx.vector.network[usize::from(slot)] = from.header() as u16;
        }
        lookup::spread::<F>(&self.state, self.block.slots(), values, cx.vector);
    }

    /// Rewrites and sends the packets, with these next hops. `TAGS`: with VLAN tags, in or out.
    #[inline(never)]
    fn transmit<const TAGS: bool>(&self, from: Ingress, values: &[u32], cx: &mut Context<'_, N>) {
        let next_hops = self.state.next_hops.reader();
        let header = if TAGS { from.header() } else { HEADER };
        for (place, (&slot, &value)) in self.block.slots().iter().zip(values).enumerate() {
            let hop = next_hops.words(value);
            let at = usize::from(slot);
            let Some(buffer) = cx.vector.buffers[at].as_mut() else { continue };
            if !rewrite::write::<F, false, TAGS>(hop, buffer, header) {
                self.leave(place, value, from, cx);
                continue;
            }
            if hop.is_stale() {
                self.state.next_hops.mark_used(value);
            }
            cx.transmit(slot, hop.port());
        }
    }

    /// Leaves a packet of the block to the nodes; `value` is what the look-up gave.
    #[inline(never)]
    fn leave(&self, place: usize, value: u32, from: Ingress, cx: &mut Context<'_, N>) {
        let Some(&slot) = self.block.slots().get(place) else { return };
        let at = usize::from(slot);
        if value >= reserved::FIRST {
            cx.vector.interface[at] = from.interface();
            cx.vector.network[at] = from.header() as u16;
            cx.vector.next_hop[at] = value;
            cx.send(slot, self.around.rewrite);
        } else if let Some(&key) = self.block.keys().get(place) {
            // The look-up knows what a reserved index says.
            note::<F, N>(slot, key, from, cx);
            cx.send(slot, self.around.look_up);
        }
    }

    /// Sends the whole block to the nodes.
    #[inline(never)]
    fn send_on(&self, from: Ingress, cx: &mut Context<'_, N>) {
        let Around { look_up, features, .. } = self.around;
        let slots = self.block.slots();
        for (&slot, &key) in slots.iter().zip(self.block.keys()) {
            note::<F, N>(slot, key, from, cx);
        }
        if from.has_features() {
            slots.iter().for_each(|&slot| cx.detour(slot, features, look_up));
        } else {
            cx.send_all(slots, look_up);
        }
    }
}

/// Fills what the nodes want to know of a packet.
#[inline(always)]
fn note<F: Family, N: Edge>(slot: Slot, key: F::Key, from: Ingress, cx: &mut Context<'_, N>) {
    let at = usize::from(slot);
    cx.vector.interface[at] = from.interface();
    cx.vector.network[at] = from.header() as u16;
    F::note(cx.vector, slot, key);
}
