//! The short path: plain packets are looked up, rewritten and put into the transmit buffers by `ethernet-input` itself, a block
//! at a time, while their headers are at hand.
//!
//! It does what `ip4-lookup` and `ip4-rewrite` (`ip6-...`) do for the packets that are most common, by the same functions, and
//! leaves all others to them: those whose next hop is not by a port, or whose egress has features, those that are too long or
//! on their last hop. It is not taken where something comes between: flows, which are looked for before routes, features of
//! the ingress, and a trace, which is to tell of each node.
//!
//! Many IPv4 packets in a row to one address are looked up once, before they are checked, so that each is checked and rewritten
//! in one go.

use dpdk::Buffer;
use graph::{Context, Edge, PortId, Slot};
use tables::LpmRoot;
use wire::ipv4;

use super::family::{Family, V4};
use super::lookup;
use super::plain::{BLOCK, Block, HEADER, Ingress, is_ordinary4, is_row};
use super::rewrite;
use crate::state::{GROUP_BIT, Reader, State, Words, reserved};

/// Packets in a row of which it is worth a look whether they are to one address.
const RUN: usize = 16;

/// Where packets of a family go that the short path does not send.
#[derive(Clone, Copy)]
pub(super) struct Edges<N> {
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
    edges: Edges<N>,
    /// Each packet goes to `edges.look_up`.
    closed: bool,
}

impl<F: Family, N: Edge> ShortPath<F, N> {
    /// The path by these tables; `closed`: no packet takes it.
    pub(super) fn new(state: State, edges: Edges<N>, closed: bool) -> Self {
        Self { block: Block::new(), state, edges, closed }
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
        let (keys, values) = (self.block.keys(), &mut values[..self.block.slots().len()]);
        match keys {
            // Packets of one flow often come in a row.
            [key, ..] if alike(keys) => {
                let mut value = [0];
                F::look_up(&self.state, &[*key], &mut value);
                values.fill(value[0]);
            }
            _ => F::look_up(&self.state, keys, values),
        }
        if values.iter().fold(0, |all, value| all | value) & GROUP_BIT != 0 {
            self.spread(from, values, cx);
        }
        let first =
            self.state.next_hops.reader().words(values.first().copied().unwrap_or_default());
        // One way for a whole block: packets in a row mostly leave alike, and each way sends what it cannot to the nodes.
        if from.is_tagged() || first.tag().is_some() {
            return self.transmit::<true>(0, from, values, cx);
        }
        let sent =
            if is_row(self.block.slots()) { self.transmit_row(first, values, cx) } else { 0 };
        self.transmit::<false>(sent, from, values, cx);
    }

    /// Chooses among the members of groups.
    #[cold]
    fn spread(&self, from: Ingress, values: &mut [u32], cx: &mut Context<'_, N>) {
        for &slot in self.block.slots() {
            cx.vector.network[usize::from(slot)] = from.header() as u16;
        }
        lookup::spread::<F>(&self.state, self.block.slots(), values, cx.vector);
    }

    /// Rewrites and sends the packets from a place on, with these next hops. `TAGS`: with VLAN tags, in or out.
    fn transmit<const TAGS: bool>(
        &self,
        start: usize,
        from: Ingress,
        values: &[u32],
        cx: &mut Context<'_, N>,
    ) {
        let mut place = start;
        while place < values.len() {
            place += self.transmit_run::<TAGS>(place, from, values, cx);
            if let Some(&value) = values.get(place) {
                self.transmit_one::<TAGS>(place, from, value, cx);
                place += 1;
            }
        }
    }

    /// Does so with those that need nothing else, and returns how many. The loop calls nothing, so that what it needs stays in
    /// registers.
    #[inline(never)]
    fn transmit_run<const TAGS: bool>(
        &self,
        start: usize,
        from: Ingress,
        values: &[u32],
        cx: &mut Context<'_, N>,
    ) -> usize {
        let next_hops = self.state.next_hops.reader();
        let header = if TAGS { from.header() } else { HEADER };
        let slots = self.block.slots().get(start..).unwrap_or_default();
        let mut sent = 0;
        for (&slot, &value) in slots.iter().zip(values.get(start..).unwrap_or_default()) {
            let hop = next_hops.words(value);
            let place = &mut cx.vector.buffers[usize::from(slot)];
            let Some(mut buffer) = place.take() else { break };
            let room = if hop.is_stale() { None } else { cx.exits.room(hop.port()) };
            match room {
                Some(room) if rewrite::write::<F, false, TAGS>(hop, &mut buffer, header) => {
                    room.put(buffer);
                }
                _ => {
                    // The place is empty. Forgetting the nothing in it spares a look whether to drop it.
                    std::mem::forget(place.replace(buffer));
                    break;
                }
            }
            sent += 1;
        }
        sent
    }

    /// The same with one packet, whatever it needs.
    fn transmit_one<const TAGS: bool>(
        &self,
        place: usize,
        from: Ingress,
        value: u32,
        cx: &mut Context<'_, N>,
    ) {
        let Some(&slot) = self.block.slots().get(place) else { return };
        let hop = self.state.next_hops.reader().words(value);
        let header = if TAGS { from.header() } else { HEADER };
        let Some(buffer) = cx.vector.buffer_mut(slot) else { return };
        if !rewrite::write::<F, false, TAGS>(hop, buffer, header) {
            return self.leave(place, value, from, cx);
        }
        if hop.is_stale() {
            self.state.next_hops.mark_used(value);
        }
        cx.transmit(slot, hop.port());
    }

    /// Rewrites packets in slots one behind the other, and puts them into the transmit buffers of their ports together.
    /// Returns how many: up to one that needs something else. `first`: the first one's next hop.
    fn transmit_row(&self, first: Words, values: &[u32], cx: &mut Context<'_, N>) -> usize {
        let start = self.block.slots().first().map_or(0, |slot| usize::from(*slot));
        let Some(row) = cx.vector.buffers.get_mut(start..start + values.len()) else { return 0 };
        if alike(values) {
            let sent = write_alike::<F>(first, row);
            cx.transmit_all(start..start + sent, first.port());
            return sent;
        }
        let mut ports = [PortId::NONE; BLOCK];
        let sent = write_row::<F>(self.state.next_hops.reader(), values, row, &mut ports);
        let ports = &ports[..sent.min(BLOCK)];
        match ports {
            [port, ..] if alike(ports) => cx.transmit_all(start..start + sent, *port),
            _ => cx.transmit_each(start, ports),
        }
        sent
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
            cx.send(slot, self.edges.rewrite);
        } else if let Some(&key) = self.block.keys().get(place) {
            // The look-up knows what a reserved index says.
            note::<F, N>(slot, key, from, cx);
            cx.send(slot, self.edges.look_up);
        }
    }

    /// Sends the whole block to the nodes.
    #[inline(never)]
    fn send_on(&self, from: Ingress, cx: &mut Context<'_, N>) {
        let Edges { look_up, features, .. } = self.edges;
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

impl<N: Edge> ShortPath<V4, N> {
    /// The block, to be filled, and where the look-ups of its packets begin.
    #[inline]
    pub(super) fn gather(&mut self) -> (&mut Block<u32>, LpmRoot<'_>) {
        (&mut self.block, self.state.routes4.root())
    }

    /// Sends the packets at the front of these slots, which came in like this, if most seem to be to one address. Returns how many
    /// it sent: up to one that is to another, is not plain or needs something else.
    #[inline]
    pub(super) fn send_run(&self, from: Ingress, slots: &[Slot], cx: &mut Context<'_, N>) -> usize {
        let closed = self.closed | from.has_features() | from.is_tagged() | cx.traced;
        if closed || slots.len() < RUN || !is_row(slots) {
            return 0;
        }
        let start = slots.first().map_or(0, |slot| usize::from(*slot));
        let Some(row) = cx.vector.buffers.get_mut(start..start + slots.len()) else { return 0 };
        let Some(destination) = from.common_destination(row) else { return 0 };
        let mut values = [0];
        V4::look_up(&self.state, &[destination.swap_bytes()], &mut values);
        // Where a group or an answer is found, there is no plain next hop.
        let hop = self.state.next_hops.reader().words(values[0]);
        if !hop.is_plain_and_fresh() {
            return 0;
        }
        let sent = write_run(from, destination, hop, row);
        cx.transmit_all(start..start + sent, hop.port());
        sent
    }
}

/// Checks and rewrites IPv4 packets to one ordinary destination (as [`Ingress::plain4`] gives it), which has this next hop, and returns
/// how many: up to one that is to another, is not plain or needs something else. As in [`ShortPath::transmit_run`], the loop calls
/// nothing, and counts once.
#[inline(never)]
fn write_run(from: Ingress, destination: u32, hop: Words, row: &mut [Option<Buffer>]) -> usize {
    const HEADERS: usize = HEADER + ipv4::HEADER_LENGTH;
    let admits = |source: u32, to: u32| to == destination && is_ordinary4(source);
    let mut done = 0;
    while let Some(Some(buffer)) = row.get_mut(done) {
        if from.plain4::<HEADER, HEADERS>(buffer, admits).is_none()
            || !rewrite::write_leaving::<V4, false, false>(hop, buffer, HEADER)
        {
            break;
        }
        done += 1;
    }
    done
}

/// Rewrites packets without tags that have one next hop, and returns how many: up to one that needs something else. The loop is as
/// that of [`write_run`].
#[inline(never)]
fn write_alike<F: Family>(hop: Words, row: &mut [Option<Buffer>]) -> usize {
    if !hop.is_plain_and_fresh() {
        return 0;
    }
    let mut done = 0;
    while let Some(Some(buffer)) = row.get_mut(done) {
        if !rewrite::write_leaving::<F, false, false>(hop, buffer, HEADER) {
            break;
        }
        done += 1;
    }
    done
}

/// The same with packets that have next hops of their own; fills in the ports that they leave by.
#[inline(never)]
fn write_row<F: Family>(
    next_hops: Reader<'_>,
    values: &[u32],
    row: &mut [Option<Buffer>],
    ports: &mut [PortId],
) -> usize {
    let mut done = 0;
    for ((place, &value), port) in row.iter_mut().zip(values).zip(ports) {
        let hop = next_hops.words(value);
        let Some(buffer) = place else { break };
        if !hop.is_plain_and_fresh()
            || !rewrite::write_leaving::<F, false, false>(hop, buffer, HEADER)
        {
            break;
        }
        *port = hop.port();
        done += 1;
    }
    done
}

/// Whether all are equal.
#[inline]
fn alike<T: Copy + PartialEq>(list: &[T]) -> bool {
    let Some(&first) = list.first() else { return false };
    // Without a branch for each, so that the compiler compares several at once.
    list.iter().fold(true, |alike, one| alike & (*one == first))
}

/// Fills what the nodes want to know of a packet.
#[inline(always)]
fn note<F: Family, N: Edge>(slot: Slot, key: F::Key, from: Ingress, cx: &mut Context<'_, N>) {
    let at = usize::from(slot);
    cx.vector.interface[at] = from.interface();
    cx.vector.network[at] = from.header() as u16;
    F::note(cx.vector, slot, key);
}
