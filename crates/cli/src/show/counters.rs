//! `millrace show nodes` and `drops`

use control::api::{Drop, Node};

use super::watch::Watched;
use crate::failure::Failure;
use crate::output::Table;
use crate::units::{count, decimal, packet_rate};

/// `millrace show nodes`
pub(super) struct Nodes;

impl Watched for Nodes {
    type Row = Node;
    const PATH: &'static str = "/v1/nodes";

    fn totals(&self, nodes: &[Node]) -> Result<(), Failure> {
        let mut table =
            Table::new(&["node", "#core", "#packets", "#calls", "#packets/call", "#cycles/packet"]);
        for node in nodes.iter().filter(|node| node.vectors > 0) {
            table.row([
                node.node.clone(),
                node.core.to_string(),
                count(node.packets),
                count(node.vectors),
                decimal(node.packets_per_vector()),
                decimal(node.cycles_per_packet()),
            ]);
        }
        table.print("no node has seen a packet")
    }

    fn rates(&self, before: &[Node], now: &[Node], seconds: f64) -> Result<(), Failure> {
        let mut table =
            Table::new(&["node", "#core", "#packets", "#packets/call", "#cycles/packet"]);
        for node in now {
            let same = |old: &&Node| old.core == node.core && old.node == node.node;
            let mut new = node.clone();
            if let Some(old) = before.iter().find(same) {
                new.vectors = new.vectors.saturating_sub(old.vectors);
                new.packets = new.packets.saturating_sub(old.packets);
                new.sampled_packets = new.sampled_packets.saturating_sub(old.sampled_packets);
                new.sampled_cycles = new.sampled_cycles.saturating_sub(old.sampled_cycles);
            }
            if new.vectors > 0 {
                table.row([
                    new.node.clone(),
                    new.core.to_string(),
                    packet_rate(new.packets, seconds),
                    decimal(new.packets_per_vector()),
                    decimal(new.cycles_per_packet()),
                ]);
            }
        }
        table.print("no node has seen a packet in this time")
    }
}

/// `millrace show drops`
pub(super) struct Drops {
    /// Reasons without a packet too.
    pub(super) all: bool,
}

impl Watched for Drops {
    type Row = Drop;
    const PATH: &'static str = "/v1/drops";

    fn totals(&self, drops: &[Drop]) -> Result<(), Failure> {
        let mut table = Table::new(&["reason", "#packets", "meaning"]);
        for drop in drops.iter().filter(|drop| self.all || drop.packets > 0) {
            table.row([drop.reason.clone(), count(drop.packets), drop.meaning.clone()]);
        }
        table.print("no packet was dropped")
    }

    fn rates(&self, before: &[Drop], now: &[Drop], seconds: f64) -> Result<(), Failure> {
        let mut table = Table::new(&["reason", "#packets", "meaning"]);
        for drop in now {
            let old = before.iter().find(|old| old.reason == drop.reason);
            let new = drop.packets.saturating_sub(old.map_or(0, |old| old.packets));
            if self.all || new > 0 {
                let rate = packet_rate(new, seconds);
                table.row([drop.reason.clone(), rate, drop.meaning.clone()]);
            }
        }
        table.print("no packet was dropped in this time")
    }
}
