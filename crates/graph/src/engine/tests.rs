use super::*;
use crate::testbed::{Out, Outside, WithScript, number, numbered, own_pool, packet, pool};
use crate::{Entry, Handoff, IcmpError, InterfaceId, PortId, StackId};

fn run(graph: &mut Graph, vector: &mut Vector, outside: &mut Outside) {
    graph.enter(vector, NodeId(0));
    graph.run(vector, &mut outside.exits, 0);
    assert!(vector.is_empty());
    outside.exits.output.flush(&outside.counters);
}

#[test]
fn slots_keep_their_order_on_every_way() {
    let split = |slot, cx: &mut Context<'_, Out>| {
        let edge = if number(cx, slot) % 2 == 0 { Out::First } else { Out::Second };
        cx.send(slot, edge);
    };
    let mut graph = GraphBuilder::default()
        .each("split", &["even", "odd"], split)
        .each("even", &["end", "end"], |slot, cx| cx.send(slot, Out::First))
        .each("odd", &["end", "end"], |slot, cx| cx.send_all(&[slot], Out::Second))
        .each("end", &[], |slot, cx| cx.transmit(slot, PortId::new(0)))
        .build()
        .unwrap();
    let mut outside = Outside::new(1, 0, 64);
    run(&mut graph, &mut numbered(&pool(), 8), &mut outside);
    assert_eq!(outside.sent(0), [0, 2, 4, 6, 1, 3, 5, 7]);
    let nodes = &outside.counters.nodes;
    assert_eq!([0, 1, 2, 3].map(|at| nodes[at].packets.get()), [8, 4, 4, 8]);
    assert_eq!(nodes[3].vectors.get(), 1, "both halves met in one list");
}

#[test]
fn a_detour_ends_where_the_node_that_began_it_says() {
    let split = |slot, cx: &mut Context<'_, Out>| {
        let edge = if number(cx, slot) % 2 == 0 { Out::First } else { Out::Second };
        cx.send(slot, edge);
    };
    let mut graph = GraphBuilder::default()
        .each("split", &["to even", "to odd"], split)
        .each("to even", &["arc", "even"], |slot, cx| cx.detour(slot, Out::First, Out::Second))
        .each("to odd", &["arc", "odd"], |slot, cx| cx.detour(slot, Out::First, Out::Second))
        .each("arc", &["arc end", "arc end"], |slot, cx| cx.send(slot, Out::First))
        .each("arc end", &[], |slot, cx| cx.resume(slot))
        .each("even", &[], |slot, cx| cx.transmit(slot, PortId::new(0)))
        .each("odd", &[], |slot, cx| cx.transmit(slot, PortId::new(1)))
        .build()
        .unwrap();
    let mut outside = Outside::new(2, 0, 64);
    run(&mut graph, &mut numbered(&pool(), 6), &mut outside);
    assert_eq!((outside.sent(0), outside.sent(1)), (vec![0, 2, 4], vec![1, 3, 5]));
    assert_eq!(outside.counters.nodes[3].packets.get(), 6);
}

#[test]
fn a_full_vector_goes_through() {
    let mut graph = GraphBuilder::default()
        .each("start", &["end", "end"], |slot, cx| cx.send(slot, Out::First))
        .each("end", &[], |slot, cx| cx.transmit(slot, PortId::new(0)))
        .build()
        .unwrap();
    let mut outside = Outside::new(1, 0, 256);
    let mut vector = numbered(&pool(), 255);
    assert!(vector.push(packet(&pool(), &[255])).is_ok());
    assert!(vector.push(packet(&pool(), &[0])).is_err(), "no 257th slot");
    run(&mut graph, &mut vector, &mut outside);
    assert_eq!(outside.sent(0), (0..=255).collect::<Vec<u8>>());
}

#[test]
fn a_forgotten_slot_is_freed_and_counted() {
    let pool = own_pool("forgotten", 15);
    let mut graph = GraphBuilder::default()
        .each("start", &[], |slot, cx| {
            if slot != 3 {
                cx.drop(slot, Reason::Blackhole);
            }
        })
        .build()
        .unwrap();
    let mut outside = Outside::new(0, 0, 1);
    run(&mut graph, &mut numbered(&pool, 5), &mut outside);
    assert_eq!(outside.drops(Reason::Forgotten), 1);
    assert_eq!(outside.drops(Reason::Blackhole), 4);
    assert_eq!(pool.available(), 15);
}

#[test]
fn a_loop_ends() {
    let pool = own_pool("loop", 15);
    let mut graph = GraphBuilder::default()
        .each("there", &["back", "back"], |slot, cx| cx.send(slot, Out::First))
        .each("back", &["there", "there"], |slot, cx| cx.send(slot, Out::First))
        .build()
        .unwrap();
    let mut outside = Outside::new(0, 0, 1);
    run(&mut graph, &mut numbered(&pool, 5), &mut outside);
    assert_eq!(outside.drops(Reason::Loop), 5);
    assert_eq!(pool.available(), 15);
    // The next vector starts afresh.
    run(&mut graph, &mut numbered(&pool, 5), &mut outside);
    assert_eq!(outside.drops(Reason::Loop), 10);
}

#[test]
fn originated_packets_run_in_the_same_round() {
    let pool = pool();
    let mut graph = GraphBuilder::default()
        .each("start", &["end", "end"], move |slot, cx| {
            let mut copy = Handoff::of(packet(&pool, &[100 + slot]));
            copy.next_hop = 7;
            cx.originate(copy, Out::First);
            cx.drop(slot, Reason::Blackhole);
        })
        .each("end", &[], |slot, cx| {
            assert_eq!(cx.vector.next_hop[usize::from(slot)], 7);
            cx.transmit(slot, PortId::new(0));
        })
        .build()
        .unwrap();
    let mut outside = Outside::new(1, 0, 64);
    run(&mut graph, &mut numbered(&pool, 3), &mut outside);
    assert_eq!(outside.sent(0), [100, 101, 102]);
}

#[test]
fn a_node_that_multiplies_packets_without_end_is_stopped() {
    let pool = own_pool("multiply", 1023);
    let source = pool;
    let mut graph = GraphBuilder::default()
        .each("start", &["start", "start"], move |slot, cx| {
            for _ in 0..2 {
                if let Some(buffer) = source.alloc() {
                    cx.originate(Handoff::of(buffer), Out::First);
                }
            }
            cx.drop(slot, Reason::Blackhole);
        })
        .build()
        .unwrap();
    let mut outside = Outside::new(0, 0, 1);
    run(&mut graph, &mut numbered(&pool, 5), &mut outside);
    assert!(outside.drops(Reason::Loop) > 0);
    assert_eq!(pool.available(), 1023);
}

const ERROR: IcmpError = IcmpError { kind: 5, code: 6, detail: 7 };
const STACK: Option<StackId> = StackId::new(8, 9);

#[test]
fn handoffs_enter_at_their_own_node() {
    let pool = pool();
    let mut graph = GraphBuilder::default()
        .each("start", &[], |slot, cx| cx.drop(slot, Reason::Blackhole))
        .each("other", &[], |slot, cx| {
            let at = usize::from(slot);
            assert_eq!(
                (cx.vector.interface[at], cx.vector.egress[at]),
                (InterfaceId::new(1), InterfaceId::new(2))
            );
            assert_eq!((cx.vector.network[at], cx.vector.next_hop[at]), (3, 4));
            assert_eq!((cx.vector.icmp_error[at], cx.vector.stack[at]), (ERROR, STACK));
            cx.transmit(slot, PortId::new(0));
        })
        .build()
        .unwrap();
    let mut outside = Outside::new(1, 0, 64);
    let make = |node, n| Entry {
        node: NodeId(node),
        packet: Handoff {
            buffer: packet(&pool, &[n]),
            interface: InterfaceId::new(1),
            egress: InterfaceId::new(2),
            vrf: 3,
            network: 3,
            next_hop: 4,
            icmp_error: ERROR,
            stack: STACK,
        },
    };
    let mut packets = vec![make(1, 10), make(0, 11), make(99, 12), make(1, 13)].into_iter();
    let mut vector = Vector::new();
    let taken = graph.admit(&mut vector, &mut outside.exits, |_| packets.next());
    assert_eq!(taken, 4);
    graph.run(&mut vector, &mut outside.exits, 0);
    outside.exits.output.flush(&outside.counters);
    assert_eq!(outside.sent(0), [10, 13]);
    assert_eq!(outside.drops(Reason::Blackhole), 1);
    assert_eq!(outside.drops(Reason::Forgotten), 1, "no node 99");
}

#[test]
fn punts_carry_what_is_known_and_a_full_ring_is_counted() {
    let mut graph = GraphBuilder::default()
        .each("start", &[], |slot, cx| {
            cx.vector.interface[usize::from(slot)] = InterfaceId::new(5);
            cx.punt(slot, 77);
        })
        .build()
        .unwrap();
    let mut outside = Outside::new(0, 0, 2);
    run(&mut graph, &mut numbered(&pool(), 3), &mut outside);
    let punt = outside.punts.pop().unwrap();
    let Handoff { interface, buffer, .. } = &punt.packet;
    assert_eq!((punt.cause, *interface, buffer.data()), (77, InterfaceId::new(5), &[0_u8][..]));
    assert_eq!((outside.counters.punts.get(), outside.drops(Reason::PuntFull)), (2, 1));
}

/// Says of one edge alone where it leads.
struct Unnamed;

impl Node for Unnamed {
    type Next = Out;

    fn name(&self) -> &'static str {
        "unnamed"
    }

    fn edges(&self) -> Vec<(Out, &'static str)> {
        vec![(Out::Second, "unnamed")]
    }

    fn process(&mut self, _: &[Slot], _: &mut Context<'_, Out>) {}

    fn describe(&self, _: &Vector, _: Slot) -> String {
        String::new()
    }
}

#[test]
fn wrong_graphs_are_refused() {
    let nothing = |_: Slot, _: &mut Context<'_, Out>| {};
    let build = |builder: GraphBuilder| builder.build().map(|_| ()).unwrap_err();
    let twice = GraphBuilder::default().each("a", &[], nothing).each("a", &[], nothing);
    assert_eq!(build(twice), GraphError::Duplicate("a"));
    let nowhere = GraphBuilder::default().each("a", &["b"], nothing);
    assert_eq!(build(nowhere), GraphError::UnknownTarget { from: "a", to: "b" });
    let unnamed = GraphBuilder::default().with(Unnamed);
    assert_eq!(build(unnamed), GraphError::Edges("unnamed"));
    let names: Vec<&'static str> =
        (0..65).map(|n| &*Box::leak(format!("n{n}").into_boxed_str())).collect();
    let many = names
        .iter()
        .fold(GraphBuilder::default(), |builder, name| builder.each(name, &[], nothing));
    assert_eq!(build(many), GraphError::TooManyNodes);
}
