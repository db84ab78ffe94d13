//! Exact-match flows by the names of their ports.

use std::net::IpAddr;

use control::config::{Flow, FlowKey};
use forward::flow::{self, FlowRefusal, Rewrite};
use wire::Protocol;
use wire::flow::{FiveTuple, FiveTuple4, FiveTuple6};

use crate::daemon::Daemon;

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

impl Daemon {
    /// Enters flows: all of them or, on an error, none. Returns how many were new and how many
    /// replaced another.
    pub(crate) fn add_flows(&mut self, list: &[Flow]) -> Result<(usize, usize), FlowError> {
        let mut ready = Vec::with_capacity(list.len());
        for (at, flow) in list.iter().enumerate() {
            self.config.check_flow(flow).map_err(|error| FlowError::Unfit { at, error })?;
            ready.push(self.entry(flow).ok_or(FlowError::Family { at })?);
        }
        let interfaces = self.state.interfaces.load_full();
        let mut before = Vec::with_capacity(ready.len());
        for (at, flow) in ready.iter().enumerate() {
            let old = self.flows.get(&flow.tuple);
            if let Err(error) = self.flows.insert(flow, &interfaces) {
                for (new, old) in ready.iter().zip(before).rev() {
                    match old {
                        // It was there before, so it fits again.
                        Some(old) => drop(self.flows.insert(&old, &interfaces)),
                        None => drop(self.flows.remove(&new.tuple)),
                    }
                }
                return Err(FlowError::Refused { at, error });
            }
            before.push(old);
        }
        let replaced = before.iter().flatten().count();
        Ok((ready.len() - replaced, replaced))
    }

    /// A page of flows: those from a place of the tables on, and where the next page starts.
    pub(crate) fn flows_from(&self, place: usize, limit: usize) -> (Vec<Flow>, Option<usize>) {
        let mut flows = Vec::new();
        let mut rest = self.flows.iter_from(place);
        let mut next = None;
        for (behind, flow) in rest.by_ref().take(limit) {
            flows.push(self.shown(&flow));
            next = Some(behind);
        }
        (flows, next.filter(|_| rest.next().is_some()))
    }

    /// Removes those of the next `limit` flows in the tables that are not to be kept. Returns where to
    /// go on and how many went; `None`: there was no more.
    pub(crate) fn retain_flows(
        &mut self,
        place: usize,
        limit: usize,
        keep: impl Fn(&FiveTuple) -> bool,
    ) -> Option<(usize, u64)> {
        let page: Vec<(usize, FiveTuple)> =
            self.flows.iter_from(place).take(limit).map(|(at, flow)| (at, flow.tuple)).collect();
        let gone = page.iter().filter(|(_, tuple)| !keep(tuple));
        let removed = gone.map(|(_, tuple)| u64::from(self.flows.remove(tuple))).sum();
        page.last().map(|(behind, _)| (*behind, removed))
    }

    fn shown(&self, flow: &flow::Flow) -> Flow {
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
            egress_port: self.topology.interfaces.name(flow.egress).unwrap_or_default().to_owned(),
            source_mac: Some(flow.source_mac.into()),
            destination_mac: Some(flow.destination_mac.into()),
            new_source: flow.rewrite.source,
            new_destination: flow.rewrite.destination,
            new_source_port: flow.rewrite.source_port,
            new_destination_port: flow.rewrite.destination_port,
        }
    }

    fn entry(&self, flow: &Flow) -> Option<flow::Flow> {
        let port = self.ports.iter().find(|port| port.config.name == flow.egress_port)?;
        let zero = control::net::MacAddr::new([0; 6]);
        let source = flow.source_mac.unwrap_or(port.mac);
        let destination = flow.destination_mac.or(port.config.next_hop_mac).unwrap_or(zero);
        Some(flow::Flow {
            tuple: tuple(&flow.key())?,
            egress: self.topology.interfaces.get(&flow.egress_port)?,
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
