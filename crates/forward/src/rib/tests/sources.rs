//! Routes of several sources to one prefix.

use super::rules::{prefix, router, via};
use super::*;
use crate::rib::{
    ApplyError, Change, MOST_DISTANCE, NextHopMacs, Place, Route, RouteError, Source, Target,
};

fn place(text: &str, source: &str, distance: u8) -> Place {
    let source = source.parse().unwrap();
    Place { vrf: DEFAULT_VRF, prefix: prefix(text), source, distance }
}

fn to(text: &str, (source, distance, metric): (&str, u8, u32), hop: &str) -> Change {
    let target = Target::Via(vec![via(hop)]);
    Change::Add(Route { place: place(text, source, distance), metric, target })
}

/// Sources and distances of a prefix's routes, with a star behind the one that packets follow.
fn order(rib: &Rib, text: &str) -> Vec<String> {
    let routes = rib.routes_of(DEFAULT_VRF, prefix(text));
    let word = |route: &crate::rib::RouteInfo| {
        let star = if route.active { "*" } else { "" };
        format!("{} {}/{}{star}", route.place.source, route.place.distance, route.metric)
    };
    routes.iter().map(word).collect()
}

/// Who gets packets to 10.0.0.1: the last byte of the next hop that is found in the tables.
fn followed(rib: &Rib) -> Option<IpAddr> {
    let (hop, _) = *rib.lookup(DEFAULT_VRF, "10.0.0.1".parse().unwrap()).next_hops.first()?;
    rib.next_hops().find(|known| known.index == hop)?.address
}

#[test]
fn the_least_distance_wins_then_the_least_metric_then_the_name() {
    let (mut rib, _, _) = router(LIMITS);
    let routes = [
        (("rip", 120, 3), "192.0.2.8"),
        (("rip", 110, 7), "192.0.2.7"),
        (("ospf", 110, 7), "192.0.2.6"),
        (("isis", 110, 6), "192.0.2.5"),
        (("static", 200, 0), "192.0.2.9"),
        (("bgp", 20, 900), "192.0.2.4"),
        (("static", 1, 1), "192.0.2.3"),
    ];
    for (from, hop) in routes {
        rib.apply(&[to("10.0.0.0/8", from, hop)]).unwrap();
    }
    assert_eq!(rib.len(), (7, 0));
    let mut expected = [
        "static 1/1",
        "bgp 20/900",
        "isis 110/6",
        "ospf 110/7",
        "rip 110/7",
        "rip 120/3",
        "static 200/0",
    ]
    .to_vec();
    for last in 3..=9 {
        assert_eq!(followed(&rib), Some(format!("192.0.2.{last}").parse().unwrap()));
        let mut all: Vec<String> = expected.iter().map(ToString::to_string).collect();
        all[0].push('*');
        assert_eq!(order(&rib, "10.0.0.0/8"), all);
        let best = rib.routes_of(DEFAULT_VRF, prefix("10.0.0.0/8"))[0].place;
        rib.apply(&[Change::Remove(best)]).unwrap();
        expected.remove(0);
    }
    assert_eq!(followed(&rib), None);
}

#[test]
fn the_next_best_takes_over_while_the_best_is_unusable() {
    let (mut rib, state, _) = new(LIMITS);
    let set = |rib: &mut Rib, up: bool| {
        let left = Interface { up, ..interface(0, &[v4("192.0.2.1/24")]) };
        let right = interface(1, &[v4("198.51.100.1/24")]);
        rib.set_interfaces(&interfaces(vec![Some(left), Some(right)]), &NextHopMacs::new());
    };
    set(&mut rib, true);
    rib.apply(&[
        to("10.0.0.0/8", ("static", 1, 0), "192.0.2.2"),
        to("10.0.0.0/8", ("static", 10, 0), "198.51.100.2"),
        // To a connected network that is not there with its link down.
        to("192.0.2.0/24", ("ospf", 110, 2), "198.51.100.3"),
    ])
    .unwrap();
    let on = |address: &str| seen(&state, address.parse().unwrap())[0];
    for _ in 0..2 {
        assert_eq!(
            (on("10.0.0.1").interface, on("192.0.2.9").kind),
            (InterfaceId::new(0), Kind::Glean)
        );
        assert_eq!(order(&rib, "192.0.2.0/24"), ["connected 0/0*", "ospf 110/2"]);
        set(&mut rib, false);
        assert_eq!(
            (on("10.0.0.1").interface, on("192.0.2.9").interface),
            (InterfaceId::new(1), InterfaceId::new(1))
        );
        assert_eq!(order(&rib, "10.0.0.0/8"), ["static 1/0", "static 10/0*"]);
        assert_eq!(order(&rib, "192.0.2.0/24"), ["ospf 110/2*"]);
        set(&mut rib, true);
    }
}

#[test]
fn one_of_two_routes_with_the_same_next_hop_goes_and_the_other_follows_its_link() {
    let (mut rib, state, _) = new(LIMITS);
    let set = |rib: &mut Rib, up: bool| {
        let left = Interface { up, ..interface(0, &[v4("192.0.2.1/24")]) };
        rib.set_interfaces(&interfaces(vec![Some(left)]), &NextHopMacs::new());
    };
    set(&mut rib, true);
    let both = [("bgp", 20, 0), ("static", 1, 0)];
    rib.apply(&both.map(|from| to("10.0.0.0/8", from, "192.0.2.2"))).unwrap();
    rib.apply(&[Change::Remove(place("10.0.0.0/8", "static", 1))]).unwrap();
    assert_eq!(kinds(&state, "10.0.0.1"), [Kind::Unresolved]);
    set(&mut rib, false);
    assert_eq!(kinds(&state, "10.0.0.1"), [Kind::MissUnreachable]);
}

#[test]
fn a_place_has_one_route_and_a_metric_is_no_place() {
    let (mut rib, _, _) = router(LIMITS);
    rib.apply(&[to("10.0.0.0/8", ("ospf", 110, 20), "192.0.2.2")]).unwrap();
    rib.apply(&[to("10.0.0.0/8", ("ospf", 110, 30), "192.0.2.3")]).unwrap();
    assert_eq!(order(&rib, "10.0.0.0/8"), ["ospf 110/30*"]);
    assert_eq!((rib.len(), followed(&rib)), ((1, 0), Some("192.0.2.3".parse().unwrap())));
    let route = rib.route_at(place("10.0.0.0/8", "ospf", 110)).unwrap();
    assert_eq!((route.metric, rib.route_at(place("10.0.0.0/8", "ospf", 20))), (30, None));
}

#[test]
fn a_source_is_withdrawn_as_a_whole_and_leaves_the_others() {
    let (mut rib, state, _) = router(LIMITS);
    rib.apply(&[
        to("10.0.0.0/8", ("bgp", 20, 0), "192.0.2.2"),
        to("10.0.0.0/8", ("bgp", 200, 0), "192.0.2.3"),
        to("10.0.0.0/8", ("ospf", 110, 0), "192.0.2.4"),
        to("11.0.0.0/8", ("bgp", 20, 0), "192.0.2.2"),
        to("2001:db8:9::/48", ("bgp", 20, 0), "2001:db8::2"),
    ])
    .unwrap();
    let [bgp, ospf]: [Source; 2] = ["bgp", "ospf"].map(|name| name.parse().unwrap());
    assert_eq!(rib.sources(DEFAULT_VRF), [(bgp, [3, 1]), (ospf, [1, 0])].into());
    assert_eq!(rib.places_of(DEFAULT_VRF, bgp, 2).len(), 2);
    let [one, two] = [20, 200].map(|distance| place("10.0.0.0/8", "bgp", distance));
    assert_eq!(rib.places_at(DEFAULT_VRF, one.prefix, bgp), [one, two]);
    let mine = rib.routes((DEFAULT_VRF, Some(bgp)), false, Some(one.prefix), 10);
    assert_eq!(
        mine.iter().map(|route| route.place.prefix).collect::<Vec<_>>(),
        [prefix("11.0.0.0/8")]
    );
    let mine = rib.routes((DEFAULT_VRF, Some(bgp)), false, None, 1);
    assert_eq!(mine.iter().map(|route| route.place).collect::<Vec<_>>(), [one, two]);
    let networks = rib.routes((DEFAULT_VRF, Some(Source::CONNECTED)), false, None, 10);
    assert_eq!(networks.len(), 2);
    let places = rib.places_of(DEFAULT_VRF, bgp, 100);
    assert_eq!(places.len(), 4);
    rib.apply(&places.into_iter().map(Change::Remove).collect::<Vec<_>>()).unwrap();
    assert_eq!(rib.sources(DEFAULT_VRF), [(ospf, [1, 0])].into());
    assert_eq!(followed(&rib), Some("192.0.2.4".parse().unwrap()));
    assert_eq!(kinds(&state, "11.0.0.1"), [Kind::MissUnreachable]);
    assert_eq!(kinds(&state, "2001:db8:9::1"), [Kind::MissUnreachable]);
}

#[test]
fn what_nobody_can_give_is_refused() {
    let (mut rib, _, _) = router(LIMITS);
    for source in [Source::LOCAL, Source::CONNECTED, Source::NEIGHBOR] {
        let error = rib.apply(&[to("10.0.0.0/8", (source.name(), 0, 0), "192.0.2.2")]).unwrap_err();
        assert_eq!(error.error, RouteError::Implied(source));
    }
    let far = to("10.0.0.0/8", ("bgp", MOST_DISTANCE + 1, 0), "192.0.2.2");
    assert_eq!(rib.apply(&[far]).unwrap_err().error, RouteError::Distance(255));
    let removed = Change::Remove(place("192.0.2.0/24", "connected", 0));
    assert!(matches!(rib.apply(&[removed]).unwrap_err().error, RouteError::NoSuchRoute(_)));
    // Each source and distance is asked for the routes of a prefix, so there is a bound on them.
    let from = |n: usize| to("10.0.0.0/8", (&format!("s{n}"), 50, 0), "192.0.2.2");
    let most = super::super::fib::SLOTS;
    rib.apply(&(0..most - 1).map(from).collect::<Vec<_>>()).unwrap();
    let error = RouteError::TooManySources { limit: most };
    let two = [from(most - 1), from(most)];
    assert_eq!(rib.apply(&two), Err(ApplyError { at: 1, error: error.clone() }));
    assert_eq!(rib.len(), (most - 1, 0), "nothing of it is there");
    rib.apply(&[from(most - 1)]).unwrap();
    assert_eq!(rib.apply(&[from(most)]).unwrap_err().error, error);
}
