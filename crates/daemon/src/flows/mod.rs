//! Exact-match flows by the names of their ports.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::Bound;
use std::path::PathBuf;
use std::time::SystemTime;

use control::config::{Config, Flow, FlowKey};
use forward::flow::{self, FlowRefusal, Rewrite};
use forward::state::Interfaces;
use graph::InterfaceId;
use wire::Protocol;
use wire::flow::{FiveTuple, FiveTuple4, FiveTuple6};

use crate::ports::Ports;
use crate::routing::Routing;

/// Why a flow was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FlowError {
    #[error("flow {}: {error}", at + 1)]
    Unfit { at: usize, error: control::config::FlowError },
    #[error("flow {}: source and destination are of different families", at + 1)]
    Family { at: usize },
    #[error("flow {}: {error}", at + 1)]
    Refused { at: usize, error: FlowRefusal },
}

impl FlowError {
    /// The same about a longer list, in which `first` flows come before.
    pub(crate) fn behind(mut self, first: usize) -> Self {
        let (Self::Unfit { at, .. } | Self::Family { at } | Self::Refused { at, .. }) = &mut self;
        *at += first;
        self
    }
}

/// What names in flows mean.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    pub(crate) config: &'a Config,
    pub(crate) ports: &'a Ports,
    pub(crate) routing: &'a Routing,
}

/// A flow that was entered, and what was there before: to be taken back.
pub(crate) struct Entered {
    tuple: FiveTuple,
    before: Option<flow::Flow>,
}

impl Entered {
    /// Whether it replaced another.
    pub(crate) fn replaced(&self) -> bool {
        self.before.is_some()
    }

    /// Which flow it is.
    pub(crate) fn tuple(&self) -> &FiveTuple {
        &self.tuple
    }
}

/// The flow tables.
pub(crate) struct Flows {
    table: flow::Flows,
    /// The files whose flows are in the tables.
    files: Vec<Stamp>,
    /// Those that came by the API.
    asked: BTreeSet<FiveTuple>,
    /// Counted with each change of those.
    changes: u64,
}

/// What tells whether a file has changed.
pub(crate) type Stamp = (PathBuf, Option<SystemTime>, u64);

impl Flows {
    pub(crate) fn new(table: flow::Flows) -> Self {
        Self { table, files: Vec::new(), asked: BTreeSet::new(), changes: 0 }
    }

    /// Flows of IPv4 and of IPv6.
    pub(crate) fn len(&self) -> (usize, usize) {
        self.table.len()
    }

    /// Counted with each change of flows that came by the API.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Notes that flows came by the API.
    pub(crate) fn asked_for(&mut self, entered: &[Entered]) {
        self.changes += 1;
        self.asked.extend(entered.iter().map(|flow| flow.tuple));
    }

    /// The next `limit` of the flows that came by the API, and the last that was looked at; `after`: the last of before.
    pub(crate) fn asked(
        &self,
        (config, ports, routing): (&Config, &Ports, &Routing),
        after: Option<FiveTuple>,
        limit: usize,
    ) -> (Vec<Flow>, Option<FiveTuple>) {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let part: Vec<&FiveTuple> =
            self.asked.range((from, Bound::Unbounded)).take(limit).collect();
        let flows = part.iter().filter_map(|tuple| {
            let mut flow = shown(routing, &self.table.get(tuple)?);
            let Some(port) = ports.get(&flow.egress_port) else { return Some(flow) };
            // What the port gave it, the port gives it again.
            let fixed = config.port(&flow.egress_port).and_then(|port| port.next_hop_mac);
            flow.source_mac = flow.source_mac.filter(|mac| *mac != port.mac);
            let given = fixed.unwrap_or(control::net::MacAddr::new([0; 6]));
            flow.destination_mac = flow.destination_mac.filter(|mac| *mac != given);
            Some(flow)
        });
        (flows.collect(), part.last().map(|tuple| **tuple))
    }

    /// The files whose flows are in the tables.
    pub(crate) fn files(&self) -> &[Stamp] {
        &self.files
    }

    /// Notes the files whose flows, and no others, are in the tables.
    pub(crate) fn set_files(&mut self, files: Vec<Stamp>) {
        self.files = files;
        self.asked.clear();
        self.changes += 1;
    }

    /// Whether a flow is there.
    pub(crate) fn has(&self, tuple: &FiveTuple) -> bool {
        self.table.get(tuple).is_some()
    }

    /// Removes a flow. `false`: it was not there.
    pub(crate) fn remove(&mut self, tuple: &FiveTuple) -> bool {
        self.forget(tuple);
        self.table.remove(tuple)
    }

    fn forget(&mut self, tuple: &FiveTuple) {
        self.changes += u64::from(self.asked.remove(tuple));
    }

    /// Interfaces that flows leave by, those too that are not there.
    pub(crate) fn egresses(&self) -> impl Iterator<Item = InterfaceId> + '_ {
        self.table.egresses()
    }

    /// Ports came or went.
    pub(crate) fn show_interfaces(&mut self, interfaces: &Interfaces) {
        self.table.set_interfaces(interfaces);
    }

    /// Enters flows: all of them or, on an error, none.
    pub(crate) fn add(
        &mut self,
        names: Names<'_>,
        list: &[Flow],
    ) -> Result<Vec<Entered>, FlowError> {
        let mut ready = Vec::with_capacity(list.len());
        for (at, flow) in list.iter().enumerate() {
            names.config.check_flow(flow).map_err(|error| FlowError::Unfit { at, error })?;
            ready.push(entry(names, flow).ok_or(FlowError::Family { at })?);
        }
        let interfaces = names.routing.interfaces();
        let mut entered = Vec::with_capacity(ready.len());
        for (at, flow) in ready.iter().enumerate() {
            let before = self.table.get(&flow.tuple);
            if let Err(error) = self.table.insert(flow, &interfaces) {
                self.take_back(entered, &interfaces);
                return Err(FlowError::Refused { at, error });
            }
            entered.push(Entered { tuple: flow.tuple, before });
        }
        Ok(entered)
    }

    /// Takes back what was entered, the last first.
    pub(crate) fn take_back(&mut self, entered: Vec<Entered>, interfaces: &Interfaces) {
        for Entered { tuple, before } in entered.into_iter().rev() {
            match before {
                // It was there before, so it fits again.
                Some(before) => drop(self.table.put_back(&before, interfaces)),
                None => drop(self.table.remove(&tuple)),
            }
        }
    }

    /// A page of flows: those from a place of the tables on, and where the next page starts.
    pub(crate) fn page(
        &self,
        routing: &Routing,
        place: usize,
        limit: usize,
    ) -> (Vec<Flow>, Option<usize>) {
        let mut flows = Vec::new();
        let mut rest = self.table.iter_from(place);
        let mut next = None;
        for (behind, flow) in rest.by_ref().take(limit) {
            flows.push(shown(routing, &flow));
            next = Some(behind);
        }
        (flows, next.filter(|_| rest.next().is_some()))
    }

    /// Removes those of the next `limit` flows in the tables that are not to be kept. Returns where to
    /// go on and how many went; `None`: there was no more.
    pub(crate) fn retain(
        &mut self,
        place: usize,
        limit: usize,
        keep: impl Fn(&FiveTuple) -> bool,
    ) -> Option<(usize, u64)> {
        let page: Vec<(usize, FiveTuple)> =
            self.table.iter_from(place).take(limit).map(|(at, flow)| (at, flow.tuple)).collect();
        let gone = page.iter().filter(|(_, tuple)| !keep(tuple));
        let removed = gone.map(|(_, tuple)| u64::from(self.remove(tuple))).sum();
        page.last().map(|(behind, _)| (*behind, removed))
    }
}

fn shown(routing: &Routing, flow: &flow::Flow) -> Flow {
    let (source, destination, source_port, destination_port, protocol) = match &flow.tuple {
        FiveTuple::V4(t) => {
            let (from, to) = (t.source().into(), t.destination().into());
            (from, to, t.source_port(), t.destination_port(), t.protocol())
        }
        FiveTuple::V6(t) => {
            let (from, to) = (t.source().into(), t.destination().into());
            (from, to, t.source_port(), t.destination_port(), t.protocol())
        }
    };
    Flow {
        source,
        destination,
        protocol: protocol.0,
        source_port,
        destination_port,
        egress_port: routing.topology().interface_name(flow.egress).unwrap_or_default().to_owned(),
        source_mac: Some(flow.source_mac.into()),
        destination_mac: Some(flow.destination_mac.into()),
        new_source: flow.rewrite.source,
        new_destination: flow.rewrite.destination,
        new_source_port: flow.rewrite.source_port,
        new_destination_port: flow.rewrite.destination_port,
    }
}

fn entry(names: Names<'_>, flow: &Flow) -> Option<flow::Flow> {
    let port = names.ports.get(&flow.egress_port)?;
    let zero = control::net::MacAddr::new([0; 6]);
    let source = flow.source_mac.unwrap_or(port.mac);
    let destination = flow.destination_mac.or(port.config.next_hop_mac).unwrap_or(zero);
    Some(flow::Flow {
        tuple: tuple(&flow.key())?,
        egress: names.routing.topology().interface(&flow.egress_port)?,
        source_mac: source.into(),
        destination_mac: destination.into(),
        rewrite: Rewrite {
            source: flow.new_source,
            destination: flow.new_destination,
            source_port: flow.new_source_port,
            destination_port: flow.new_destination_port,
        },
    })
}

/// The five-tuple of a key; `None`: its addresses are of different families.
pub(crate) fn tuple(key: &FlowKey) -> Option<FiveTuple> {
    let (from, to) = (key.source_port, key.destination_port);
    let protocol = Protocol(key.protocol);
    match (key.source, key.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            Some(FiveTuple::V4(FiveTuple4::new((source, from), (destination, to), protocol)))
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            Some(FiveTuple::V6(FiveTuple6::new((source, from), (destination, to), protocol)))
        }
        _ => None,
    }
}
