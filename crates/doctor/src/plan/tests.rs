//! Plans for machines of every shape.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use proptest::prelude::*;

use super::*;
use crate::cores::CoreSet;
use crate::machine::{Core, Nic};

/// Nodes of some physical cores each, numbered as Intel's are: second threads behind all first ones.
fn machine(nodes: u16, per_node: u16, threads: u16, isolated: CoreSet) -> Machine {
    let mut machine = Machine::read("/nonexistent".as_ref(), None);
    let physical = nodes * per_node;
    let core = |number: u16| Core {
        number,
        node: number % physical / per_node,
        siblings: (0..threads).map(|thread| number % physical + thread * physical).collect(),
    };
    machine.topology.cores = (0..physical * threads).map(core).collect();
    let of_node = |node| {
        let cores = machine.topology.cores.iter().filter(|core| core.node == node);
        (node, cores.map(|core| core.number).collect())
    };
    machine.topology.nodes = (0..nodes).map(of_node).collect();
    machine.topology.isolated = Ok(isolated);
    machine.topology.nohz_full = Ok(CoreSet::default());
    machine
}

/// A port on a card of a node: kind, node, speed.
fn port(machine: &mut Machine, (kind, node, speed): (&str, u16, u32)) -> Port {
    if machine.nics.is_err() {
        machine.nics = Ok(Vec::new());
    }
    let nics = machine.nics.as_mut().unwrap();
    let address = format!("0000:{:02x}:00.0", nics.len());
    let name = format!("p{}", nics.len());
    nics.push(Nic {
        address: address.clone(),
        driver: None,
        interfaces: vec![name.clone()],
        default_route: false,
        is_virtual: false,
        node: Some(node),
        speed: (speed > 0).then_some(speed),
        link: None,
        capable: None,
        iommu: None,
    });
    let argument = if kind == "pci" { address } else { name.clone() };
    let device = format!("{kind}:{argument}");
    let cores = CoreSet::default();
    Port {
        name,
        device,
        kind: kind.into(),
        argument,
        speed: None,
        rx_descriptors: 0,
        tx_descriptors: 0,
        cores,
    }
}

fn cores(plan: &Plan) -> Vec<u16> {
    plan.workers.iter().map(|worker| worker.core).collect()
}

#[test]
fn two_sockets_with_a_card_each() {
    let mut machine = machine(2, 4, 2, "2-3,5-6,10-11".parse().unwrap());
    let ports = [port(&mut machine, ("pci", 0, 25_000)), port(&mut machine, ("pci", 1, 10_000))];
    let proposed = plan(&machine, &ports, None);
    // 25 Gbit/s deserve three cores, 10 one: isolated ones first, none of them 0 or its sibling 8.
    assert_eq!(cores(&proposed), [1, 2, 3, 5]);
    assert_eq!(proposed.ports[0].queues.len(), 3);
    assert_eq!(proposed.ports[1].queues, [5]);
    let text = proposed.to_string();
    assert!(
        text.contains("# core 5: node 1, like p1; isolated; leave its sibling 13 idle\n"),
        "{text}"
    );
    assert!(text.contains("# core 1: node 0, like p0; not isolated yet"), "{text}");
    assert!(text.contains("cores = [1, 2, 3, 5]\n"), "{text}");
    assert!(
        text.contains(
            "# isolate core 1: isolcpus=managed_irq,domain,1-3,5,9-11,13 nohz_full=1-3,5 rcu"
        ),
        "{text}"
    );
    assert!(text.contains("queues = [{ queue = 0, core = 5 }]\n"), "{text}");
}

#[test]
fn a_kernel_that_cannot_stop_the_tick_is_not_told_to() {
    let mut machine = machine(1, 2, 1, CoreSet::default());
    assert!(plan(&machine, &[], None).to_string().contains("domain,1 nohz_full=1 rcu_nocbs=1"));
    machine.topology.nohz_full = Machine::read("/nonexistent".as_ref(), None).topology.nohz_full;
    let text = plan(&machine, &[], None).to_string();
    assert!(text.contains("isolcpus=managed_irq,domain,1\n"), "{text}");
}

#[test]
fn a_sibling_that_works_is_not_called_idle() {
    let machine = machine(1, 2, 2, CoreSet::default());
    let whys = |count| {
        let proposed = plan(&machine, &[], NonZeroUsize::new(count));
        proposed.workers.into_iter().map(|worker| worker.why).collect::<Vec<_>>()
    };
    assert!(whys(1)[0].ends_with("; leave its sibling 3 idle"));
    assert!(whys(2).iter().all(|why| !why.contains("idle")));
    assert!(whys(2)[1].contains("shares its physical core"));
}

#[test]
fn without_a_core_on_its_node_a_port_is_polled_across() {
    let mut machine = machine(2, 1, 1, CoreSet::default());
    let ports = [port(&mut machine, ("pci", 0, 10_000))];
    let proposed = plan(&machine, &ports, None);
    assert_eq!(cores(&proposed), [1]);
    assert!(
        proposed.ports[0].why.contains("core 1 across sockets from its node 0"),
        "{proposed:?}"
    );
}

#[test]
fn devices_with_one_queue_are_shared_by_software() {
    let mut machine = machine(1, 4, 1, CoreSet::default());
    let ports = [port(&mut machine, ("afpacket", 0, 30_000))];
    let proposed = plan(&machine, &ports, None);
    assert_eq!(proposed.ports[0].queues.len(), 1);
    assert_eq!(proposed.ports[0].software_rss, [1, 2, 3]);
}

#[test]
fn the_card_of_the_default_route_stays_with_the_kernel() {
    let mut machine = machine(1, 4, 1, CoreSet::default());
    for _ in 0..2 {
        port(&mut machine, ("pci", 0, 10_000));
    }
    machine.nics.as_mut().unwrap()[0].default_route = true;
    let proposed = plan(&machine, &[], None);
    assert_eq!(proposed.ports.len(), 1);
    assert_eq!(proposed.ports[0].port, "p1");
    assert!(proposed.notes[0].starts_with("p0 (0000:00:00.0) carries the default route"));
}

#[test]
fn small_machines() {
    for (machine, wanted) in [
        (machine(1, 1, 1, CoreSet::default()), [0].as_slice()),
        (machine(1, 1, 2, CoreSet::default()), &[1]),
        (machine(1, 2, 1, CoreSet::default()), &[1]),
    ] {
        assert_eq!(cores(&plan(&machine, &[], None)), wanted);
    }
    let mut none = machine(1, 1, 1, CoreSet::default());
    none.topology.cores.clear();
    assert!(plan(&none, &[], NonZeroUsize::new(2)).workers.is_empty());
}

prop_compose! {
    fn any_machine()(nodes in 1..4_u16, per_node in 1..6_u16, threads in 1..4_u16, isolated in proptest::collection::vec(0..60_u16, 0..20),
        ports in proptest::collection::vec((prop_oneof![Just("pci"), Just("afpacket"), Just("null")], 0..4_u16, prop_oneof![Just(0), 1..100_000_u32]), 0..6),
    ) -> (Machine, Vec<Port>) {
        let mut machine = machine(nodes, per_node, threads, isolated.into_iter().collect());
        let ports = ports.into_iter().map(|given| port(&mut machine, given)).collect();
        (machine, ports)
    }
}

proptest! {
    #[test]
    fn plans_keep_the_rules((machine, ports) in any_machine(), count in 0..80_usize) {
        let asked = NonZeroUsize::new(count);
        let proposed = plan(&machine, &ports, asked);
        let workers = cores(&proposed);
        let online = machine.topology.online();
        // Cores that exist, each once; core 0 only where there is no other.
        prop_assert!(workers.iter().all(|core| online.contains(*core)));
        prop_assert_eq!(workers.iter().collect::<std::collections::BTreeSet<_>>().len(), workers.len());
        prop_assert!(!workers.contains(&0) || online.len() == 1);
        prop_assert!(!workers.is_empty());
        // No two on a physical core while another is free: the kernel's own is not.
        let mut shared: BTreeMap<Option<u16>, usize> = BTreeMap::new();
        for core in &machine.topology.cores {
            let taken = workers.contains(&core.number);
            *shared.entry(core.siblings.first()).or_default() += usize::from(taken);
        }
        let free = shared.iter().filter(|(first, taken)| **first != Some(0) && **taken == 0).count();
        let doubled = shared.values().any(|taken| *taken > 1);
        prop_assert!(free == 0 || !doubled, "{:?}", shared);
        // As many as were asked for, while there are cores that are not the kernel's.
        let usable = online.iter().filter(|core| !machine.topology.core(0).unwrap().siblings.contains(*core)).count();
        if usable > 0 && count > 0 {
            prop_assert_eq!(workers.len(), count.min(usable));
        }
        // Every queue on a worker; every worker with a queue, when a card can have more.
        let polled: Vec<u16> = proposed.ports.iter().flat_map(|port| &port.queues).copied().collect();
        prop_assert!(polled.iter().all(|core| workers.contains(core)));
        prop_assert!(proposed.ports.iter().all(|port| !port.queues.is_empty()));
        if !ports.is_empty() {
            prop_assert_eq!(proposed.ports.len(), ports.len());
            if ports.iter().all(|port| port.kind == "pci") {
                prop_assert!(workers.iter().all(|core| polled.contains(core)), "{:?}", proposed);
            }
        }
        // A port whose node has a worker is polled on no other node that has ports of its own.
        for (mapping, port) in proposed.ports.iter().zip(&ports) {
            let wanted = Wanted::of(&machine, port);
            let Some(node) = wanted.node else { continue };
            let home = proposed.workers.iter().any(|worker| worker.node == node);
            let others = |other: u16| ports.iter().any(|port| Wanted::of(&machine, port).node.is_none_or(|n| n == other));
            let far = mapping.queues.iter().map(|core| machine.topology.node_of(*core)).filter(|n| *n != node);
            prop_assert!(!home || far.into_iter().all(|other| !others(other)), "{:?}", proposed);
        }
    }
}
