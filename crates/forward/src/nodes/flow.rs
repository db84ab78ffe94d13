//! `flow4-lookup`, `flow6-lookup`: exact match of the 5-tuple before the routes. A hit is rewritten
//! and sent as its entry says, a miss goes on to the longest-prefix match.
//!
//! Needs `network`; fills `next_hop`.

use graph::{CAPACITY, Context, Node, Slot, Vector};
use tables::NO_FLOW;

use super::family::Family;
use super::translate;
use crate::flow::{FlowReaders, TRANSLATED};

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

impl<F: Family> Node for FlowLookup<F> {
    type Next = Next;

    fn name(&self) -> &'static str {
        F::NAMES.flow
    }

    fn targets(&self) -> &'static [&'static str] {
        F::FLOW_TARGETS
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
            if value == NO_FLOW {
                cx.send(slot, Next::Lookup);
                continue;
            }
            let next_hop = if value & TRANSLATED == 0 {
                value
            } else {
                let found = self.readers.translations.get(value & !TRANSLATED);
                let Some(translation) = found else {
                    cx.send(slot, Next::Lookup);
                    continue;
                };
                translate::apply(cx.vector.network_mut(slot), &translation.rewrite);
                translation.next_hop
            };
            cx.vector.next_hop[usize::from(slot)] = next_hop;
            cx.send(slot, Next::Rewrite);
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
