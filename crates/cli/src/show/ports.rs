//! `millrace show ports`, `queues`, `cores`

use std::collections::BTreeMap;

use control::api::{Port, PortCounters, Queue};

use super::watch::Watched;
use crate::failure::Failure;
use crate::output::{Table, line, or_dash, printable, word, yes};
use crate::units::{bit_rate, bytes, count, packet_rate};

/// `millrace show ports`
pub(super) struct Ports;

impl Watched for Ports {
    type Row = Port;
    const PATH: &'static str = "/v1/ports";

    fn totals(&self, ports: &[Port]) -> Result<(), Failure> {
        let mut table = Table::new(&[
            "port",
            "#number",
            "state",
            "device",
            "mac",
            "#mtu",
            "#rx packets",
            "#rx bytes",
            "#tx packets",
            "#tx bytes",
            "#lost",
        ]);
        for port in ports {
            let c = &port.counters;
            table.row([
                port.name.clone(),
                or_dash(port.number),
                word(port.state),
                port.device.clone(),
                port.mac.to_string(),
                port.mtu.to_string(),
                count(c.rx_packets),
                bytes(c.rx_bytes),
                count(c.tx_packets),
                bytes(c.tx_bytes),
                count(lost(c)),
            ]);
        }
        table.print("no ports; declare them with [[port]] in the configuration")
    }

    fn rates(&self, before: &[Port], now: &[Port], seconds: f64) -> Result<(), Failure> {
        let mut table =
            Table::new(&["port", "state", "#rx packets", "#rx", "#tx packets", "#tx", "#lost"]);
        for port in now {
            let old = before.iter().find(|old| old.name == port.name);
            let old = old.map(|old| old.counters).unwrap_or_default();
            let c = &port.counters;
            let packets = |a: u64, b: u64| packet_rate(a.saturating_sub(b), seconds);
            let bits = |a: u64, b: u64| bit_rate(a.saturating_sub(b), seconds);
            table.row([
                port.name.clone(),
                word(port.state),
                packets(c.rx_packets, old.rx_packets),
                bits(c.rx_bytes, old.rx_bytes),
                packets(c.tx_packets, old.tx_packets),
                bits(c.tx_bytes, old.tx_bytes),
                packets(lost(c), lost(&old)),
            ]);
        }
        table.print("no ports")
    }
}

/// Packets that a port or its queues lost, either way.
fn lost(c: &PortCounters) -> u64 {
    c.rx_missed + c.rx_errors + c.rx_no_buffer + c.tx_dropped + c.tx_errors
}

/// Everything about one port.
pub(crate) fn one(port: &Port) -> Result<(), Failure> {
    let c = &port.counters;
    let speed =
        if port.speed == 0 { "-".into() } else { format!("{} Mbit/s", count(port.speed.into())) };
    let state = match port.reason.as_str() {
        "" => word(port.state),
        reason => format!("{}: {reason}", word(port.state)),
    };
    let rows = [
        ("port", port.name.clone()),
        ("state", state),
        ("device", port.device.clone()),
        ("driver", port.driver.clone()),
        ("MAC address", port.mac.to_string()),
        ("MTU", port.mtu.to_string()),
        ("promiscuous", yes(port.promiscuous)),
        ("speed", speed),
        ("NUMA node", or_dash(port.numa)),
        ("queues", format!("{} receive, {} transmit", port.rx_queues, port.tx_queues)),
        ("received", format!("{} packets, {}", count(c.rx_packets), bytes(c.rx_bytes))),
        ("  missed", count(c.rx_missed)),
        ("  errors", count(c.rx_errors)),
        ("  no buffer", count(c.rx_no_buffer)),
        ("sent", format!("{} packets, {}", count(c.tx_packets), bytes(c.tx_bytes))),
        ("  dropped", count(c.tx_dropped)),
        ("  errors", count(c.tx_errors)),
    ];
    let lines: Vec<_> =
        rows.iter().map(|(name, value)| format!("{name:<12} {}", printable(value))).collect();
    line(lines.join("\n"))
}

pub(super) fn queues(queues: Vec<Queue>) -> Result<(), Failure> {
    let mut table =
        Table::new(&["port", "#queue", "#core", "#descriptors", "software rss", "clients"]);
    for queue in queues {
        let cores: Vec<_> = queue.software_rss.iter().map(ToString::to_string).collect();
        table.row([
            queue.port,
            queue.queue.to_string(),
            queue.core.to_string(),
            queue.descriptors.to_string(),
            if cores.is_empty() { "-".into() } else { format!("cores {}", cores.join(", ")) },
            match (queue.client, queue.for_clients) {
                (Some(client), _) => format!("client {client}"),
                (None, true) => "free".into(),
                (None, false) => "-".into(),
            },
        ]);
    }
    table.print("no queues")
}

/// The same from the cores' side.
pub(super) fn cores(queues: Vec<Queue>) -> Result<(), Failure> {
    let mut cores: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for queue in queues {
        let name = format!("{}:{}", queue.port, queue.queue);
        for core in queue.software_rss.iter().filter(|core| **core != queue.core) {
            cores.entry(*core).or_default().push(format!("{name} (shared)"));
        }
        cores.entry(queue.core).or_default().push(name);
    }
    let mut table = Table::new(&["#core", "port:queue"]);
    for (core, queues) in cores {
        table.row([core.to_string(), queues.join(", ")]);
    }
    table.print("no core polls a queue")
}
