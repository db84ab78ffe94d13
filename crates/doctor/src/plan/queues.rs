//! Which worker polls which queue.

use std::collections::BTreeMap;

use super::{Mapping, Wanted, Worker};
use crate::cores::CoreSet;
use crate::machine::Machine;

/// Queues of a port at most, as the configuration allows.
const MOST_QUEUES: usize = 64;

/// The workers that may poll a port: those of its node, and of nodes without any port; all where its node has none.
fn home<'a>(port: &Wanted<'_>, wanted: &[Wanted<'_>], workers: &'a [Worker]) -> Vec<&'a Worker> {
    let near = |worker: &Worker| port.node.is_none_or(|node| node == worker.node);
    let spare = |worker: &Worker| {
        !wanted.iter().any(|other| other.node.is_none_or(|node| node == worker.node))
    };
    if !workers.iter().any(near) {
        return workers.iter().collect();
    }
    workers.iter().filter(|worker| near(worker) || spare(worker)).collect()
}

/// Every queue on a worker of its port's node, every worker with a queue, as far as the queues go.
pub(super) fn assign(machine: &Machine, wanted: &[Wanted<'_>], workers: &[Worker]) -> Vec<Mapping> {
    // Queues of each core so far.
    let mut loads: BTreeMap<u16, usize> = BTreeMap::new();
    let counts = counts(wanted, workers);
    let mut mappings = Vec::new();
    for (port, count) in wanted.iter().zip(counts) {
        let home = home(port, wanted, workers);
        let mut queues: Vec<u16> = Vec::new();
        for _ in 0..count {
            // The worker with the fewest queues of all, then of this port.
            let load = |core: u16| {
                let of_port = queues.iter().filter(|taken| **taken == core).count();
                (loads.get(&core).copied().unwrap_or_default(), of_port)
            };
            let Some(worker) = home.iter().min_by_key(|worker| load(worker.core)) else { break };
            *loads.entry(worker.core).or_default() += 1;
            queues.push(worker.core);
        }
        let shares = !has_queues(port) && home.len() > 1;
        mappings.push(Mapping {
            port: port.port.name.clone(),
            device: port.port.device.clone(),
            software_rss: home.iter().filter(|_| shares).map(|worker| worker.core).collect(),
            why: reason(machine, port, workers, &queues),
            queues,
        });
    }
    mappings
}

/// Only a card spreads flows over queues by itself.
fn has_queues(port: &Wanted<'_>) -> bool {
    port.port.kind == "pci"
}

/// Queues of each port: one, and more for cards by weight until every worker that may poll it has one.
fn counts(wanted: &[Wanted<'_>], workers: &[Worker]) -> Vec<usize> {
    let mut counts = vec![1_usize; wanted.len()];
    let mut nodes: Vec<Option<u16>> = wanted.iter().map(|port| port.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    for node in nodes {
        let ports: Vec<usize> = (0..wanted.len())
            .filter(|place| wanted.get(*place).is_some_and(|port| port.node == node))
            .collect();
        let Some(first) = ports.first().and_then(|place| wanted.get(*place)) else { continue };
        let home = home(first, wanted, workers).len();
        let total =
            |counts: &[usize]| ports.iter().filter_map(|place| counts.get(*place)).sum::<usize>();
        while total(&counts) < home {
            let cards = ports.iter().filter_map(|place| {
                let (port, count) = (wanted.get(*place)?, *counts.get(*place)?);
                let grows = has_queues(port) && count < MOST_QUEUES;
                grows.then_some((*place, u64::from(port.weight), count as u64))
            });
            // The card with the most weight for each queue.
            let Some((place, ..)) = cards.max_by(|a, b| (a.1 * b.2).cmp(&(b.1 * a.2))) else {
                break;
            };
            if let Some(count) = counts.get_mut(place) {
                *count += 1;
            }
        }
    }
    counts
}

fn reason(machine: &Machine, port: &Wanted<'_>, workers: &[Worker], queues: &[u16]) -> String {
    let spread = match (has_queues(port), queues.len()) {
        (true, 1) => "one queue",
        (true, _) => "the card spreads flows over the queues (RSS)",
        (false, _) => "a device with one queue",
    };
    let far = |node| {
        let elsewhere =
            workers.iter().filter(|worker| worker.node != node && queues.contains(&worker.core));
        elsewhere.map(|worker| worker.core).collect::<CoreSet>()
    };
    let place = match port.node {
        Some(node) if far(node).is_empty() => format!("all on its node {node}"),
        Some(node) => {
            format!("{} across sockets from its node {node}, at a loss", far(node).named())
        }
        None if machine.topology.nodes.len() < 2 => "there is one node".to_owned(),
        None => "its node is not known".to_owned(),
    };
    format!("{spread}; {place}")
}
