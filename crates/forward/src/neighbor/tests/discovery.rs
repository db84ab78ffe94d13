//! Neighbour discovery by packets.

use std::net::Ipv6Addr;

use super::*;
use wire::build::{self, Link, Neighbor, Network, Payload};
use wire::ndp::Flags;
use wire::protocol::Protocol;
use wire::{ipv6, ndp};

const US: &str = "2001:db8::1";
const THEM: &str = "2001:db8::2";

fn message(from: &str, to: &str, hop_limit: u8, what: Payload<'_>) -> Vec<u8> {
    let fields = ipv6::Fields {
        source: from.parse().unwrap(),
        destination: to.parse().unwrap(),
        next_header: Protocol::ICMPV6,
        hop_limit,
        traffic_class: 0,
        flow_label: 0,
    };
    let link = Link { destination: OWN, source: PEER, vlan: None };
    let mut frame = vec![0; 200];
    let length = build::frame(&mut frame, &link, &Network::V6(fields), &what).unwrap();
    frame.truncate(length);
    frame
}

fn v6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn solicitation(from: &str, to: &str, target: &str, mac: Option<MacAddr>) -> Vec<u8> {
    let ask = Neighbor::Solicitation { target: v6(target), source_link_layer: mac };
    message(from, to, 255, Payload::Neighbor(ask))
}

fn advertisement(to: &str, target: &str, mac: Option<MacAddr>, flags: [bool; 3]) -> Vec<u8> {
    let [router, solicited, override_known] = flags;
    let flags = Flags { router, solicited, override_known };
    let tell = Neighbor::Advertisement { flags, target: v6(target), target_link_layer: mac };
    message(THEM, to, 255, Payload::Neighbor(tell))
}

/// Ethernet addresses, IP addresses, flags, target and link-layer option of a sent advertisement.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    to: MacAddr,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    flags: [bool; 3],
    target: Ipv6Addr,
    mac: Option<MacAddr>,
}

fn told(frame: &[u8]) -> Told {
    let header = ipv6::Header::parse(&frame[14..]).unwrap();
    let (source, destination) = (header.source(), header.destination());
    let parsed = ndp::parse(&frame[54..], source, destination, header.hop_limit()).unwrap();
    let ndp::Message::NeighborAdvertisement { flags, target, options } = parsed else {
        panic!("not an advertisement: {parsed:?}")
    };
    let mut to = [0; 6];
    to.copy_from_slice(&frame[..6]);
    let flags = [flags.router, flags.solicited, flags.override_known];
    Told { to: to.into(), source, destination, flags, target, mac: options.target_link_layer() }
}

#[test]
fn resolves_by_multicast_and_believes_the_answer() {
    let mut bench = Bench::new();
    let waits = bench.forward(THEM);
    let asked = bench.take();
    let (interface, frame) = frames(&asked)[0];
    assert_eq!((interface, frames(&asked).len()), (InterfaceId::new(0), 1));
    assert_eq!(frame[..6], [0x33, 0x33, 0xff, 0, 0, 2]);
    let group = "ff02::1:ff00:2";
    assert_eq!(frame[14..], solicitation(US, group, THEM, Some(OWN))[14..]);
    // An answer without an address says nothing (7.2.5).
    bench.receive(Cause::Nd, &advertisement(US, THEM, None, [false, true, true]));
    assert_eq!(bench.state_of(THEM), Some(Known::Incomplete));
    bench.receive(Cause::Nd, &advertisement(US, THEM, Some(PEER), [true, true, false]));
    let actions = bench.take();
    assert_eq!(actions, [Action::Release { packet: waits }]);
    assert_eq!((bench.kind(THEM), bench.state_of(THEM)), (Kind::Forward, Some(Known::Reachable)));
    assert!(bench.path.neighbors(bench.now)[0].router);
    // Without the override flag another address only makes it stale.
    bench.receive(Cause::Nd, &advertisement(US, THEM, Some(OTHER), [true, true, false]));
    let hop = bench.look_up(THEM).1;
    assert_eq!((hop.kind, hop.destination), (Kind::ForwardStale, PEER));
    bench.receive(Cause::Nd, &advertisement("ff02::1", THEM, Some(OTHER), [true, false, true]));
    assert_eq!(bench.look_up(THEM).1.destination, OTHER);
}

#[test]
fn solicitations_for_own_addresses_are_answered() {
    let mut bench = Bench::new();
    bench.receive(Cause::Nd, &solicitation(THEM, "ff02::1:ff00:1", US, Some(PEER)));
    let actions = bench.take();
    let answer = Told {
        to: PEER,
        source: v6(US),
        destination: v6(THEM),
        flags: [true, true, true],
        target: v6(US),
        mac: Some(OWN),
    };
    assert_eq!(told(frames(&actions)[0].1), answer);
    assert_eq!(bench.state_of(THEM), Some(Known::Stale));
    // Link-local neighbours are known but have no route.
    bench.receive(Cause::Nd, &solicitation("fe80::2", "fe80::1", "fe80::1", Some(PEER)));
    let actions = bench.take();
    assert_eq!(told(frames(&actions)[0].1).destination, v6("fe80::2"));
    assert_eq!(bench.state_of("fe80::2"), Some(Known::Stale));
    assert_eq!(bench.kind("fe80::2"), Kind::MissDrop);
}

#[test]
fn who_asks_without_its_address_is_asked_for_that_and_answered() {
    let mut bench = Bench::new();
    let probe = solicitation(THEM, US, US, None);
    bench.receive(Cause::Nd, &probe);
    let asked = bench.take();
    let [(_, question)] = frames(&asked)[..] else { panic!("{asked:?}") };
    assert_eq!(question[14..], solicitation(US, "ff02::1:ff00:2", THEM, Some(OWN))[14..]);
    bench.receive(Cause::Nd, &advertisement(US, THEM, Some(PEER), [false, true, true]));
    let actions = bench.take();
    let [again] = released(&actions)[..] else { panic!("{actions:?}") };
    assert_eq!(again.bytes, probe[14..], "it comes by the look-up once more");
    bench.receive(Cause::Nd, &probe);
    let actions = bench.take();
    assert_eq!(told(frames(&actions)[0].1).destination, v6(THEM));

    // Who does not answer that is not asked for again at once, and strangers are not at all.
    let silent = solicitation("2001:db8::3", US, US, None);
    bench.receive(Cause::Nd, &silent);
    assert_eq!(released(&bench.wait(4)).len(), 1);
    assert_eq!(bench.state_of("2001:db8::3"), Some(Known::Failed));
    for frame in [silent, solicitation("2001:db8:ffff::3", US, US, None)] {
        bench.receive(Cause::Nd, &frame);
        let actions = bench.take();
        assert_eq!(drops(&actions), [Reason::NeighborUnresolved]);
        assert_eq!(actions.len(), 1);
    }
}

#[test]
fn duplicate_address_detection_is_answered_to_all() {
    let mut bench = Bench::new();
    bench.receive(Cause::Nd, &solicitation("::", "ff02::1:ff00:1", US, None));
    let actions = bench.take();
    let answer = Told {
        to: MacAddr::new([0x33, 0x33, 0, 0, 0, 1]),
        source: v6(US),
        destination: v6("ff02::1"),
        flags: [true, false, true],
        target: v6(US),
        mac: Some(OWN),
    };
    assert_eq!(told(frames(&actions)[0].1), answer);
    assert_eq!(bench.path.neighbor_count(), 0);
}

#[test]
fn the_anycast_address_is_answered_without_override() {
    let mut bench = Bench::new();
    bench.receive(Cause::Nd, &solicitation(THEM, "ff02::1:ff00:0", "2001:db8::", Some(PEER)));
    let actions = bench.take();
    let answer = told(frames(&actions)[0].1);
    assert_eq!((answer.target, answer.flags), (v6("2001:db8::"), [true, true, false]));
}

#[test]
fn what_must_be_discarded_is() {
    let mut bench = Bench::new();
    let target = Neighbor::Solicitation { target: v6(US), source_link_layer: Some(PEER) };
    let far = message(THEM, "ff02::1:ff00:1", 254, Payload::Neighbor(target));
    let mut wrong = solicitation(THEM, "ff02::1:ff00:1", US, Some(PEER));
    wrong[56] ^= 1;
    let group = MacAddr::BROADCAST;
    let shared = solicitation(THEM, "ff02::1:ff00:1", US, Some(group));
    for frame in [far, wrong, shared, vec![0; 60], vec![0; 14]] {
        bench.receive(Cause::Nd, &frame);
        assert_eq!(drops(&bench.take()), [Reason::NdMalformed]);
    }
    // Not about us, not known, or a router's business.
    let router = wire::icmpv6::Message::Other { kind: 133, code: 0, rest: 0 };
    let ignored = [
        solicitation(THEM, "ff02::1:ff00:9", "2001:db8::9", Some(PEER)),
        advertisement(US, THEM, Some(PEER), [false, true, true]),
        message(THEM, "ff02::2", 255, Payload::Icmpv6 { message: router, data: &[] }),
    ];
    for frame in ignored {
        bench.receive(Cause::Nd, &frame);
        assert_eq!(drops(&bench.take()), [Reason::IcmpUnhandled]);
    }
    assert_eq!(bench.path.neighbor_count(), 0);
    bench.receive(Cause::Nd, &advertisement("ff02::1", US, Some(OTHER), [false, false, true]));
    assert_eq!(
        bench.take(),
        [Action::Conflict { interface: InterfaceId::new(0), address: ip(US), mac: OTHER }]
    );
}
