//! Links that go down, and addresses that move between interfaces.

use super::rules::{add, prefix, to, via};
use super::*;
use crate::rib::{Change, NextHopMacs, Route, RouteError, Status, Target};

#[test]
fn a_link_that_is_down_carries_no_route() {
    let (mut rib, state, _) = new(LIMITS);
    let set = |rib: &mut Rib, up: [bool; 2]| {
        let addresses = [[v4("192.0.2.1/24")], [v4("198.51.100.1/24")]];
        let link = |id: u16| {
            let at = usize::from(id);
            Some(Interface { up: up[at], ..interface(id, &addresses[at]) })
        };
        let gone = rib.set_interfaces(&interfaces(vec![link(0), link(1)]), &NextHopMacs::new());
        converge(rib);
        gone
    };
    set(&mut rib, [true, true]);
    let group = ["192.0.2.2", "198.51.100.2"];
    rib.apply(&[
        to("10.0.0.0/8", &group),
        to("10.1.0.0/16", &group[..1]),
        add("10.2.0.0/16", Target::Port(InterfaceId::new(0))),
    ])
    .unwrap();
    let resolve = |rib: &mut Rib, on: u16, address: &str, last: u8| {
        let index = rib.open_neighbor(InterfaceId::new(on), address.parse().unwrap()).unwrap();
        rib.set_neighbor(index, Status::Resolved { mac: mac(last), stale: false }).unwrap();
        index
    };
    let left = resolve(&mut rib, 0, group[0], 1);
    resolve(&mut rib, 1, group[1], 2);
    let to_macs = |address: &str| {
        let hops = seen(&state, address.parse().unwrap());
        hops.iter().map(|hop| hop.destination).collect::<Vec<_>>()
    };
    assert_eq!(to_macs("10.9.0.1"), [mac(1), mac(2)]);
    assert_eq!(to_macs("10.1.0.1"), [mac(1)]);

    assert_eq!(
        set(&mut rib, [false, true]),
        [InterfaceId::new(0)],
        "its neighbours are to be closed"
    );
    rib.close_neighbor(left);
    for address in ["10.9.0.1", "10.1.0.1", "10.2.0.1"] {
        assert_eq!(to_macs(address), [mac(2)], "{address}: the wider route, by the other link");
    }
    assert_eq!(kinds(&state, "192.0.2.2"), [Kind::MissUnreachable], "no neighbour, no network");
    assert_eq!(kinds(&state, "192.0.2.1"), [Kind::Local], "the address is the router's still");
    assert_eq!(set(&mut rib, [false, true]), [InterfaceId::NONE; 0], "once");
    let usable = |rib: &Rib, text: &str| rib.routes_of(DEFAULT_VRF, prefix(text))[0].usable;
    assert!(usable(&rib, "10.0.0.0/8") && !usable(&rib, "10.1.0.0/16"));
    let refused = RouteError::NoSuchInterface(InterfaceId::new(0));
    assert_eq!(rib.open_neighbor(InterfaceId::new(0), group[0].parse().unwrap()), Err(refused));
    // Routes by it may be added, and wait.
    rib.apply(&[
        to("10.3.0.0/16", &["192.0.2.3"]),
        add("10.4.0.0/16", Target::Port(InterfaceId::new(0))),
    ])
    .unwrap();
    assert!(!usable(&rib, "10.3.0.0/16") && !usable(&rib, "10.4.0.0/16"));

    assert_eq!(set(&mut rib, [true, true]), [InterfaceId::NONE; 0]);
    assert_eq!(to_macs("10.9.0.1"), [mac(2)], "until the other is resolved");
    for (address, kind) in [
        ("10.1.0.1", Kind::Unresolved),
        ("10.2.0.1", Kind::Glean),
        ("10.3.0.1", Kind::Unresolved),
        ("10.4.0.1", Kind::Glean),
        ("192.0.2.2", Kind::Glean),
    ] {
        assert_eq!(kinds(&state, address), [kind], "{address}");
    }
    resolve(&mut rib, 0, group[0], 3);
    assert_eq!(to_macs("10.9.0.1"), [mac(3), mac(2)]);
}

#[test]
fn of_two_links_on_one_network_the_one_that_is_up_is_used() {
    let (mut rib, state, _) = new(LIMITS);
    for (up, on) in [([true, true], 0), ([false, true], 1), ([true, false], 0)] {
        let link = |id: u16| {
            let addresses = [v4(&format!("192.0.2.{}/24", id + 1))];
            Some(Interface { up: up[usize::from(id)], ..interface(id, &addresses) })
        };
        rib.set_interfaces(&interfaces(vec![link(0), link(1)]), &NextHopMacs::new());
        let hops = seen(&state, "192.0.2.9".parse().unwrap());
        assert_eq!(
            hops.iter().map(|hop| (hop.kind, hop.interface)).collect::<Vec<_>>(),
            [(Kind::Glean, InterfaceId::new(on))]
        );
    }
}

#[test]
fn a_next_hop_that_becomes_an_own_address_of_another_interface_is_none_any_more() {
    let (mut rib, state, _) = new(LIMITS);
    let left = || Some(interface(0, &[v4("192.0.2.1/24")]));
    let set = |rib: &mut Rib, right: &str| {
        let right = Some(interface(1, &[v4(right)]));
        rib.set_interfaces(&interfaces(vec![left(), right]), &NextHopMacs::new());
    };
    set(&mut rib, "198.51.100.1/24");
    let hop = crate::rib::Via { interface: Some(InterfaceId::new(0)), ..via("203.0.113.9") };
    let route = Route::of_static(DEFAULT_VRF, prefix("10.0.0.0/8"), Target::Via(vec![hop]));
    rib.apply(&[Change::Add(route)]).unwrap();
    assert_eq!(kinds(&state, "10.0.0.1"), [Kind::Unresolved]);
    set(&mut rib, "203.0.113.9/32");
    assert_eq!(kinds(&state, "10.0.0.1"), [Kind::MissUnreachable]);
    set(&mut rib, "198.51.100.1/24");
    assert_eq!(kinds(&state, "10.0.0.1"), [Kind::Unresolved]);
}
