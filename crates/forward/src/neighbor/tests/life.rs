//! The life of an ARP neighbour.

use super::*;

/// The question for 10.0.0.`last` as RFC 826 lays it out.
fn question(last: u8) -> Vec<u8> {
    let mut frame = arp(1, (OWN, [10, 0, 0, 1]), (MacAddr::ZERO, [10, 0, 0, last]));
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&OWN.octets());
    frame
}

#[test]
fn packets_wait_for_the_answer_and_then_go_in_order() {
    let mut bench = Bench::new();
    let first = bench.forward("10.0.0.2");
    let second = bench.forward("10.0.0.2");
    let asked = bench.take();
    assert_eq!(frames(&asked), [(InterfaceId::new(0), question(2).as_slice())]);
    assert_eq!(bench.path.neighbors(bench.now)[0].waiting, 2);
    bench.receive(Cause::Arp, &reply(2));
    let actions = bench.take();
    let released = [first, second].map(|packet| Action::Release { packet });
    assert_eq!(actions, released);
    let hop = bench.look_up("10.0.0.2").1;
    assert_eq!((hop.kind, hop.destination, hop.source), (Kind::Forward, PEER, OWN));
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Reachable));
    assert_eq!(bench.kind("10.0.0.3"), Kind::Glean);
}

#[test]
fn the_oldest_waiting_packet_goes_when_the_queue_is_full() {
    let mut bench = Bench::new();
    let all: Vec<Sent> = (0..6).map(|_| bench.forward("10.0.0.2")).collect();
    assert_eq!(drops(&bench.take()), [Reason::NeighborQueueFull; 2]);
    bench.receive(Cause::Arp, &reply(2));
    assert_eq!(released(&bench.take()), all.iter().skip(2).collect::<Vec<_>>());
}

#[test]
fn three_questions_a_second_apart_then_host_unreachable_for_three_seconds() {
    let mut bench = Bench::new();
    let waits = bench.forward("10.0.0.2");
    let early = bench.wait(2);
    assert_eq!(frames(&early).len(), 3);
    assert_eq!(frames(&early)[2].1, question(2));
    let late = bench.wait(1);
    // Looked up again, it is refused there.
    assert_eq!(released(&late), [&waits]);
    assert_eq!(bench.kind("10.0.0.2"), Kind::HostUnreachable);
    assert_eq!(bench.kind("10.0.0.3"), Kind::Glean);
    assert!(frames(&bench.wait(2)).is_empty());
    bench.wait(1);
    assert_eq!((bench.kind("10.0.0.2"), bench.path.neighbor_count()), (Kind::Glean, 0));
}

#[test]
fn a_neighbor_of_an_earlier_run_takes_packets_and_is_asked() {
    let mut bench = Bench::new();
    let recall = |bench: &mut Bench, interface, address: &str, mac| {
        let now = bench.now;
        bench.path.recall((interface, ip(address)), mac, now, &mut bench.actions)
    };
    assert!(recall(&mut bench, InterfaceId::new(0), "10.0.0.2", PEER));
    assert!(bench.take().is_empty(), "nobody is asked yet");
    let hop = bench.look_up("10.0.0.2").1;
    assert_eq!((hop.kind, hop.destination), (Kind::ForwardStale, PEER));
    bench.forward("10.0.0.2");
    assert!(!frames(&bench.wait(6)).is_empty(), "used, it is asked");
    bench.receive(Cause::Arp, &reply(2));
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Reachable));
    assert!(
        !recall(&mut bench, InterfaceId::new(0), "10.0.0.2", OTHER),
        "what is known now is newer"
    );
    assert_eq!(bench.look_up("10.0.0.2").1.destination, PEER);

    // One that is being asked for already has its answer.
    let waits = bench.forward("10.0.0.3");
    assert!(recall(&mut bench, InterfaceId::new(0), "10.0.0.3", OTHER));
    assert_eq!(released(&bench.take()), [&waits]);
    for (interface, address, mac) in [
        (0, "10.1.0.2", PEER),
        (7, "10.0.0.4", PEER),
        (0, "224.0.0.1", PEER),
        (0, "10.0.0.4", MacAddr::new([1, 0, 0, 0, 0, 1])),
        (0, "10.0.0.4", MacAddr::ZERO),
    ] {
        assert!(
            !recall(&mut bench, InterfaceId::new(interface), address, mac),
            "{interface} {address} {mac}"
        );
    }
}

#[test]
fn a_used_stale_neighbor_is_asked_and_confirmed() {
    let mut bench = Bench::new();
    bench.forward("10.0.0.2");
    bench.receive(Cause::Arp, &reply(2));
    bench.wait(14);
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Reachable));
    // At most one and a half of 30 s.
    bench.wait(32);
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Stale));
    assert_eq!(bench.kind("10.0.0.2"), Kind::ForwardStale);
    bench.forward("10.0.0.2");
    bench.wait(2);
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Delay));
    assert_eq!(bench.kind("10.0.0.2"), Kind::Forward);
    let probes = bench.wait(5);
    let frames = frames(&probes);
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Probe));
    assert_eq!(frames[0].1[..6], PEER.octets());
    assert_eq!(frames[0].1[12..], question(2)[12..]);
    bench.receive(Cause::Arp, &reply(2));
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Reachable));
}

#[test]
fn a_used_stale_neighbor_that_is_silent_fails() {
    let mut bench = Bench::new();
    bench.forward("10.0.0.2");
    bench.receive(Cause::Arp, &reply(2));
    bench.wait(46);
    bench.forward("10.0.0.2");
    let probes = bench.wait(10);
    assert_eq!(frames(&probes).len(), 3);
    assert_eq!(bench.kind("10.0.0.2"), Kind::HostUnreachable);
}

#[test]
fn an_unused_stale_neighbor_is_forgotten() {
    let mut bench = Bench::new();
    bench.forward("10.0.0.2");
    bench.receive(Cause::Arp, &reply(2));
    bench.take();
    // A use from before it is stale does not count.
    bench.state.next_hops.mark_used(bench.look_up("10.0.0.2").0);
    assert!(frames(&bench.wait(600)).is_empty());
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Stale));
    bench.wait(46);
    assert_eq!((bench.kind("10.0.0.2"), bench.path.neighbor_count()), (Kind::Glean, 0));
}

#[test]
fn requests_for_own_addresses_are_answered_and_teach() {
    let mut bench = Bench::new();
    let (peer, own) = ((PEER, [10, 0, 0, 2]), (MacAddr::ZERO, [10, 0, 0, 1]));
    bench.receive(Cause::Arp, &arp(1, peer, own));
    let actions = bench.take();
    let mut expected = arp(2, (OWN, [10, 0, 0, 1]), peer);
    expected[..6].copy_from_slice(&PEER.octets());
    expected[6..12].copy_from_slice(&OWN.octets());
    assert_eq!(frames(&actions), [(InterfaceId::new(0), expected.as_slice())]);
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Stale));
    assert_eq!(bench.look_up("10.0.0.2").1.destination, PEER);
    // A probe (RFC 5227) is answered and teaches nothing; nor does a stranger off the network.
    bench.receive(Cause::Arp, &arp(1, (OTHER, [0; 4]), own));
    bench.receive(Cause::Arp, &arp(1, (OTHER, [172, 16, 0, 1]), own));
    assert_eq!(frames(&bench.take()).len(), 2);
    assert_eq!(bench.path.neighbor_count(), 1);
}

#[test]
fn what_is_not_for_us_updates_but_does_not_create() {
    let mut bench = Bench::new();
    let gratuitous = arp(1, (OTHER, [10, 0, 0, 2]), (MacAddr::ZERO, [10, 0, 0, 2]));
    bench.receive(Cause::Arp, &gratuitous);
    bench.receive(Cause::Arp, &reply(9));
    assert_eq!(drops(&bench.take()), [Reason::ArpNotMine; 2]);
    assert_eq!(bench.path.neighbor_count(), 0);
    bench.forward("10.0.0.2");
    bench.receive(Cause::Arp, &reply(2));
    bench.receive(Cause::Arp, &gratuitous);
    let hop = bench.look_up("10.0.0.2").1;
    assert_eq!((hop.kind, hop.destination), (Kind::ForwardStale, OTHER));
    // An answer that nobody asked for proves nothing.
    bench.receive(Cause::Arp, &reply(2));
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Stale));
}

#[test]
fn own_frames_are_ignored_and_a_second_owner_is_reported() {
    let mut bench = Bench::new();
    bench.receive(Cause::Arp, &arp(1, (OWN, [10, 0, 0, 2]), (MacAddr::ZERO, [10, 0, 0, 1])));
    assert_eq!(drops(&bench.take()), [Reason::ArpNotMine]);
    bench.receive(Cause::Arp, &arp(1, (OTHER, [10, 0, 0, 1]), (MacAddr::ZERO, [10, 0, 0, 1])));
    let conflict =
        Action::Conflict { interface: InterfaceId::new(0), address: ip("10.0.0.1"), mac: OTHER };
    assert_eq!(bench.take(), [conflict]);
    bench.receive(Cause::Arp, &[0; 30]);
    assert_eq!(drops(&bench.take()), [Reason::ArpMalformed]);
    assert_eq!(bench.path.neighbor_count(), 0);
}
