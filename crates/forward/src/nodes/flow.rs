//! `flow4-lookup`, `flow6-lookup`: exact match of the 5-tuple before the routes. A hit is rewritten
//! and sent as its entry says, a miss goes on to the longest-prefix match.
//!
//! Needs `network`; fills `next_hop`.

use graph::{CAPACITY, Context, Node, Slot, Vector};
use tables::NO_FLOW;

use super::family::{Family, Names};
use super::translate;
use super::translate_error::Quoting;
use crate::flow::{FlowReaders, TRANSLATED, Translation};

graph::edges! {
    /// Next nodes of a flow look-up; the names are the family's.
    pub(crate) Next {
        Rewrite => "rewrite",
        Lookup => "lookup",
    }
}

/// The node.
pub(crate) struct FlowLookup<F: Family> {
    readers: FlowReaders,
    family: std::marker::PhantomData<F>,
}

impl<F: Family> FlowLookup<F> {
    /// The node, reading these tables.
    #[must_use]
    pub(crate) fn new(readers: FlowReaders) -> Self {
        Self { readers, family: std::marker::PhantomData }
    }
}

impl<F: Family> FlowLookup<F> {
    /// Translates a packet, and returns its next hop. One that the rewrite will refuse stays as its sender made it, so that
    /// the ICMP error goes to the sender and quotes what it has sent.
    fn translate(&self, slot: Slot, number: u32, vector: &mut Vector) -> Option<u32> {
        let Translation { next_hop, rewrite } = self.readers.translations.get(number)?;
        let length = vector.buffer(slot).map_or(0, |buffer| buffer.len());
        let length = length - usize::from(vector.network[usize::from(slot)]).min(length);
        let mtu = self.readers.next_hops.reader().words(next_hop).mtu();
        let packet = vector.network_mut(slot);
        let too_big = length > usize::from(mtu) && F::too_big(packet, mtu).is_some();
        if !too_big && !F::is_last_hop(packet) {
            translate::apply(packet, &rewrite);
        }
        Some(next_hop)
    }

    /// Translates an ICMP error about a packet of a translated flow, and returns its next hop.
    fn translate_error(&self, slot: Slot, vector: &mut Vector) -> Option<u32> {
        let packet = vector.network_mut(slot);
        if !F::may_be_icmp(packet) {
            return None;
        }
        let error = Quoting::of(packet)?;
        let mut value = [NO_FLOW];
        F::look_up_flows(&self.readers, &[F::key_of(&error.answers)?], &mut value);
        let [value] = value;
        if value == NO_FLOW || value & TRANSLATED == 0 {
            return None;
        }
        let Translation { next_hop, rewrite } =
            self.readers.translations.get(value & !TRANSLATED)?;
        error.apply(packet, &rewrite);
        Some(next_hop)
    }
}

impl<F: Family> Node for FlowLookup<F> {
    type Next = Next;

    fn name(&self) -> &'static str {
        F::NAMES.flow
    }

    fn edges(&self) -> Vec<(Next, &'static str)> {
        let Names { rewrite: [rewrite, _], lookup: [lookup, _], .. } = F::NAMES;
        vec![(Next::Rewrite, rewrite), (Next::Lookup, lookup)]
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Next>) {
        let mut keys = [F::NO_KEY; CAPACITY];
        let mut values = [NO_FLOW; CAPACITY];
        let count = slots.len().min(CAPACITY);
        for (key, &slot) in keys.iter_mut().zip(slots) {
            *key = F::flow_key(cx.vector.network(slot));
        }
        F::look_up_flows(&self.readers, &keys[..count], &mut values[..count]);
        for (&slot, &value) in slots.iter().zip(&values) {
            let next_hop = if value == NO_FLOW {
                self.translate_error(slot, cx.vector)
            } else if value & TRANSLATED == 0 {
                Some(value)
            } else {
                self.translate(slot, value & !TRANSLATED, cx.vector)
            };
            match next_hop {
                Some(next_hop) => {
                    cx.vector.next_hop[usize::from(slot)] = next_hop;
                    cx.send(slot, Next::Rewrite);
                }
                None => cx.send(slot, Next::Lookup),
            }
        }
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        let mut value = [NO_FLOW];
        F::look_up_flows(&self.readers, &[F::flow_key(vector.network(slot))], &mut value);
        match value[0] {
            NO_FLOW => "no flow matches".to_owned(),
            value if value & TRANSLATED != 0 => {
                format!("flow with translation {}", value & !TRANSLATED)
            }
            value => format!("flow with next hop {value}"),
        }
    }
}
