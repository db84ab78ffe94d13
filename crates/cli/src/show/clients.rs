//! `millrace show clients`

use control::api::{Client, ClientCounters, ClientQueues};

use super::watch::Watched;
use crate::failure::Failure;
use crate::output::{Table, printable};
use crate::units::{age, bit_rate, bytes, count, packet_rate};

/// `millrace show clients`
pub(super) struct Clients;

impl Watched for Clients {
    type Row = Client;
    const PATH: &'static str = "/v1/clients";

    fn totals(&self, clients: &[Client]) -> Result<(), Failure> {
        let mut table = Table::new(&[
            "#client",
            "name",
            "#pid",
            "#uid",
            "#attached",
            "#memory",
            "ports",
            "take",
            "transfer",
            "#delivered",
            "#sent",
            "#full",
            "#skipped",
            "#refused",
        ]);
        for client in clients {
            // One without queues has a row of its own.
            let none = || "-".to_owned();
            let rows = client.queues.len().max(1);
            for queues in (0..rows).map(|at| client.queues.get(at)) {
                let counted = |of: fn(&ClientCounters) -> u64| {
                    queues.map_or_else(none, |queues| count(of(&queues.counters)))
                };
                table.row([
                    client.id.to_string(),
                    printable(&client.name),
                    client.pid.to_string(),
                    client.uid.to_string(),
                    format!("{} ago", age(client.age * 1_000)),
                    bytes(client.memory),
                    queues.map_or_else(none, ports),
                    queues.map_or_else(none, |queues| queues.take.clone()),
                    queues.map_or_else(none, |queues| queues.transfer.clone()),
                    counted(|c| c.delivered),
                    counted(|c| c.sent),
                    counted(|c| c.full),
                    counted(|c| c.skipped),
                    counted(wrong),
                ]);
            }
        }
        table.print("no client is attached")
    }

    fn rates(&self, before: &[Client], now: &[Client], seconds: f64) -> Result<(), Failure> {
        let mut table = Table::new(&[
            "#client",
            "name",
            "ports",
            "#delivered",
            "#rate",
            "#sent",
            "#rate",
            "#full",
            "#skipped",
            "#refused",
        ]);
        for client in now {
            let old = before.iter().find(|old| old.id == client.id);
            for queues in &client.queues {
                let same = |other: &&ClientQueues| other.number == queues.number;
                let old = old.and_then(|old| old.queues.iter().find(same));
                let old = old.map(|old| old.counters).unwrap_or_default();
                let c = &queues.counters;
                let packets = |a: u64, b: u64| packet_rate(a.saturating_sub(b), seconds);
                let bits = |a: u64, b: u64| bit_rate(a.saturating_sub(b), seconds);
                table.row([
                    client.id.to_string(),
                    printable(&client.name),
                    ports(queues),
                    packets(c.delivered, old.delivered),
                    bits(c.delivered_bytes, old.delivered_bytes),
                    packets(c.sent, old.sent),
                    bits(c.sent_bytes, old.sent_bytes),
                    packets(c.full, old.full),
                    packets(c.skipped, old.skipped),
                    packets(wrong(c), wrong(&old)),
                ]);
            }
        }
        table.print("no client has queues")
    }
}

fn ports(queues: &ClientQueues) -> String {
    let ports = queues.ports.join(",");
    match queues.queue {
        Some(queue) => format!("{ports} queue {queue}"),
        None if ports.is_empty() => "all".to_owned(),
        None => ports,
    }
}

/// What it sent and was not taken.
fn wrong(counters: &ClientCounters) -> u64 {
    counters.refused + counters.no_buffer + counters.malformed
}
