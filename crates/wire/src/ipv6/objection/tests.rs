use super::*;
use crate::ipv6::Fields;
use proptest::collection::vec;
use proptest::prelude::*;
use zerocopy::IntoBytes;

fn packet(to: &str, first: Protocol, payload: &[u8]) -> Vec<u8> {
    let fields = Fields {
        source: "2001:db8::1".parse().unwrap(),
        destination: to.parse().unwrap(),
        next_header: first,
        hop_limit: 64,
        traffic_class: 0,
        flow_label: 0,
    };
    [fields.header(payload.len() as u16).as_bytes(), payload].concat()
}

fn found(first: Protocol, payload: &[u8]) -> Option<Objection> {
    objection(&packet("2001:db8::2", first, payload))
}

const OPTIONS: Protocol = Protocol::DESTINATION_OPTIONS;

#[test]
fn what_every_node_may_skip_is_no_problem() {
    assert_eq!(found(Protocol::UDP, &[0; 8]), None);
    // Pad1, PadN, and an unknown option to be skipped.
    assert_eq!(found(OPTIONS, &[17, 0, 0, 1, 0, 0x3e, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    assert_eq!(found(Protocol::HOP_BY_HOP, &[58, 0, 5, 2, 0, 0, 1, 0]), None, "router alert");
    assert_eq!(found(Protocol::ROUTING, &[17, 0, 0, 0, 0, 0, 0, 0]), None, "the route's end");
    assert_eq!(found(Protocol::ESP, &[0xff; 16]), None, "nothing behind it can be read");
}

#[test]
fn an_unknown_option_says_itself_what_becomes_of_the_packet() {
    let with =
        |to: &str, kind: u8| objection(&packet(to, OPTIONS, &[17, 0, 1, 0, kind, 2, 0xff, 0xff]));
    let told = Some(Objection { code: Some(2), pointer: 44 });
    let silent = Some(Objection { code: None, pointer: 44 });
    for (kind, of_one, of_group) in
        [(0x07, None, None), (0x47, silent, silent), (0x87, told, told), (0xc7, told, silent)]
    {
        assert_eq!(with("2001:db8::2", kind), of_one, "{kind:#x}");
        assert_eq!(with("ff02::1", kind), of_group, "{kind:#x} to a group");
    }
    assert_eq!(found(Protocol::HOP_BY_HOP, &[17, 0, 0x87, 4, 0, 0, 0, 0]).unwrap().pointer, 42);
    // An option that ends behind its header.
    let long = found(OPTIONS, &[17, 0, 1, 0, 0x07, 3, 0, 0]);
    assert_eq!(long, Some(Objection { code: Some(0), pointer: 44 }));
    assert_eq!(found(OPTIONS, &[17, 0, 1, 3, 0, 0, 0, 0x07]).unwrap().pointer, 47);
}

#[test]
fn a_route_that_leads_on_is_refused() {
    let told = Some(Objection { code: Some(0), pointer: 42 });
    for kind in [0, 2, 4, 33] {
        assert_eq!(found(Protocol::ROUTING, &[17, 0, kind, 1, 0, 0, 0, 0]), told);
    }
    let behind = [[43, 0, 1, 4, 0, 0, 0, 0], [17, 0, 0, 1, 0, 0, 0, 0]].concat();
    assert_eq!(found(OPTIONS, &behind).unwrap().pointer, 50);
}

#[test]
fn hop_by_hop_options_behind_others_are_a_header_that_nobody_knows() {
    let payload = [[0, 0, 1, 4, 0, 0, 0, 0], [17, 0, 1, 4, 0, 0, 0, 0]].concat();
    let told = Some(Objection { code: Some(1), pointer: 40 });
    assert_eq!(found(OPTIONS, &payload), told);
    assert_eq!(found(OPTIONS, &payload[..8]), told, "whatever they are");
}

#[test]
fn what_is_behind_a_fragment_header_counts_once_the_packet_is_whole() {
    let options = [17, 0, 0x87, 4, 0, 0, 0, 0];
    for (low, counts) in [(0, true), (1, false), (8, false)] {
        let payload = [[60, 0, 0, low, 0, 0, 0, 1], options].concat();
        assert_eq!(found(Protocol::FRAGMENT, &payload).is_some(), counts, "{low}");
    }
}

/// Bytes of headers. Miri takes minutes to make up more.
const LONGEST: usize = if cfg!(miri) { 60 } else { 200 };

proptest! {
    #[test]
    fn a_problem_lies_in_the_packet(
        first in prop::sample::select(vec![0u8, 43, 44, 51, 60, 135, 17]),
        payload in vec(prop_oneof![Just(0u8), Just(1), Just(43), Just(60), any::<u8>()], 0..LONGEST),
    ) {
        let bytes = packet("2001:db8::2", Protocol(first), &payload);
        if let Some(Objection { pointer, .. }) = objection(&bytes) {
            prop_assert!((HEADER_LENGTH..bytes.len()).contains(&pointer), "{}", pointer);
        }
    }
}
