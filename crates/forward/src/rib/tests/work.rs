//! What a change costs: how many prefixes are shown to the workers again, and how many targets are looked for anew. It is what
//! depends on the change, however much else there is; and what is much is done in steps.

use super::rules::{prefix, via};
use super::*;
use crate::rib::converge::FEW;
use crate::rib::table::AT_ONCE;
use crate::rib::{Change, NextHopMacs, Place, Route, Status, Target};

const PORTS: u16 = 8;
const NEIGHBORS: u8 = 100;
const ROUTES: u8 = 50;

struct Bench {
    rib: Rib,
    state: State,
    up: [bool; PORTS as usize],
}

impl Bench {
    /// Ports with 10.n.0.1/16; behind each, neighbours 10.n.1.1 and so on, and routes 2n.m.0.0/16 by the first of them.
    fn new() -> Self {
        let limits = Limits { next_hops: 2000, ..LIMITS };
        let (rib, state, _) = new(limits);
        let mut bench = Self { rib, state, up: [true; PORTS as usize] };
        bench.set_interfaces();
        for port in 0..PORTS {
            for last in 1..=NEIGHBORS {
                bench.meet(port, last);
            }
            let hop = format!("10.{port}.1.1");
            let route = |n| to(&format!("2{port}.{n}.0.0/16"), &hop);
            bench.rib.apply(&(0..ROUTES).map(route).collect::<Vec<_>>()).unwrap();
        }
        bench.rib.apply(&[to("0.0.0.0/0", "10.0.1.1")]).unwrap();
        bench
    }

    fn meet(&mut self, port: u16, last: u8) -> u32 {
        let address = format!("10.{port}.1.{last}").parse().unwrap();
        let index = self.rib.open_neighbor(InterfaceId::new(port), address).unwrap();
        self.rib.set_neighbor(index, Status::Resolved { mac: mac(last), stale: false }).unwrap();
        index
    }

    fn set_interfaces(&mut self) {
        self.begin_to_set_interfaces();
        converge(&mut self.rib);
    }

    /// The same, but for the routes that are shown step by step.
    fn begin_to_set_interfaces(&mut self) {
        let port = |(id, up): (u16, bool)| {
            let port = interface(id, &[v4(&format!("10.{id}.0.1/16"))]);
            Some(Interface { up, ..port })
        };
        let list = (0..PORTS).zip(self.up).map(port);
        self.rib.set_interfaces(&interfaces(list.collect()), &NextHopMacs::new());
    }

    /// Prefixes shown and targets looked for by a change.
    fn work(&mut self, change: impl FnOnce(&mut Self)) -> (usize, usize) {
        let before = self.done();
        change(self);
        let after = self.done();
        (after.0 - before.0, after.1 - before.1)
    }

    fn done(&self) -> (usize, usize) {
        (self.rib.vrfs.main().v4.shown, self.rib.targets.resolved)
    }
}

fn to(text: &str, hop: &str) -> Change {
    Change::Add(Route::of_static(DEFAULT_VRF, prefix(text), Target::Via(vec![via(hop)])))
}

#[test]
fn a_default_route_that_comes_and_goes_shows_no_neighbor_again() {
    let mut bench = Bench::new();
    let removed = Change::Remove(Place::of_static(DEFAULT_VRF, prefix("0.0.0.0/0")));
    let added = to("0.0.0.0/0", "10.1.1.1");
    for change in [removed.clone(), added, to("0.0.0.0/0", "10.2.1.1"), removed] {
        assert_eq!(bench.work(|bench| bench.rib.apply(&[change]).unwrap()), (1, 0));
    }
    // A route inside a network decides about the neighbours in it, and about no others.
    let inside = to("10.3.1.64/26", "10.4.1.1");
    assert_eq!(bench.work(|bench| bench.rib.apply(&[inside]).unwrap()), (1 + 37, 0));
    assert_eq!(seen(&bench.state, "10.3.1.70".parse().unwrap())[0].interface, InterfaceId::new(4));
    assert_eq!(seen(&bench.state, "10.3.1.63".parse().unwrap())[0].interface, InterfaceId::new(3));
    // Another one around that, inside the same network, none that it covers already.
    let around = to("10.3.1.0/25", "10.4.1.1");
    assert_eq!(bench.work(|bench| bench.rib.apply(&[around]).unwrap()), (1 + 63, 0));
    // A route of a worse source to a connected network changes nothing.
    let place = Place {
        source: "bgp".parse().unwrap(),
        distance: 20,
        ..Place::of_static(DEFAULT_VRF, prefix("10.5.0.0/16"))
    };
    let worse = Route { place, metric: 0, target: Target::Blackhole };
    assert_eq!(bench.work(|bench| bench.rib.apply(&[Change::Add(worse)]).unwrap()), (1, 0));
}

#[test]
fn a_link_that_goes_down_and_up_touches_what_is_behind_it() {
    let mut bench = Bench::new();
    let down = bench.work(|bench| {
        bench.up[3] = false;
        bench.set_interfaces();
    });
    // Its neighbours, its routes, its network; the targets of its network and of its routes.
    assert_eq!(down, (usize::from(NEIGHBORS) + usize::from(ROUTES) + 1, 2));
    assert_eq!(kinds(&bench.state, "23.1.0.1"), [Kind::Forward], "the default route");
    let up = bench.work(|bench| {
        bench.up[3] = true;
        bench.set_interfaces();
    });
    assert_eq!(up, (usize::from(ROUTES) + 1, 2), "its neighbours are forgotten");
    assert_eq!(kinds(&bench.state, "23.1.0.1"), [Kind::Unresolved]);
    let nothing = bench.work(Bench::set_interfaces);
    assert_eq!(nothing, (0, 0), "nothing has changed");
}

#[test]
fn a_neighbor_that_changes_touches_itself() {
    let mut bench = Bench::new();
    let index = bench.rib.neighbor_index(InterfaceId::new(2), "10.2.1.7".parse().unwrap()).unwrap();
    let stale = Status::Resolved { mac: mac(7), stale: true };
    assert_eq!(bench.work(|bench| bench.rib.set_neighbor(index, stale).unwrap()), (0, 0));
    assert_eq!(bench.work(|bench| bench.rib.close_neighbor(index)), (1, 0));
    let again = bench.work(|bench| {
        bench.meet(2, 7);
    });
    assert_eq!(again, (1, 0));
    // Members of groups that nothing is known of are known without a search.
    let group = Target::Via(vec![via("10.2.9.1"), via("10.2.1.8")]);
    let group = Route::of_static(DEFAULT_VRF, prefix("30.0.0.0/8"), group);
    bench.rib.apply(&[Change::Add(group)]).unwrap();
    let address: IpAddr = "10.2.9.1".parse().unwrap();
    assert_eq!(bench.rib.unresolved_members(), [(InterfaceId::new(2), address)]);
    let index = bench.rib.open_neighbor(InterfaceId::new(2), address).unwrap();
    bench.rib.set_neighbor(index, Status::Resolved { mac: mac(9), stale: false }).unwrap();
    assert_eq!(bench.rib.unresolved_members(), []);
    bench.rib.close_neighbor(index);
    assert_eq!(bench.rib.unresolved_members(), [(InterfaceId::new(2), address)]);
}

#[test]
fn many_routes_behind_a_link_are_shown_in_steps() {
    const STEP: usize = 7;
    let mut bench = Bench::new();
    bench.up[3] = false;
    let at_once = bench.work(Bench::begin_to_set_interfaces);
    assert_eq!(at_once, (usize::from(NEIGHBORS) + 1, 2), "its neighbours and its network");
    assert_eq!(kinds(&bench.state, "23.1.0.1"), [Kind::Invalid]);
    let (mut steps, mut sum, mut more) = (0, 0, true);
    while more {
        let (shown, _) = bench.work(|bench| more = bench.rib.converge(STEP));
        assert!(shown <= STEP, "{shown}");
        (steps, sum) = (steps + 1, sum + shown);
    }
    assert_eq!(sum, usize::from(ROUTES));
    // A step goes over no more than so many, those too that are not shown.
    assert!(steps > bench.rib.len().0 / STEP, "{steps} steps");
    assert_eq!(kinds(&bench.state, "23.1.0.1"), [Kind::Forward], "the default route");
}

#[test]
fn a_link_that_is_back_before_all_its_routes_are_shown_gets_them_back() {
    let all = usize::from(ROUTES);
    for shown in [0, 1, all / 2, all - 1] {
        let mut bench = Bench::new();
        bench.up[3] = false;
        bench.begin_to_set_interfaces();
        let (before, _) = bench.done();
        while bench.done().0 < before + shown {
            assert!(bench.rib.converge(1));
        }
        bench.up[3] = true;
        bench.begin_to_set_interfaces();
        converge(&mut bench.rib);
        for n in 0..ROUTES {
            let hop = seen(&bench.state, format!("23.{n}.0.1").parse().unwrap())[0];
            let on = (hop.kind, hop.interface);
            assert_eq!(on, (Kind::Unresolved, InterfaceId::new(3)), "23.{n}.0.0/16 after {shown}");
        }
    }
}

#[test]
fn a_next_hop_is_kept_while_routes_that_are_not_shown_yet_lead_to_it() {
    let mut bench = Bench::new();
    let index = found(&bench.state, DEFAULT_VRF, "23.1.0.1".parse().unwrap()).unwrap();
    bench.up[3] = false;
    bench.begin_to_set_interfaces();
    bench.rib.close_neighbor(index);
    let is_there = |rib: &Rib| rib.next_hops().any(|hop| hop.index == index);
    while bench.rib.converge(1) {
        assert!(is_there(&bench.rib));
    }
    assert!(!is_there(&bench.rib));
}

#[test]
fn next_hops_are_not_kept_where_others_need_the_room() {
    // Two of these are kept: that of the network, and that of the routes.
    for (limit, in_steps) in [(8, true), (7, false)] {
        let mut bench = Bench::new();
        bench.rib.limits.next_hops = limit;
        bench.up[3] = false;
        bench.begin_to_set_interfaces();
        assert_eq!(bench.rib.converge(0), in_steps);
    }
}

/// The one next hop that the workers find.
fn hop_to(state: &State, address: &str) -> (Kind, InterfaceId) {
    let hops = seen(state, address.parse().unwrap());
    assert_eq!(hops.len(), 1, "{address}: {hops:?}");
    (hops[0].kind, hops[0].interface)
}

const CUT_OFF: (Kind, InterfaceId) = (Kind::Invalid, InterfaceId::NONE);
const BY_DEFAULT: (Kind, InterfaceId) = (Kind::Forward, InterfaceId::new(0));

/// Gives port 3 routes 33.n.0.0/16 by next hops of their own, and takes its link down.
fn many_next_hops(numbers: std::ops::RangeInclusive<u8>) -> Bench {
    let mut bench = Bench::new();
    let route = |n| to(&format!("33.{n}.0.0/16"), &format!("10.3.1.{n}"));
    bench.rib.apply(&numbers.map(route).collect::<Vec<_>>()).unwrap();
    bench.up[3] = false;
    bench
}

#[test]
fn many_next_hops_behind_a_link_are_looked_for_in_steps() {
    const STEP: usize = 4;
    let mut bench = many_next_hops(2..=20);
    let (_, at_once) = bench.work(Bench::begin_to_set_interfaces);
    assert_eq!(at_once, 1 + AT_ONCE, "its network, and as many more");
    let (mut sum, mut more) = (at_once, true);
    while more {
        for n in 2..=20 {
            let hop = hop_to(&bench.state, &format!("33.{n}.0.1"));
            assert!(hop == CUT_OFF || hop == BY_DEFAULT, "33.{n}.0.0/16: {hop:?}");
        }
        let (shown, resolved) = bench.work(|bench| more = bench.rib.converge(STEP));
        assert!(shown <= STEP && resolved <= STEP, "{shown} {resolved}");
        sum += resolved;
    }
    assert_eq!(sum, 1 + 20, "each once");
    for n in 2..=20 {
        assert_eq!(hop_to(&bench.state, &format!("33.{n}.0.1")), BY_DEFAULT, "33.{n}.0.0/16");
    }
}

#[test]
fn groups_lose_a_link_before_other_routes_do() {
    let mut bench = many_next_hops(2..=20);
    let group = |n: u8| {
        let members = [3, 4].map(|port| via(&format!("10.{port}.1.{n}")));
        let target = Target::Via(members.to_vec());
        Change::Add(Route::of_static(DEFAULT_VRF, prefix(&format!("35.{n}.0.0/16")), target))
    };
    bench.rib.apply(&(30..33).map(group).collect::<Vec<_>>()).unwrap();
    bench.begin_to_set_interfaces();
    for n in 30..33 {
        let hop = hop_to(&bench.state, &format!("35.{n}.0.1"));
        assert_eq!(hop, (Kind::Forward, InterfaceId::new(4)), "35.{n}.0.0/16");
    }
}

#[test]
fn a_next_hop_that_waits_is_right_at_once_for_routes_that_are_given_to_it() {
    let mut bench = many_next_hops(2..=20);
    bench.begin_to_set_interfaces();
    assert_eq!(hop_to(&bench.state, "33.20.0.1"), CUT_OFF);
    let given = bench.work(|bench| bench.rib.apply(&[to("34.0.0.0/8", "10.3.1.20")]).unwrap());
    assert_eq!(given.1, 1, "this one and no other");
    assert_eq!(hop_to(&bench.state, "34.0.0.1"), BY_DEFAULT);
    assert_eq!(hop_to(&bench.state, "33.20.0.1"), BY_DEFAULT);
}

#[test]
fn next_hops_that_found_no_room_are_looked_for_again_a_few_at_once() {
    const HOPS: u8 = 40;
    let limits = Limits { next_hops: usize::from(HOPS) + 2, ..LIMITS };
    let (mut rib, state, _) = new(limits);
    let port = |last| Some(Interface { mac: mac(last), ..interface(0, &[v4("10.0.0.1/16")]) });
    rib.set_interfaces(&interfaces(vec![port(1)]), &NextHopMacs::new());
    let route = |n: u8| to(&format!("20.{n}.0.0/16"), &format!("10.0.1.{n}"));
    rib.apply(&(0..HOPS).map(route).collect::<Vec<_>>()).unwrap();
    let neighbor = |n| IpAddr::from([10, 0, 1, n]);
    let meet = |n| rib.open_neighbor(InterfaceId::new(0), neighbor(n)).unwrap();
    let open: Vec<u32> = (0..HOPS).map(meet).collect();
    // Frames look different: everything needs a new next hop, while neighbours hold the old ones.
    rib.set_interfaces(&interfaces(vec![port(2)]), &NextHopMacs::new());
    converge(&mut rib);
    let usable = |state: &State| {
        let is_usable = |n: &u8| kinds(state, &format!("20.{n}.0.1")) == [Kind::Unresolved];
        (0..HOPS).filter(is_usable).count()
    };
    assert!(usable(&state) <= 1 && rib.is_starved());
    rib.reclaim();
    let (before, free) = (rib.targets.resolved, rib.hops.free());
    assert!(rib.feed());
    converge(&mut rib);
    assert_eq!(rib.targets.resolved - before, free + FEW);
    open.into_iter().for_each(|index| rib.close_neighbor(index));
    rib.reclaim();
    assert!(rib.feed());
    converge(&mut rib);
    assert_eq!(usable(&state), usize::from(HOPS));
    assert!(!rib.is_starved() && !rib.feed());
}
