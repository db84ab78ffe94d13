//! Single rules of the routing table.

use super::*;
use crate::rib::{
    ApplyError, Change, NextHopMacs, Place, Prefix, Route, RouteError, Source, Status, Target, Via,
};
use crate::state::{NextNode, reserved};

pub(super) fn prefix(text: &str) -> Prefix {
    let (address, length) = text.split_once('/').unwrap();
    Prefix::new(address.parse().unwrap(), length.parse().unwrap()).unwrap()
}

pub(super) fn via(address: &str) -> Via {
    Via { address: address.parse().unwrap(), interface: None, weight: 1 }
}

pub(super) fn add(text: &str, target: Target) -> Change {
    Change::Add(Route::of_static(DEFAULT_VRF, prefix(text), target))
}

pub(super) fn to(text: &str, hops: &[&str]) -> Change {
    add(text, Target::Via(hops.iter().map(|hop| via(hop)).collect()))
}

fn remove(text: &str) -> Change {
    Change::Remove(Place::of_static(DEFAULT_VRF, prefix(text)))
}

/// Two ports: 192.0.2.1/24 and 2001:db8::1/64, 198.51.100.1/31 and fe80::1/64.
pub(super) fn router(limits: Limits) -> (Rib, State, Epoch) {
    let (mut rib, state, epoch) = new(limits);
    let left = interface(0, &[v4("192.0.2.1/24"), v6("2001:db8::1/64")]);
    let right = interface(1, &[v4("198.51.100.1/31"), v6("fe80::1/64"), v6("2001:db8:1::1/127")]);
    rib.set_interfaces(&interfaces(vec![Some(left), Some(right)]), &NextHopMacs::new());
    (rib, state, epoch)
}

fn refused(rib: &mut Rib, change: Change) -> RouteError {
    rib.apply(&[change]).unwrap_err().error
}

#[test]
fn addresses_imply_routes() {
    let (_, state, _) = router(LIMITS);
    assert_eq!(kinds(&state, "192.0.2.1"), [Kind::Local]);
    assert_eq!(kinds(&state, "192.0.2.7"), [Kind::Glean]);
    assert_eq!(kinds(&state, "192.0.2.0"), [Kind::Broadcast]);
    assert_eq!(kinds(&state, "192.0.2.255"), [Kind::Broadcast]);
    assert_eq!(kinds(&state, "255.255.255.255"), [Kind::Broadcast]);
    // RFC 3021: a /31 has two hosts and no broadcast.
    assert_eq!(kinds(&state, "198.51.100.0"), [Kind::Glean]);
    assert_eq!(kinds(&state, "198.51.100.1"), [Kind::Local]);
    assert_eq!(kinds(&state, "2001:db8::1"), [Kind::Local]);
    assert_eq!(kinds(&state, "2001:db8::"), [Kind::Local]);
    assert_eq!(kinds(&state, "2001:db8::2"), [Kind::Glean]);
    // RFC 6164: no anycast address between two routers.
    assert_eq!(kinds(&state, "2001:db8:1::"), [Kind::Glean]);
    assert_eq!(kinds(&state, "fe80::1"), [Kind::Local]);
    assert_eq!(kinds(&state, "fe80::2"), [Kind::MissUnreachable]);
}

#[test]
fn directed_broadcasts_are_sent_to_all_where_they_are_forwarded() {
    let settings = Settings { directed_broadcast: true, ..SETTINGS };
    let (mut rib, state) = Rib::new(LIMITS, Miss::Unreachable, settings, &Epoch::new()).unwrap();
    let left = interface(0, &[v4("192.0.2.1/24")]);
    let right = interface(1, &[v4("198.51.100.1/31")]);
    rib.set_interfaces(&interfaces(vec![Some(left), Some(right)]), &NextHopMacs::new());
    let hop = state.next_hops.get(state.routes4.lookup(u32::from_be_bytes([192, 0, 2, 255])));
    let (kind, port, to) = (hop.kind, hop.port, hop.destination);
    assert_eq!((kind, port, to), (Kind::Forward, PortId::new(0), MacAddr::BROADCAST));
    // Neither the old form nor what means every network, and no host of a /31.
    assert_eq!(kinds(&state, "192.0.2.0"), [Kind::Broadcast]);
    assert_eq!(kinds(&state, "255.255.255.255"), [Kind::Broadcast]);
    assert_eq!(kinds(&state, "198.51.100.0"), [Kind::Glean]);
}

#[test]
fn a_refusal_says_why_and_changes_nothing() {
    let (mut rib, state, _) = router(LIMITS);
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    let cases = [
        (to("10.0.0.0/8", &[]), RouteError::NoNextHop(prefix("10.0.0.0/8"))),
        (
            to("10.0.0.0/8", &["192.0.2.2"; 65]),
            RouteError::TooManyNextHops { prefix: prefix("10.0.0.0/8"), count: 65 },
        ),
        (
            to("10.0.0.0/8", &["2001:db8::2"]),
            RouteError::FamilyMismatch {
                prefix: prefix("10.0.0.0/8"),
                address: address("2001:db8::2"),
            },
        ),
        (
            to("10.0.0.0/8", &["203.0.113.1"]),
            RouteError::NextHopUnreachable(address("203.0.113.1")),
        ),
        (to("10.0.0.0/8", &["192.0.2.1"]), RouteError::NotAHost(address("192.0.2.1"))),
        (to("10.0.0.0/8", &["224.0.0.5"]), RouteError::NotAHost(address("224.0.0.5"))),
        (to("2001:db8:9::/48", &["fe80::9"]), RouteError::LinkLocal(address("fe80::9"))),
        (
            add("10.0.0.0/8", Target::Port(InterfaceId::new(7))),
            RouteError::NoSuchInterface(InterfaceId::new(7)),
        ),
        (add("224.0.0.0/4", Target::Blackhole), RouteError::NotRouted(prefix("224.0.0.0/4"))),
        (add("fe80::/64", Target::Blackhole), RouteError::NotRouted(prefix("fe80::/64"))),
        (add("10.0.0.0/8", Target::Broadcast), RouteError::Broadcast(prefix("10.0.0.0/8"))),
        (
            remove("10.0.0.0/8"),
            RouteError::NoSuchRoute(Place::of_static(DEFAULT_VRF, prefix("10.0.0.0/8"))),
        ),
    ];
    let before = rib.next_hops().count();
    for (change, error) in cases {
        let good = to("172.16.0.0/12", &["192.0.2.3"]);
        let at = usize::from(!matches!(change, Change::Remove(..)));
        let batch = if at == 1 { vec![good, change] } else { vec![change, good] };
        assert_eq!(rib.apply(&batch), Err(ApplyError { at, error }));
    }
    let zero = Via { weight: 0, ..via("192.0.2.2") };
    let change = add("10.0.0.0/8", Target::Via(vec![zero]));
    assert_eq!(refused(&mut rib, change), RouteError::Weight(zero.address));
    assert_eq!(rib.next_hops().count(), before);
    assert!(rib.is_empty());
    assert_eq!(kinds(&state, "172.16.0.1"), [Kind::MissUnreachable]);
}

#[test]
fn limits_refuse_the_whole_batch() {
    let (mut rib, state, _) = router(Limits { routes4: 2, routes6: 0, next_hops: 5, groups: 1 });
    let hole = |text: &str| add(text, Target::Blackhole);
    rib.apply(&[hole("10.0.0.0/8")]).unwrap();
    let error = rib.apply(&[hole("20.0.0.0/8"), hole("30.0.0.0/8")]).unwrap_err();
    assert_eq!(
        error,
        ApplyError { at: 1, error: RouteError::TooManyRoutes { family: 4, limit: 2 } }
    );
    assert_eq!(kinds(&state, "20.0.0.1"), [Kind::MissUnreachable]);
    // Replacing and swapping fit.
    rib.apply(&[hole("10.0.0.0/8"), hole("20.0.0.0/8")]).unwrap();
    rib.apply(&[remove("10.0.0.0/8"), hole("30.0.0.0/8")]).unwrap();
    assert_eq!(rib.len(), (2, 0));
    assert_eq!(
        refused(&mut rib, hole("2001:db8:5::/48")),
        RouteError::TooManyRoutes { family: 6, limit: 0 }
    );
    // Two connected networks' next hops leave three of the five; a group needs two.
    rib.apply(&[to("20.0.0.0/8", &["192.0.2.2", "192.0.2.3"])]).unwrap();
    assert_eq!(
        refused(&mut rib, to("30.0.0.0/8", &["192.0.2.4", "192.0.2.5"])),
        RouteError::TooManyGroups { limit: 1 }
    );
    rib.apply(&[to("30.0.0.0/8", &["192.0.2.4"])]).unwrap();
    assert_eq!(kinds(&state, "30.0.0.1"), [Kind::Unresolved]);
    let error = refused(&mut rib, to("30.0.0.0/8", &["192.0.2.5"]));
    assert!(matches!(error, RouteError::TooManyHops { .. }));
    assert_eq!(kinds(&state, "30.0.0.1"), [Kind::Unresolved]);
}

#[test]
fn a_full_look_up_table_takes_the_whole_batch_back() {
    let small = tables::LpmCapacity { routes: 10_000, trie_bytes: 1 << 20 };
    let epoch = Epoch::new();
    let made = Rib::with_capacities(
        [small; 2],
        Limits { routes4: 10_000, ..LIMITS },
        Miss::Unreachable,
        SETTINGS,
        &epoch,
    );
    let (mut rib, state) = made.unwrap();
    let port = interface(0, &[v4("192.0.2.1/24")]);
    rib.set_interfaces(&interfaces(vec![Some(port)]), &NextHopMacs::new());
    // Host routes far from each other cost the look-up table most.
    let host = |n: u32| Prefix::host(Ipv4Addr::from_bits(0x0100_0000 + (n << 8)).into());
    let hole = |n| Change::Add(Route::of_static(DEFAULT_VRF, host(n), Target::Blackhole));
    let mut batch: Vec<Change> = (0..1000).map(hole).collect();
    rib.apply(&batch).unwrap();
    batch.push(add("192.0.2.0/24", Target::Unreachable));
    batch.extend((0..9_000).map(hole));
    let refused = rib.apply(&batch).unwrap_err();
    assert_eq!(refused.error, RouteError::TableFull { family: 4 });
    assert!(refused.at > 3_000, "{refused}");
    assert_eq!(rib.len(), (1000, 0));
    assert_eq!(seen(&state, host(999).address())[0].kind, Kind::Blackhole);
    assert_eq!(seen(&state, host(1000).address())[0].kind, Kind::MissUnreachable);
    assert_eq!(kinds(&state, "192.0.2.7"), [Kind::Glean]);
    rib.apply(&[hole(1000)]).unwrap();
}

#[test]
fn an_index_is_not_reused_while_a_worker_may_hold_it() {
    let (mut rib, state, epoch) = router(Limits { next_hops: 3, ..LIMITS });
    let worker = epoch.register().unwrap();
    worker.quiescent();
    rib.apply(&[to("10.0.0.0/8", &["192.0.2.2"])]).unwrap();
    let index = state.routes4.lookup(u32::from_be_bytes([10, 0, 0, 1]));
    rib.apply(&[remove("10.0.0.0/8")]).unwrap();
    assert_eq!(state.next_hops.kind(index), Kind::Unresolved);
    assert!(rib.apply(&[to("10.0.0.0/8", &["192.0.2.3"])]).is_err());
    worker.quiescent();
    rib.apply(&[to("10.0.0.0/8", &["192.0.2.3"])]).unwrap();
    assert_eq!(state.routes4.lookup(u32::from_be_bytes([10, 0, 0, 1])), index);
}

#[test]
fn routes_with_the_same_next_hops_share_a_group() {
    let (mut rib, state, _) = router(LIMITS);
    let hops = ["192.0.2.2", "192.0.2.3"];
    let back = ["192.0.2.3", "192.0.2.2"];
    rib.apply(&[to("10.0.0.0/8", &hops), to("11.0.0.0/8", &back)]).unwrap();
    let value = |first| state.routes4.lookup(u32::from_be_bytes([first, 0, 0, 1]));
    assert_eq!(value(10), value(11));
    assert!(value(10) >= crate::state::GROUP_BIT);
    assert_eq!(rib.lookup(DEFAULT_VRF, "10.0.0.1".parse().unwrap()).next_hops.len(), 2);
}

#[test]
fn a_longer_route_inside_a_connected_network_beats_its_neighbors() {
    let (mut rib, state, _) = router(LIMITS);
    let far = "192.0.2.130".parse().unwrap();
    let index = rib.open_neighbor(InterfaceId::new(0), far).unwrap();
    rib.set_neighbor(index, Status::Resolved { mac: mac(9), stale: false }).unwrap();
    assert_eq!(kinds(&state, "192.0.2.130"), [Kind::Forward]);
    rib.apply(&[add("192.0.2.128/25", Target::Blackhole)]).unwrap();
    assert_eq!(kinds(&state, "192.0.2.130"), [Kind::Blackhole]);
    rib.apply(&[remove("192.0.2.128/25")]).unwrap();
    assert_eq!(kinds(&state, "192.0.2.130"), [Kind::Forward]);
}

#[test]
fn a_change_of_mtu_is_seen_in_place_and_a_vlan_and_bridge_in_the_next_hop() {
    let (mut rib, state, _) = new(LIMITS);
    let mut vlan = interface(0, &[v4("192.0.2.1/24")]);
    vlan.vlan = Some(100);
    let mut bridge = interface(1, &[v4("198.51.100.1/24")]);
    (bridge.port, bridge.mode) = (None, Mode::BridgeIp(0));
    let mut member = interface(2, &[v4("203.0.113.1/24")]);
    member.mode = Mode::Member { bridge: 0, member: 0 };
    let set = |rib: &mut Rib, vlan: &Interface| {
        let list = vec![Some(vlan.clone()), Some(bridge.clone()), Some(member.clone())];
        rib.set_interfaces(&interfaces(list), &NextHopMacs::new())
    };
    set(&mut rib, &vlan);
    for (on, address) in [(0, "192.0.2.2"), (1, "198.51.100.2")] {
        let index = rib.open_neighbor(InterfaceId::new(on), address.parse().unwrap()).unwrap();
        rib.set_neighbor(index, Status::Resolved { mac: mac(9), stale: true }).unwrap();
    }
    let tagged = seen(&state, "192.0.2.2".parse().unwrap())[0];
    assert_eq!((tagged.kind, tagged.vlan, tagged.mtu), (Kind::ForwardStale, Some(100), 1500));
    let bridged = seen(&state, "198.51.100.2".parse().unwrap())[0];
    assert_eq!((bridged.kind, bridged.next), (Kind::ForwardStale, NextNode::Bridge));
    assert_eq!((tagged.next, tagged.features), (NextNode::Port, false));
    assert_eq!(kinds(&state, "203.0.113.2"), [Kind::MissUnreachable]);
    vlan.mtu = 1400;
    assert_eq!(set(&mut rib, &vlan), [InterfaceId::NONE; 0]);
    let after = seen(&state, "192.0.2.2".parse().unwrap());
    assert_eq!(after, [NextHop { mtu: 1400, ..tagged }]);
    vlan.vlan = Some(101);
    assert_eq!(set(&mut rib, &vlan), [InterfaceId::new(0)]);
    assert_eq!(kinds(&state, "192.0.2.2"), [Kind::Glean]);
    // Its next hops are made anew, so that no packet is sent by a half of each.
    vlan.features = Features { tcp_mss: Some(1000) };
    assert_eq!(set(&mut rib, &vlan), [InterfaceId::new(0)]);
    let index = rib.open_neighbor(InterfaceId::new(0), "192.0.2.2".parse().unwrap()).unwrap();
    rib.set_neighbor(index, Status::Resolved { mac: mac(9), stale: false }).unwrap();
    assert!(seen(&state, "192.0.2.2".parse().unwrap())[0].features);
}

#[test]
fn pages_come_in_order_and_whole() {
    let (mut rib, _, _) = router(LIMITS);
    let prefixes: Vec<String> = (0..50).map(|n| format!("10.0.{n}.0/24")).collect();
    let changes: Vec<Change> = prefixes.iter().map(|p| add(p, Target::Blackhole)).collect();
    rib.apply(&changes).unwrap();
    rib.apply(&[add("192.0.2.0/24", Target::Unreachable)]).unwrap();
    let all = rib.routes((DEFAULT_VRF, None), false, None, usize::MAX);
    let mut paged = Vec::new();
    while let page @ [_, ..] = rib
        .routes(
            (DEFAULT_VRF, None),
            false,
            paged.last().map(|r: &crate::rib::RouteInfo| r.place.prefix),
            7,
        )
        .as_slice()
    {
        paged.extend_from_slice(page);
    }
    assert_eq!(paged, all);
    assert!(all.is_sorted_by_key(|route| route.place.prefix));
    let both = rib.routes_of(DEFAULT_VRF, prefix("192.0.2.0/24"));
    let sources: Vec<_> = both.iter().map(|route| (route.place.source, route.active)).collect();
    assert_eq!(sources, [(Source::CONNECTED, true), (Source::STATIC, false)]);
}

#[test]
fn a_look_up_is_explained() {
    let (mut rib, _, _) = router(LIMITS);
    rib.apply(&[to("10.0.0.0/8", &["192.0.2.2"])]).unwrap();
    let found = rib.lookup(DEFAULT_VRF, "10.1.2.3".parse().unwrap());
    let route = found.route.unwrap();
    assert_eq!(route.place, Place::of_static(DEFAULT_VRF, prefix("10.0.0.0/8")));
    assert_eq!(found.next_hops, [(found.value, 1)]);
    let none = rib.lookup(DEFAULT_VRF, "11.1.2.3".parse().unwrap());
    assert_eq!((none.route, none.value), (None, reserved::MISS));
}

#[test]
fn a_next_hop_is_free_only_once_no_route_shows_it() {
    // All indices are in use: two networks and two routers.
    let (mut rib, state, _) = new(Limits { next_hops: 4, ..LIMITS });
    let addresses = [[v4("192.0.2.1/24")], [v4("198.51.100.1/24")]];
    let [left, right] = [0, 1].map(|id| Some(interface(id, &addresses[usize::from(id)])));
    rib.set_interfaces(&interfaces(vec![left, right]), &NextHopMacs::new());
    rib.apply(&[to("10.1.0.0/16", &["192.0.2.2"]), to("10.2.0.0/16", &["192.0.2.3"])]).unwrap();
    let indices = |rib: &Rib| rib.next_hops().map(|hop| hop.index).collect::<Vec<_>>();
    let before = indices(&rib);
    assert_eq!(before.len(), 4);
    // The same networks on other interfaces. Nobody reads, so what is retired is free at once.
    let [left, right] = [2, 3].map(|id| Some(interface(id, &addresses[usize::from(id - 2)])));
    let after = interfaces(vec![None, None, left, right]);
    rib.set_interfaces(&after, &NextHopMacs::new());
    let reused: Vec<_> = indices(&rib).into_iter().filter(|hop| before.contains(hop)).collect();
    assert_eq!(reused, [0; 0], "a worker that looks up meanwhile has the index of another");
    assert_eq!(kinds(&state, "10.1.0.1"), [Kind::MissUnreachable]);
    rib.set_interfaces(&after, &NextHopMacs::new());
    assert_eq!(indices(&rib).len(), 4);
    assert_eq!(kinds(&state, "10.1.0.1"), [Kind::Unresolved]);
}
