use super::*;
use crate::testbed::{Out, Outside, WithScript, number, numbered, pool};
use crate::{Graph, GraphBuilder, Handoff};

/// Packets 0 to 5: transmitted, punted, dropped, forgotten, refused before and freed, taken and sent again.
fn graph() -> Graph {
    GraphBuilder::default()
        .each("start", &["end", "end"], |slot, cx| cx.send(slot, Out::First))
        .each("end", &["again", "again"], |slot, cx| match number(cx, slot) {
            0 => cx.transmit(slot, PortId::new(1)),
            1 => cx.punt(slot, 9),
            2 => cx.drop(slot, Reason::Blackhole),
            3 => {}
            4 => cx.free(slot),
            _ => {
                let buffer = cx.take(slot).unwrap();
                cx.originate(Handoff::of(buffer), Out::First);
            }
        })
        .each("again", &[], |slot, cx| cx.drop(slot, Reason::NoPort))
        .build()
        .unwrap()
}

fn traced(options: TraceOptions) -> (Vec<Step>, bool, Outside) {
    let (mut graph, mut outside) = (graph(), Outside::new(2, u64::MAX, 64));
    let round = dpdk::tsc();
    let (tracer, mut steps) = trace(options);
    graph.set_tracer(Some(tracer));
    let mut vector = numbered(&pool(), 6);
    graph.enter(&vector, NodeId(0));
    graph.run(&mut vector, &mut outside.exits, round);
    let list: Vec<Step> = std::iter::from_fn(|| steps.pop().ok()).collect();
    let after = dpdk::tsc();
    let times = || list.iter().map(|step| step.time);
    assert!(times().is_sorted() && times().all(|time| (round..=after).contains(&time)));
    (list, steps.is_abandoned(), outside)
}

fn everything(packets: u32) -> TraceOptions {
    TraceOptions { filter: Filter::default(), packets, ring: 64 }
}

#[test]
fn tells_what_became_of_every_packet() {
    let (steps, over, outside) = traced(everything(7));
    let fates = |packet: u32| -> Vec<(&str, Fate)> {
        let of = steps.iter().filter(|step| step.packet == packet);
        of.map(|step| (step.node, step.fate)).collect()
    };
    let start = ("start", Fate::Next("end"));
    assert_eq!(fates(0), [start, ("end", Fate::Transmitted(PortId::new(1)))]);
    assert_eq!(fates(1), [start, ("end", Fate::Punted(9))]);
    assert_eq!(fates(2), [start, ("end", Fate::Dropped(Reason::Blackhole))]);
    assert_eq!(fates(3), [start, ("end", Fate::Dropped(Reason::Forgotten))]);
    assert_eq!(fates(4), [start, ("end", Fate::Freed)]);
    assert_eq!(fates(5), [start, ("end", Fate::Taken)]);
    assert_eq!(fates(6), [("again", Fate::Dropped(Reason::NoPort))]);
    assert!(steps.iter().all(|step| step.seen == "1 bytes"));
    // Each node began at a time of its own.
    let (first, last) = (steps.first().unwrap().time, steps.last().unwrap().time);
    assert!(first < last, "{steps:?}");
    assert!(over, "seven packets were asked for and seen to their end");
    assert_eq!(outside.counters.nodes[0].packets.get(), 6);
}

#[test]
fn follows_as_many_as_asked_and_the_others_still_flow() {
    let (steps, over, outside) = traced(everything(1));
    assert!(steps.iter().all(|step| step.packet == 0));
    assert_eq!(steps.len(), 2);
    assert!(over);
    assert_eq!(outside.drops(Reason::Blackhole), 1);
    assert_eq!(outside.counters.punts.get(), 1);
}

#[test]
fn goes_on_until_it_has_seen_enough() {
    assert!(!traced(everything(100)).1);
}

#[test]
fn a_filter_that_matches_nothing_follows_nothing() {
    let filter = Filter { port: Some(PortId::new(99)), ..Filter::default() };
    assert_eq!(traced(TraceOptions { filter, ..everything(5) }).0, []);
}

#[test]
fn a_full_ring_loses_steps_not_packets() {
    let (steps, _, outside) = traced(TraceOptions { ring: 3, ..everything(5) });
    assert_eq!(steps.len(), 3);
    assert_eq!(outside.drops(Reason::Forgotten), 1);
}
