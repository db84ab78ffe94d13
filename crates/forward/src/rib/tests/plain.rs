//! What workers ought to see, from plain lists of interfaces, routes and neighbours.

use std::collections::BTreeMap;

use super::*;
use crate::rib::{Place, Prefix, Status, Target};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) own: IpAddr,
    pub(super) length: u8,
    pub(super) mac: MacAddr,
    pub(super) fixed: Option<MacAddr>,
}

/// A route that was given.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) metric: u32,
    pub(super) target: Target,
}

/// Everything, as plain lists.
pub(super) struct Model {
    pub(super) v6: bool,
    pub(super) ports: BTreeMap<InterfaceId, Port>,
    pub(super) routes: BTreeMap<Place, Given>,
    pub(super) neighbors: BTreeMap<(InterfaceId, IpAddr), Status>,
}

fn answer(kind: Kind) -> Vec<NextHop> {
    vec![NextHop::of_kind(kind)]
}

impl Model {
    fn hop(&self, on: InterfaceId, kind: Kind, destination: MacAddr) -> NextHop {
        let source = self.ports[&on].mac;
        let hop = NextHop::of_kind(kind);
        let port = PortId::new(on.number());
        NextHop { port, interface: on, mtu: 1500, destination, source, ..hop }
    }

    fn network(&self, port: &Port) -> Prefix {
        Prefix::containing(port.own, port.length).unwrap()
    }

    fn interface_of(&self, address: IpAddr) -> Option<InterfaceId> {
        let mut best: Option<(u8, InterfaceId)> = None;
        for (id, port) in &self.ports {
            if self.network(port).contains(address) && best.is_none_or(|(len, _)| port.length > len)
            {
                best = Some((port.length, *id));
            }
        }
        best.map(|(_, id)| id)
    }

    pub(super) fn is_own(&self, address: IpAddr) -> bool {
        self.ports.values().any(|port| port.own == address)
    }

    fn neighbor(&self, on: InterfaceId, address: IpAddr) -> (u8, NextHop) {
        match self.neighbors.get(&(on, address)) {
            None | Some(Status::Unresolved) => (1, self.hop(on, Kind::Unresolved, MacAddr::ZERO)),
            Some(Status::Failed) => (0, self.hop(on, Kind::HostUnreachable, MacAddr::ZERO)),
            Some(Status::Resolved { mac, stale: false }) => (2, self.hop(on, Kind::Forward, *mac)),
            Some(Status::Resolved { mac, stale: true }) => {
                (2, self.hop(on, Kind::ForwardStale, *mac))
            }
        }
    }

    fn target(&self, target: &Target) -> Option<Vec<NextHop>> {
        match target {
            Target::Blackhole => Some(answer(Kind::Blackhole)),
            Target::Unreachable => Some(answer(Kind::Unreachable)),
            Target::Local => Some(answer(Kind::Local)),
            Target::Broadcast | Target::Flood(_) => Some(answer(Kind::Broadcast)),
            // The VRFs' tests have a model of their own.
            Target::Vrf(_) => None,
            Target::Port(on) => self.ports.get(on).map(|port| match port.fixed {
                Some(mac) => vec![self.hop(*on, Kind::Forward, mac)],
                None => vec![self.hop(*on, Kind::Glean, MacAddr::ZERO)],
            }),
            Target::Via(via) => {
                let usable = via.iter().filter(|hop| !self.is_own(hop.address)).filter_map(|hop| {
                    let on = hop.interface.or_else(|| self.interface_of(hop.address))?;
                    self.ports.get(&on).map(|_| self.neighbor(on, hop.address))
                });
                let usable: Vec<_> = usable.collect();
                let best = usable.iter().map(|(rank, _)| *rank).max()?;
                let mut hops: Vec<_> = usable
                    .into_iter()
                    .filter(|(rank, _)| *rank == best)
                    .map(|(_, hop)| hop)
                    .collect();
                hops.sort_unstable_by_key(order);
                hops.dedup();
                Some(hops)
            }
        }
    }

    fn own(&self, prefix: Prefix) -> Option<Vec<NextHop>> {
        let host = prefix == Prefix::host(prefix.address());
        if host && self.is_own(prefix.address()) {
            return Some(answer(Kind::Local));
        }
        self.ports.values().find_map(|port| {
            let first = self.network(port).address() == prefix.address();
            match self.network(port) {
                Prefix::V4(net) if host => (first || prefix.address() == IpAddr::V4(net.last()))
                    .then(|| answer(Kind::Broadcast)),
                Prefix::V6(_) if host && first => Some(answer(Kind::Local)),
                _ => None,
            }
        })
    }

    fn connected(&self, prefix: Prefix) -> Option<Vec<NextHop>> {
        let port = self.ports.iter().find(|(_, port)| self.network(port) == prefix);
        port.map(|(id, _)| vec![self.hop(*id, Kind::Glean, MacAddr::ZERO)])
    }

    fn at(&self, prefix: Prefix) -> Option<Vec<NextHop>> {
        self.own(prefix)
            .or_else(|| self.connected(prefix))
            .or_else(|| self.given(prefix))
            .or_else(|| self.host(prefix))
    }

    fn given(&self, prefix: Prefix) -> Option<Vec<NextHop>> {
        let routes = self.routes.iter().filter(|(place, _)| place.prefix == prefix);
        let usable = routes.filter_map(|(place, given)| {
            Some(((place.distance, given.metric, place.source), self.target(&given.target)?))
        });
        usable.min_by_key(|(order, _)| *order).map(|(_, hops)| hops)
    }

    fn host(&self, prefix: Prefix) -> Option<Vec<NextHop>> {
        let address = prefix.address();
        if prefix != Prefix::host(address) {
            return None;
        }
        let mut hops = self.ports.keys().filter_map(|on| {
            let status = self.neighbors.get(&(*on, address))?;
            let on_link = self.around(address)? == [self.hop(*on, Kind::Glean, MacAddr::ZERO)];
            (on_link && *status != Status::Unresolved).then(|| vec![self.neighbor(*on, address).1])
        });
        hops.next_back()
    }

    fn around(&self, address: IpAddr) -> Option<Vec<NextHop>> {
        let width = if self.v6 { 128 } else { 32 };
        (0..width).rev().find_map(|length| self.at(Prefix::containing(address, length).unwrap()))
    }

    pub(super) fn look_up(&self, address: IpAddr) -> Vec<NextHop> {
        let found = self.at(Prefix::host(address)).or_else(|| self.around(address));
        found.unwrap_or_else(|| answer(Kind::MissUnreachable))
    }

    pub(super) fn valid(&self, target: &Target) -> bool {
        match target {
            Target::Port(on) => self.ports.contains_key(on),
            Target::Via(via) => via.iter().all(|hop| {
                let on = hop.interface.or_else(|| self.interface_of(hop.address));
                !self.is_own(hop.address) && on.is_some_and(|on| self.ports.contains_key(&on))
            }),
            _ => true,
        }
    }
}
