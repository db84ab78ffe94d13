//! The flow tables as the control thread keeps them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use graph::{InterfaceId, PortId};
use tables::{Epoch, FlowReader, FlowTable, OutOfMemory};
use wire::MacAddr;
use wire::flow::{FiveTuple, FiveTuple4, FiveTuple6};

use super::{Flow, FlowRefusal, Rewrite, TRANSLATED, Translation, Translations};
use crate::indices::Indices;
use crate::state::{DEFAULT_VRF, Interfaces, Kind, NextHop, NextHops, NextNode};

/// What the workers read.
#[derive(Clone)]
pub struct FlowReaders {
    /// IPv4 flows.
    pub flows4: FlowReader<16>,
    /// IPv6 flows.
    pub flows6: FlowReader<40>,
    /// New addresses and ports.
    pub translations: Arc<Translations>,
    /// Where the packets go.
    pub next_hops: Arc<NextHops>,
}

/// Capacities; 0 turns a family off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowLimits {
    /// IPv4 flows.
    pub flows4: usize,
    /// IPv6 flows.
    pub flows6: usize,
    /// Flows with new addresses or ports.
    pub translations: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Adjacency {
    egress: InterfaceId,
    source: MacAddr,
    destination: MacAddr,
}

struct Shared {
    index: u32,
    flows: u32,
}

/// The flow tables, their next hops and their translations.
pub struct Flows {
    table4: FlowTable<16>,
    table6: FlowTable<40>,
    epoch: Epoch,
    next_hops: Arc<NextHops>,
    adjacencies: HashMap<Adjacency, Shared>,
    by_index: HashMap<u32, Adjacency>,
    hop_indices: Indices,
    hop_capacity: usize,
    translations: Arc<Translations>,
    translation_numbers: Indices,
    limits: FlowLimits,
}

impl Flows {
    /// Empty tables. `hops`: indices of `next_hops` that are the flows' own.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the system refuses the memory.
    pub fn new(
        limits: FlowLimits,
        next_hops: Arc<NextHops>,
        hops: Range<u32>,
        epoch: &Epoch,
    ) -> Result<Self, OutOfMemory> {
        let translations = u32::try_from(limits.translations).unwrap_or(TRANSLATED - 1);
        Ok(Self {
            table4: FlowTable::new(limits.flows4)?,
            table6: FlowTable::new(limits.flows6)?,
            epoch: epoch.clone(),
            next_hops,
            adjacencies: HashMap::new(),
            by_index: HashMap::new(),
            hop_capacity: hops.len(),
            hop_indices: Indices::new(hops.start, hops.end),
            translations: Arc::new(Translations::new(limits.translations)),
            translation_numbers: Indices::new(0, translations),
            limits,
        })
    }

    /// For the workers.
    #[must_use]
    pub fn readers(&self) -> FlowReaders {
        FlowReaders {
            flows4: self.table4.reader(),
            flows6: self.table6.reader(),
            translations: Arc::clone(&self.translations),
            next_hops: Arc::clone(&self.next_hops),
        }
    }

    /// Flows in the tables: (IPv4, IPv6).
    #[must_use]
    pub fn len(&self) -> (usize, usize) {
        (self.table4.len(), self.table6.len())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == (0, 0)
    }

    /// Enters a flow, in place of what its 5-tuple had before.
    ///
    /// # Errors
    /// [`FlowRefusal`]; what was there is kept.
    pub fn insert(&mut self, flow: &Flow, interfaces: &Interfaces) -> Result<(), FlowRefusal> {
        interfaces.get(flow.egress).ok_or(FlowRefusal::Egress(flow.egress))?;
        self.put_back(flow, interfaces)
    }

    /// Enters a flow that was in the tables before. Its egress need not be there: until it is, packets are dropped.
    ///
    /// # Errors
    /// As [`Self::insert`], but for the egress.
    pub fn put_back(&mut self, flow: &Flow, interfaces: &Interfaces) -> Result<(), FlowRefusal> {
        check_family(flow)?;
        let hop = self.hold_hop(flow, interfaces)?;
        let value = match self.hold_translation(hop, flow.rewrite) {
            Ok(value) => value,
            Err(refusal) => {
                self.release_hop(hop);
                return Err(refusal);
            }
        };
        let entered = match flow.tuple {
            FiveTuple::V4(tuple) => self.table4.insert(&tuple.key(), value),
            FiveTuple::V6(tuple) => self.table6.insert(&tuple.key(), value),
        };
        match entered {
            Ok(before) => {
                before.into_iter().for_each(|before| self.release(before));
                Ok(())
            }
            Err(_) => {
                self.release(value);
                Err(self.full(&flow.tuple))
            }
        }
    }

    /// Takes a flow out; whether it was there.
    pub fn remove(&mut self, tuple: &FiveTuple) -> bool {
        let before = match tuple {
            FiveTuple::V4(tuple) => self.table4.remove(&tuple.key()),
            FiveTuple::V6(tuple) => self.table6.remove(&tuple.key()),
        };
        before.into_iter().for_each(|before| self.release(before));
        before.is_some()
    }

    /// What a 5-tuple is to be done with, if it is in the table.
    #[must_use]
    pub fn get(&self, tuple: &FiveTuple) -> Option<Flow> {
        let value = match tuple {
            FiveTuple::V4(tuple) => self.table4.get(&tuple.key()),
            FiveTuple::V6(tuple) => self.table6.get(&tuple.key()),
        }?;
        self.flow(tuple, value)
    }

    /// Flows from a place in the tables on, in no order, each with the place behind it: where to go
    /// on another time. While flows are added, one may be seen twice or not at all.
    pub fn iter_from(&self, place: usize) -> impl Iterator<Item = (usize, Flow)> + '_ {
        let places4 = self.table4.places();
        let tuple4 = |(place, key, value)| (place, FiveTuple::V4(FiveTuple4::from_key(key)), value);
        let tuple6 = move |(place, key, value)| {
            (places4 + place, FiveTuple::V6(FiveTuple6::from_key(key)), value)
        };
        let first = self.table4.iter_from(place).map(tuple4);
        let second = self.table6.iter_from(place.saturating_sub(places4)).map(tuple6);
        let all = first.chain(second);
        all.filter_map(|(place, tuple, value)| Some((place, self.flow(&tuple, value)?)))
    }

    /// Interfaces that flows leave by, those too that are not there; some more than once.
    pub fn egresses(&self) -> impl Iterator<Item = InterfaceId> + '_ {
        self.adjacencies.keys().map(|adjacency| adjacency.egress)
    }

    fn flow(&self, tuple: &FiveTuple, value: u32) -> Option<Flow> {
        let (hop, rewrite) = self.resolve(value);
        let adjacency = self.by_index.get(&hop)?;
        Some(Flow {
            tuple: *tuple,
            egress: adjacency.egress,
            source_mac: adjacency.source,
            destination_mac: adjacency.destination,
            rewrite,
        })
    }

    /// Brings the flows' next hops up to date after a change of interfaces: those whose egress is
    /// gone, or in another VRF than the default one, drop their packets until it is back.
    pub fn set_interfaces(&mut self, interfaces: &Interfaces) {
        for (adjacency, shared) in &self.adjacencies {
            self.next_hops.set(shared.index, &hop_of(adjacency, interfaces));
        }
    }

    fn resolve(&self, value: u32) -> (u32, Rewrite) {
        if value & TRANSLATED == 0 {
            return (value, Rewrite::default());
        }
        let found = self.translations.get(value & !TRANSLATED);
        found.map_or((0, Rewrite::default()), |found| (found.next_hop, found.rewrite))
    }

    fn hold_hop(&mut self, flow: &Flow, interfaces: &Interfaces) -> Result<u32, FlowRefusal> {
        let adjacency = Adjacency {
            egress: flow.egress,
            source: flow.source_mac,
            destination: flow.destination_mac,
        };
        if let Some(shared) = self.adjacencies.get_mut(&adjacency) {
            shared.flows += 1;
            return Ok(shared.index);
        }
        self.hop_indices.reclaim(self.epoch.passed());
        let index = self.hop_indices.take().ok_or(FlowRefusal::NextHops(self.hop_capacity))?;
        self.next_hops.set(index, &hop_of(&adjacency, interfaces));
        self.adjacencies.insert(adjacency, Shared { index, flows: 1 });
        self.by_index.insert(index, adjacency);
        Ok(index)
    }

    fn hold_translation(&mut self, next_hop: u32, rewrite: Rewrite) -> Result<u32, FlowRefusal> {
        if rewrite.is_empty() {
            return Ok(next_hop);
        }
        self.translation_numbers.reclaim(self.epoch.passed());
        let number = self.translation_numbers.take();
        let number = number.ok_or(FlowRefusal::Translations(self.translations.capacity()))?;
        self.translations.set(number, &Translation { next_hop, rewrite });
        Ok(number | TRANSLATED)
    }

    fn release(&mut self, value: u32) {
        let (hop, _) = self.resolve(value);
        if value & TRANSLATED != 0 {
            self.translation_numbers.retire(value & !TRANSLATED, self.epoch.retire());
        }
        self.release_hop(hop);
    }

    fn release_hop(&mut self, index: u32) {
        let Some(adjacency) = self.by_index.get(&index) else { return };
        let Some(shared) = self.adjacencies.get_mut(adjacency) else { return };
        shared.flows -= 1;
        if shared.flows == 0 {
            self.adjacencies.remove(adjacency);
            self.by_index.remove(&index);
            self.hop_indices.retire(index, self.epoch.retire());
        }
    }

    fn full(&self, tuple: &FiveTuple) -> FlowRefusal {
        match tuple {
            FiveTuple::V4(_) => {
                FlowRefusal::Full { family: "IPv4", capacity: self.limits.flows4, key: "flows4" }
            }
            FiveTuple::V6(_) => {
                FlowRefusal::Full { family: "IPv6", capacity: self.limits.flows6, key: "flows6" }
            }
        }
    }
}

fn check_family(flow: &Flow) -> Result<(), FlowRefusal> {
    let six = matches!(flow.tuple, FiveTuple::V6(_));
    let new = [flow.rewrite.source, flow.rewrite.destination];
    match new.into_iter().flatten().find(|address| address.is_ipv6() != six) {
        Some(address) => Err(FlowRefusal::Family(address)),
        None => Ok(()),
    }
}

fn hop_of(adjacency: &Adjacency, interfaces: &Interfaces) -> NextHop {
    // Flows are of the default VRF: one whose egress has gone to another waits until it is back.
    let there = interfaces.get(adjacency.egress).filter(|found| found.vrf == DEFAULT_VRF);
    let Some(interface) = there else {
        return NextHop::of_kind(Kind::Blackhole);
    };
    NextHop {
        kind: Kind::Forward,
        next: if interface.port.is_some() { NextNode::Port } else { NextNode::Bridge },
        features: !interface.features.output().is_empty(),
        port: interface.port.unwrap_or(PortId::NONE),
        interface: adjacency.egress,
        mtu: interface.mtu,
        vlan: interface.vlan,
        destination: adjacency.destination,
        source: adjacency.source,
    }
}
