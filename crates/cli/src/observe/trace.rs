//! `millrace trace`

use std::collections::BTreeMap;

use serde_json::Value;

use control::api::{Trace, TraceStep};
use control::client::Client;

use crate::args;
use crate::failure::Failure;
use crate::output::{line, printable};

pub(crate) async fn run(client: &Client, json: bool, options: args::Trace) -> Result<(), Failure> {
    let request = Trace {
        count: options.count,
        port: options.port,
        host: options.host,
        protocol: options.protocol,
        transport_port: options.transport_port,
        timeout: options.timeout,
    };
    let mut lines = client.stream("/v1/trace", &request).await?.lines();
    if json {
        while let Some(step) = lines.next::<Value>().await? {
            line(step.to_string())?;
        }
        return Ok(());
    }
    let mut seen: BTreeMap<(u16, u32), u64> = BTreeMap::new();
    let mut current = None;
    while let Some(step) = lines.next::<TraceStep>().await? {
        let packet = (step.core, step.packet);
        let start = *seen.entry(packet).or_insert(step.time);
        if current != Some(packet) {
            line(format!("packet {} on core {}", step.packet, step.core))?;
            current = Some(packet);
        }
        let (node, what) = (printable(&step.node), printable(&step.seen));
        let after = step.time.saturating_sub(start);
        line(format!("  {after:>8} ns  {node:<18} {what}"))?;
        line(format!("               {:<18} {}", "", printable(&step.fate)))?;
    }
    if seen.is_empty() { line("no packet matched in this time") } else { Ok(()) }
}
