//! Which cores get a worker.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use super::{Wanted, Worker};
use crate::cores::CoreSet;
use crate::machine::{Core, Machine};
use crate::root::Why;

/// What is free while workers are placed.
struct Free<'a> {
    machine: &'a Machine,
    isolated: CoreSet,
    /// Physical cores without a worker: their threads, the first choice first.
    whole: Vec<Vec<&'a Core>>,
    /// Threads beside a worker.
    shared: Vec<&'a Core>,
}

/// As many as are wanted: on physical cores of their own, on the nodes of the ports in proportion, isolated ones first.
pub(super) fn choose(
    machine: &Machine,
    wanted: &[Wanted<'_>],
    count: Option<NonZeroUsize>,
    notes: &mut Vec<String>,
) -> Vec<Worker> {
    let mut free = Free::of(machine);
    let whole = free.whole.len();
    let count = match count {
        Some(count) => count.get(),
        // Nobody knows what is to come: as the daemon's default.
        None if wanted.is_empty() => whole,
        None => free.deserved(wanted).min(whole),
    };
    if machine.topology.cores.is_empty() {
        notes.push("no core is known".into());
    }
    let mut workers: Vec<Worker> = Vec::new();
    while workers.len() < count {
        let Some(worker) = free.take(&nodes_by_need(wanted, &workers), wanted) else { break };
        workers.push(worker);
    }
    if workers.len() < count {
        notes.push(format!(
            "{count} workers were asked for; beside what the kernel keeps there are {}",
            workers.len()
        ));
    }
    if workers.len() > whole && whole > 0 {
        notes.push(format!("there are {whole} physical cores for {} workers, so that some share one: each is then slower", workers.len()));
    }
    let all: CoreSet = workers.iter().map(|worker| worker.core).collect();
    for worker in &mut workers {
        let idle = machine.topology.siblings(worker.core).without(&all);
        if !idle.is_empty() {
            worker.why.push_str(&format!("; leave its sibling {idle} idle"));
        }
    }
    let zero = CoreSet::from_iter([0]);
    let open = all.without(&free.isolated).without(&zero);
    if !open.is_empty() {
        // The parameters replace those that are there: they name what is isolated already, too.
        let siblings = all
            .iter()
            .flat_map(|core| machine.topology.core(core))
            .flat_map(|core| core.siblings.iter());
        let (list, quiet) = (siblings.collect::<CoreSet>().without(&zero), all.without(&zero));
        let mut note = format!("isolate {}: isolcpus=managed_irq,domain,{list}", open.named());
        // A kernel that cannot stop the tick does not know these.
        if !matches!(&machine.topology.nohz_full, Err(unread) if unread.why == Why::Missing) {
            note.push_str(&format!(" nohz_full={quiet} rcu_nocbs={quiet}"));
        }
        notes.push(note);
    }
    workers.sort_by_key(|worker| worker.core);
    workers
}

/// Nodes of ports, the one first whose ports have the fewest workers for their weight (D'Hondt's method).
fn nodes_by_need(wanted: &[Wanted<'_>], workers: &[Worker]) -> Vec<u16> {
    let mut weights: BTreeMap<u16, u64> = BTreeMap::new();
    for port in wanted {
        if let Some(node) = port.node {
            *weights.entry(node).or_default() += u64::from(port.weight);
        }
    }
    let mut nodes: Vec<_> = weights
        .into_iter()
        .map(|(node, weight)| {
            let placed = workers.iter().filter(|worker| worker.node == node).count() as u64;
            (node, weight, placed + 1)
        })
        .collect();
    // weight / divisor, in descending order.
    nodes.sort_by(|a, b| (b.1 * a.2).cmp(&(a.1 * b.2)));
    nodes.into_iter().map(|(node, ..)| node).collect()
}

impl<'a> Free<'a> {
    fn of(machine: &'a Machine) -> Self {
        let isolated = machine.topology.isolated.clone().unwrap_or_default();
        let mut physical: BTreeMap<Option<u16>, Vec<&Core>> = BTreeMap::new();
        for core in &machine.topology.cores {
            physical.entry(core.siblings.first()).or_default().push(core);
        }
        let mut whole: Vec<Vec<&Core>> = physical.into_values().collect();
        // The first physical core is the kernel's; where it is the only one, its other threads are left; else core 0 does both.
        let kernels = if whole.is_empty() { Vec::new() } else { whole.remove(0) };
        if whole.is_empty() {
            let rest: Vec<_> =
                kernels.iter().copied().skip(usize::from(kernels.len() > 1)).collect();
            whole.extend((!rest.is_empty()).then_some(rest));
        }
        for threads in &mut whole {
            threads.sort_by_key(|core| (!isolated.contains(core.number), core.number));
        }
        whole.sort_by_key(|threads| {
            threads.first().map(|core| (!isolated.contains(core.number), core.number))
        });
        Self { machine, isolated, whole, shared: Vec::new() }
    }

    /// One core for 10 Gbit/s of each port, as far as its node has physical cores; at least one.
    fn deserved(&self, wanted: &[Wanted<'_>]) -> usize {
        let mut nodes: BTreeMap<Option<u16>, usize> = BTreeMap::new();
        for port in wanted {
            let weight = nodes.entry(port.node).or_default();
            *weight = weight.saturating_add(port.weight as usize);
        }
        let there = |node: Option<u16>| {
            let on_node = |threads: &&Vec<&Core>| {
                node.is_none_or(|node| threads.first().is_some_and(|core| core.node == node))
            };
            self.whole.iter().filter(on_node).count()
        };
        nodes.into_iter().map(|(node, weight)| weight.min(there(node))).sum::<usize>().max(1)
    }

    /// The next core: a physical one on the first of the nodes that has one, then on any, then a thread beside a worker.
    fn take(&mut self, nodes: &[u16], wanted: &[Wanted<'_>]) -> Option<Worker> {
        let near =
            |core: &Core| nodes.iter().position(|node| *node == core.node).unwrap_or(nodes.len());
        let whole = self.whole.iter().enumerate();
        let best = whole
            .min_by_key(|(_, threads)| threads.first().map(|core| near(core)))
            .map(|(place, _)| place);
        if let Some(place) = best {
            let mut threads = self.whole.remove(place).into_iter();
            let core = threads.next()?;
            let why = self.reason(core, wanted);
            self.shared.extend(threads);
            return Some(Worker { core: core.number, node: core.node, why });
        }
        let best = self
            .shared
            .iter()
            .enumerate()
            .min_by_key(|(_, core)| near(core))
            .map(|(place, _)| place)?;
        let core = self.shared.remove(best);
        let why = format!(
            "{}; shares its physical core, as no other is free",
            self.on_node(core, wanted)
        );
        Some(Worker { core: core.number, node: core.node, why })
    }

    fn reason(&self, core: &Core, wanted: &[Wanted<'_>]) -> String {
        let isolated = self.isolated.contains(core.number);
        let isolated = if isolated { "isolated" } else { "not isolated yet" };
        format!("{}; {isolated}", self.on_node(core, wanted))
    }

    /// Whose node a core is on.
    fn on_node(&self, core: &Core, wanted: &[Wanted<'_>]) -> String {
        if self.machine.topology.nodes.len() < 2 {
            return "a physical core of its own".into();
        }
        let here = wanted.iter().filter(|port| port.node == Some(core.node));
        let names: Vec<_> = here.map(|port| port.port.name.as_str()).collect();
        match names.as_slice() {
            [] if wanted.iter().any(|port| port.node.is_some()) => format!(
                "node {}, where no port is, as the nodes of the ports have no core left",
                core.node
            ),
            [] => format!("node {}", core.node),
            names => format!("node {}, like {}", core.node, names.join(", ")),
        }
    }
}
