//! Neighbours as next hops of routes, configured neighbours, interfaces that come and go.

use super::*;
use crate::neighbor::NeighborError;
use crate::state::GROUP_SLOTS;

fn members(bench: &Bench, to: &str) -> Vec<MacAddr> {
    let IpAddr::V4(to) = ip(to) else { panic!("IPv4 only") };
    let value = bench.state.routes4.lookup(to.to_bits());
    let hop = |hash| bench.state.next_hops.get(bench.state.next_hops.choose(value, hash));
    let mut macs: Vec<_> = (0..GROUP_SLOTS as u32).map(|hash| hop(hash).destination).collect();
    macs.sort_unstable();
    macs.dedup();
    macs
}

fn answer(bench: &mut Bench, mac: MacAddr, last: u8) {
    bench.receive(Cause::Arp, &arp(2, (mac, [10, 0, 0, last]), (OWN, [10, 0, 0, 1])));
}

#[test]
fn a_route_waits_for_its_next_hop_not_for_its_destination() {
    let mut bench = Bench::new();
    bench.apply("172.16.0.0/12", &["10.0.0.2"]);
    assert_eq!(bench.kind("172.16.0.1"), Kind::Unresolved);
    let waits = bench.forward("172.16.0.1");
    let asked = bench.take();
    assert_eq!(frames(&asked)[0].1[38..42], [10, 0, 0, 2]);
    bench.receive(Cause::Arp, &reply(2));
    assert_eq!(released(&bench.take()), [&waits]);
    assert_eq!(bench.look_up("172.16.0.1").1.destination, PEER);
    // Both are one next hop.
    assert_eq!(bench.look_up("172.16.0.1").0, bench.look_up("10.0.0.2").0);
    assert_eq!(bench.path.neighbors(bench.now)[0].users, 1);
}

#[test]
fn a_failed_next_hop_answers_host_unreachable_until_it_is_back() {
    let mut bench = Bench::new();
    bench.apply("172.16.0.0/12", &["10.0.0.2"]);
    let waits = bench.forward("172.16.0.1");
    assert_eq!(released(&bench.wait(3)), [&waits]);
    assert_eq!(bench.kind("172.16.0.1"), Kind::HostUnreachable);
    bench.wait(4);
    assert_eq!(bench.kind("172.16.0.1"), Kind::Unresolved);
    bench.forward("172.16.0.1");
    bench.receive(Cause::Arp, &reply(2));
    assert_eq!(bench.kind("172.16.0.1"), Kind::Forward);
}

#[test]
fn a_group_asks_for_its_members_and_uses_those_that_answer() {
    let mut bench = Bench::new();
    bench.apply("172.16.0.0/12", &["10.0.0.2", "10.0.0.3"]);
    assert_eq!(frames(&bench.wait(0)).len(), 2);
    answer(&mut bench, PEER, 2);
    assert_eq!(members(&bench, "172.16.0.1"), [PEER]);
    answer(&mut bench, OTHER, 3);
    assert_eq!(members(&bench, "172.16.0.1"), [PEER, OTHER]);
    // Both are kept fresh without traffic; one falls silent.
    let mut silent = 0;
    for _ in 0..100 {
        bench.wait(1);
        for (mac, last) in [(PEER, 2), (OTHER, 3)] {
            if bench.state_of(&format!("10.0.0.{last}")) == Some(Known::Stale) {
                bench.forward(&format!("10.0.0.{last}"));
            }
            if last == 2 {
                answer(&mut bench, mac, last);
            }
        }
        silent += u32::from(members(&bench, "172.16.0.1") == [PEER]);
    }
    assert!(silent > 0);
    answer(&mut bench, OTHER, 3);
    bench.wait(1);
    answer(&mut bench, OTHER, 3);
    assert_eq!(members(&bench, "172.16.0.1"), [PEER, OTHER]);
}

#[test]
fn a_change_of_routes_looks_for_no_neighbors_uses() {
    let mut bench = Bench::new();
    bench.forward("10.0.0.2");
    bench.receive(Cause::Arp, &reply(2));
    bench.wait(46);
    bench.forward("10.0.0.2");
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Stale));
    bench.apply("172.16.0.0/12", &["10.0.0.3", "10.0.0.4"]);
    bench.interfaces(&[true, true]);
    assert_eq!(frames(&bench.wait(0)).len(), 2, "the next hops of the group are asked for at once");
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Stale), "and nobody else is looked at");
    bench.wait(1);
    assert_eq!(bench.state_of("10.0.0.2"), Some(Known::Delay), "a look each second finds it");
}

#[test]
fn a_configured_neighbor_stays_when_its_interface_looks_different() {
    let mut bench = Bench::new();
    let at = ip("10.0.0.9");
    bench.path.add_neighbor(InterfaceId::new(0), at, PEER, bench.now, &mut bench.actions).unwrap();
    let list = [Interface { mac: OTHER, ..interface(0, 0) }, interface(1, 1)];
    let all = Interfaces { list: list.map(Some).into(), ..Interfaces::default() };
    let none = NextHopMacs::new();
    bench.path.set_interfaces(Arc::new(all), &none, bench.now, &mut bench.actions);
    let hop = bench.look_up("10.0.0.9").1;
    assert_eq!((hop.kind, hop.destination, hop.source), (Kind::Forward, PEER, OTHER));
}

#[test]
fn a_configured_neighbor_that_finds_no_room_has_it_later() {
    let limits = Limits { routes4: 100, routes6: 100, next_hops: 6, groups: 10 };
    let mut bench = Bench::within(BOUNDS, limits);
    // One for each network, one for this neighbour.
    let at = ip("10.0.0.9");
    bench.path.add_neighbor(InterfaceId::new(0), at, PEER, bench.now, &mut bench.actions).unwrap();
    bench.interfaces(&[false, true]);
    for last in 2..=5 {
        bench.forward(&format!("10.1.0.{last}"));
    }
    bench.interfaces(&[true, true]);
    assert_eq!(bench.state_of("10.0.0.9"), None, "there is no room");
    bench.path.flush(None, &mut bench.actions);
    bench.path.poll(bench.now, &mut bench.actions);
    bench.interfaces(&[true, true]);
    assert_eq!(bench.state_of("10.0.0.9"), Some(Known::Permanent), "nothing else has changed");
}

#[test]
fn an_unused_member_is_asked_again_instead_of_forgotten() {
    let mut bench = Bench::new();
    bench.apply("172.16.0.0/12", &["10.0.0.2", "10.0.0.3"]);
    bench.wait(0);
    answer(&mut bench, PEER, 2);
    answer(&mut bench, OTHER, 3);
    bench.wait(46);
    bench.take();
    let probes = bench.wait(606);
    assert!(frames(&probes).iter().any(|(_, frame)| frame[..6] == PEER.octets()));
}

#[test]
fn configured_neighbors_stay_and_wait_for_their_interface() {
    let mut bench = Bench::new();
    let now = bench.now;
    let address = ip("10.1.0.9");
    bench.path.add_neighbor(InterfaceId::new(1), address, PEER, now, &mut bench.actions).unwrap();
    assert_eq!(bench.look_up("10.1.0.9").1.destination, PEER);
    assert_eq!(bench.path.flush(None, &mut bench.actions), 0);
    bench.wait(10_000);
    assert_eq!(bench.state_of("10.1.0.9"), Some(Known::Permanent));
    bench.interfaces(&[true, false]);
    assert_eq!((bench.kind("10.1.0.9"), bench.path.neighbor_count()), (Kind::MissDrop, 0));
    bench.take();
    bench.interfaces(&[true, true]);
    assert_eq!(bench.look_up("10.1.0.9").1.destination, PEER);
    // The addresses of the port that came are announced: ARP, two of IPv6.
    let announced = bench.take();
    assert_eq!(
        frames(&announced).iter().map(|(on, _)| *on).collect::<Vec<_>>(),
        [InterfaceId::new(1); 3]
    );
    assert_eq!(frames(&announced)[0].1[28..32], [10, 1, 0, 1]);
    assert_eq!(frames(&announced)[0].1[38..42], [10, 1, 0, 1]);
    bench.path.remove_neighbor(InterfaceId::new(1), address, &mut bench.actions).unwrap();
    assert_eq!(bench.kind("10.1.0.9"), Kind::Glean);
    let again = bench.path.remove_neighbor(InterfaceId::new(1), address, &mut bench.actions);
    assert_eq!(
        again,
        Err(NeighborError::NoSuchNeighbor { interface: InterfaceId::new(1), address })
    );
    let group = bench.path.add_neighbor(
        InterfaceId::new(1),
        address,
        MacAddr::BROADCAST,
        now,
        &mut bench.actions,
    );
    assert_eq!(group, Err(NeighborError::NotAStation(MacAddr::BROADCAST)));
}

#[test]
fn a_lost_interface_takes_its_neighbors_and_waiting_packets_along() {
    let mut bench = Bench::new();
    bench.apply("172.16.0.0/12", &["10.0.0.2"]);
    bench.forward("172.16.0.1");
    bench.forward("10.0.0.3");
    bench.take();
    bench.interfaces(&[false, true]);
    assert_eq!(drops(&bench.take()), [Reason::NeighborUnresolved; 2]);
    assert_eq!((bench.kind("172.16.0.1"), bench.path.neighbor_count()), (Kind::MissDrop, 0));
    bench.interfaces(&[true, true]);
    assert_eq!(bench.kind("172.16.0.1"), Kind::Unresolved);
}

#[test]
fn a_link_that_comes_back_has_its_configured_neighbors_and_is_told_of_the_addresses() {
    let mut bench = Bench::new();
    let at = ip("10.0.0.9");
    bench.path.add_neighbor(InterfaceId::new(0), at, PEER, bench.now, &mut bench.actions).unwrap();
    bench.forward("10.0.0.7");
    bench.take();
    let set = |bench: &mut Bench, up: bool| {
        let list = [interface(0, 0), interface(1, 1)];
        let list =
            list.map(|one| Some(Interface { up: up || one.port != Some(PortId::new(0)), ..one }));
        let all = Interfaces { list: list.into(), ..Interfaces::default() };
        let none = NextHopMacs::new();
        bench.path.set_interfaces(Arc::new(all), &none, bench.now, &mut bench.actions);
        bench.take()
    };
    let actions = set(&mut bench, false);
    assert_eq!(frames(&actions), [], "nobody is there to be told");
    assert_eq!(drops(&actions), [Reason::NeighborUnresolved], "what waited for a neighbour");
    assert_eq!(bench.kind("10.0.0.9"), Kind::MissDrop);
    assert_eq!(bench.path.neighbor_count(), 0);
    assert_eq!(
        bench.path.parked_neighbors().collect::<Vec<_>>(),
        [(InterfaceId::new(0), at, PEER)]
    );
    let actions = set(&mut bench, true);
    assert!(frames(&actions).iter().all(|(on, _)| *on == InterfaceId::new(0)));
    assert_eq!(frames(&actions).len(), 3, "one for each address");
    assert_eq!(bench.look_up("10.0.0.9").1.destination, PEER);
    assert_eq!(bench.path.parked_neighbors().count(), 0);
    assert_eq!(bench.kind("10.0.0.7"), Kind::Glean);
}
