//! `millrace show stacks` and `millrace show listeners`

use control::api::{Listener, Stack, StackCounters, Transport};

use super::watch::Watched;
use crate::failure::Failure;
use crate::output::{Table, printable};
use crate::units::{age, bit_rate, bytes, count, packet_rate};

/// `millrace show stacks`
pub(super) struct Stacks;

impl Watched for Stacks {
    type Row = Stack;
    const PATH: &'static str = "/v1/sessions/stacks";

    fn totals(&self, stacks: &[Stack]) -> Result<(), Failure> {
        let mut table = Table::new(&[
            "#stack",
            "name",
            "#pid",
            "#uid",
            "runs",
            "#opened",
            "#memory",
            "#listeners",
            "ports",
            "#links",
            "#delivered",
            "#sent",
            "#full",
            "#refused",
            "#by links",
        ]);
        for stack in stacks {
            let c = &stack.counters;
            let opened = format!("{} ago", age(stack.age * 1_000));
            table.row([
                stack.number.to_string(),
                printable(&stack.name),
                stack.pid.to_string(),
                stack.uid.to_string(),
                stack.worker.map_or("inline".to_owned(), |number| format!("stack-{number}")),
                if stack.started { opened } else { "starting".to_owned() },
                bytes(stack.memory),
                stack.listeners.len().to_string(),
                if stack.leases.is_empty() { "-".to_owned() } else { stack.leases.join(",") },
                stack.links.len().to_string(),
                count(c.delivered),
                count(c.sent),
                count(c.full),
                count(c.wrong()),
                count(stack.tcp.link_refused),
            ]);
        }
        table.print("no process has a stack")
    }

    fn rates(&self, before: &[Stack], now: &[Stack], seconds: f64) -> Result<(), Failure> {
        let mut table = Table::new(&[
            "#stack",
            "name",
            "#pid",
            "#delivered",
            "#rate",
            "#sent",
            "#rate",
            "#full",
            "#refused",
        ]);
        for stack in now {
            let old = before.iter().find(|old| old.number == stack.number);
            let old = old.map(|old| old.counters.clone()).unwrap_or_default();
            let since =
                |of: fn(&StackCounters) -> u64| of(&stack.counters).saturating_sub(of(&old));
            table.row([
                stack.number.to_string(),
                printable(&stack.name),
                stack.pid.to_string(),
                packet_rate(since(|c| c.delivered), seconds),
                bit_rate(since(|c| c.delivered_bytes), seconds),
                packet_rate(since(|c| c.sent), seconds),
                bit_rate(since(|c| c.sent_bytes), seconds),
                packet_rate(since(|c| c.full), seconds),
                packet_rate(since(StackCounters::wrong), seconds),
            ]);
        }
        table.print("no process has a stack")
    }
}

/// `millrace show listeners`
pub(super) fn listeners(listeners: Vec<Listener>) -> Result<(), Failure> {
    let mut table = Table::new(&[
        "#listener",
        "protocol",
        "address",
        "#stack",
        "name",
        "#pid",
        "#uid",
        "#weight",
        "#share",
        "#waiting",
        "#backlog",
    ]);
    for listener in &listeners {
        let protocol = match listener.protocol {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
        };
        let only = if listener.only_v6 { " only" } else { "" };
        let head = |rest: [String; 8]| {
            let [stack, name, pid, uid, weight, share, waiting, most] = rest;
            let (number, protocol) = (listener.number.to_string(), protocol.to_owned());
            let address = format!("{}{only}", listener.address);
            [number, protocol, address, stack, name, pid, uid, weight, share, waiting, most]
        };
        for member in &listener.members {
            let share = 100.0 * f64::from(member.share) / 256.0;
            table.row(head([
                member.stack.to_string(),
                printable(&member.name),
                member.pid.to_string(),
                member.uid.to_string(),
                member.weight.to_string(),
                format!("{share:.1} %"),
                member.waiting.to_string(),
                member.backlog.map_or("-".to_owned(), |most| most.to_string()),
            ]));
        }
        let nobody = |stack: String, name: &str| {
            let [pid, uid, weight, share, waiting, most] = [(); 6].map(|()| "-".to_owned());
            head([stack, name.to_owned(), pid, uid, weight, share, waiting, most])
        };
        // Those that have flows still, and get no more.
        for stack in &listener.earlier {
            table.row(nobody(stack.to_string(), "leaving"));
        }
        // New connections wait for whoever accepts next.
        if listener.members.is_empty() {
            table.row(nobody("-".to_owned(), "vacant"));
        }
    }
    table.print("nothing is served")
}
