//! Routes of several VRFs: single rules, and random changes against a plain list of routes by VRF.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::rules::{prefix, via};
use super::*;
use crate::rib::{Change, NextHopMacs, Place, Route, RouteError, Status, Target};
use crate::state::reserved;

const RED: VrfId = 1;
const BLUE: VrfId = 2;
const ALL: [VrfId; 3] = [DEFAULT_VRF, RED, BLUE];

/// Puts port n into the VRF `of[n]`, each with the address 192.0.2.1/24, and makes the VRFs that there are.
fn set(rib: &mut Rib, of: [VrfId; 3], there: &[VrfId]) -> Vec<InterfaceId> {
    let port = |(id, vrf)| Interface { vrf, ..interface(id, &[v4("192.0.2.1/24")]) };
    let list = (0..).zip(of).map(port).map(Some);
    let vrfs = there.iter().map(|id| (*id, format!("vrf{id}"))).collect();
    there.iter().for_each(|id| rib.open_vrf(*id).unwrap());
    let all = Interfaces { vrfs, ..interfaces(list.collect()) };
    rib.set_interfaces(&all, &NextHopMacs::new())
}

/// The same, and shows all routes.
fn show(rib: &mut Rib, of: [VrfId; 3], there: &[VrfId]) -> Vec<InterfaceId> {
    let gone = set(rib, of, there);
    converge(rib);
    gone
}

/// A port in each of the three VRFs.
fn router() -> (Rib, State, Epoch) {
    let (mut rib, state, epoch) = new(LIMITS);
    show(&mut rib, ALL, &[RED, BLUE]);
    (rib, state, epoch)
}

fn add(vrf: VrfId, text: &str, target: Target) -> Change {
    Change::Add(Route::of_static(vrf, prefix(text), target))
}

/// What the workers do in a VRF: with kind and interface. `None`: there is no such VRF.
fn in_vrf(state: &State, vrf: VrfId, address: &str) -> Option<(Kind, InterfaceId)> {
    let hop = state.next_hops.get(found(state, vrf, address.parse().unwrap())?);
    Some((hop.kind, hop.interface))
}

#[test]
fn one_prefix_and_one_address_are_in_every_vrf() {
    let (mut rib, state, _) = router();
    for vrf in ALL {
        rib.apply(&[add(vrf, "10.0.0.0/8", Target::Via(vec![via("192.0.2.2")]))]).unwrap();
    }
    for (vrf, port) in ALL.into_iter().zip(0..) {
        assert_eq!(
            in_vrf(&state, vrf, "10.1.1.1"),
            Some((Kind::Unresolved, InterfaceId::new(port)))
        );
        assert_eq!(in_vrf(&state, vrf, "192.0.2.9"), Some((Kind::Glean, InterfaceId::new(port))));
        assert_eq!(in_vrf(&state, vrf, "192.0.2.1"), Some((Kind::Local, InterfaceId::NONE)));
        assert_eq!(
            in_vrf(&state, vrf, "11.1.1.1"),
            Some((Kind::MissUnreachable, InterfaceId::NONE))
        );
        assert_eq!(rib.len_of(vrf), (1, 0));
    }
    assert_eq!(rib.len(), (3, 0));
    rib.apply(&[Change::Remove(Place::of_static(RED, prefix("10.0.0.0/8")))]).unwrap();
    assert_eq!(in_vrf(&state, RED, "10.1.1.1"), Some((Kind::MissUnreachable, InterfaceId::NONE)));
    assert_eq!(in_vrf(&state, BLUE, "10.1.1.1"), Some((Kind::Unresolved, InterfaceId::new(2))));
    let error = rib
        .apply(&[Change::Remove(Place::of_static(RED, prefix("10.0.0.0/8")))])
        .unwrap_err()
        .error;
    assert_eq!(error, RouteError::NoSuchRoute(Place::of_static(RED, prefix("10.0.0.0/8"))));
}

#[test]
fn a_neighbor_has_a_route_in_the_vrf_of_its_interface_alone() {
    let (mut rib, state, _) = router();
    let address: IpAddr = "192.0.2.9".parse().unwrap();
    let index = rib.open_neighbor(InterfaceId::new(1), address).unwrap();
    rib.set_neighbor(index, Status::Resolved { mac: mac(9), stale: false }).unwrap();
    let seen = ALL.map(|vrf| in_vrf(&state, vrf, "192.0.2.9").unwrap().0);
    assert_eq!(seen, [Kind::Glean, Kind::Forward, Kind::Glean]);
    assert!(
        rib.is_gleaned(InterfaceId::new(0), address)
            && !rib.is_gleaned(InterfaceId::new(1), address)
    );
}

#[test]
fn an_interface_that_moves_takes_its_networks_along_and_leaves_its_neighbors() {
    let (mut rib, state, _) = router();
    let index = rib.open_neighbor(InterfaceId::new(1), "192.0.2.9".parse().unwrap()).unwrap();
    rib.set_neighbor(index, Status::Resolved { mac: mac(9), stale: false }).unwrap();
    assert_eq!(
        show(&mut rib, [DEFAULT_VRF, DEFAULT_VRF, BLUE], &[RED, BLUE]),
        [InterfaceId::new(1)]
    );
    rib.close_neighbor(index);
    assert_eq!(in_vrf(&state, RED, "192.0.2.9"), Some((Kind::MissUnreachable, InterfaceId::NONE)));
    assert_eq!(in_vrf(&state, RED, "192.0.2.1"), Some((Kind::MissUnreachable, InterfaceId::NONE)));
    assert_eq!(in_vrf(&state, DEFAULT_VRF, "192.0.2.9"), Some((Kind::Glean, InterfaceId::new(0))));
    assert_eq!(rib.next_hops().count(), 2, "the networks of ports 0 and 2");
}

#[test]
fn a_route_by_an_interface_waits_until_that_is_in_its_vrf() {
    let (mut rib, state, _) = router();
    rib.apply(&[add(RED, "10.0.0.0/8", Target::Port(InterfaceId::new(1)))]).unwrap();
    assert_eq!(in_vrf(&state, RED, "10.1.1.1"), Some((Kind::Glean, InterfaceId::new(1))));
    show(&mut rib, [DEFAULT_VRF, BLUE, BLUE], &[RED, BLUE]);
    assert_eq!(in_vrf(&state, RED, "10.1.1.1"), Some((Kind::MissUnreachable, InterfaceId::NONE)));
    assert!(!rib.routes_of(RED, prefix("10.0.0.0/8"))[0].usable);
    show(&mut rib, ALL, &[RED, BLUE]);
    assert_eq!(in_vrf(&state, RED, "10.1.1.1"), Some((Kind::Glean, InterfaceId::new(1))));
}

#[test]
fn routes_lead_to_other_vrfs_and_not_to_their_own() {
    let (mut rib, state, _) = router();
    rib.apply(&[add(RED, "10.0.0.0/8", Target::Vrf(BLUE))]).unwrap();
    rib.apply(&[add(BLUE, "10.0.0.0/8", Target::Vrf(DEFAULT_VRF))]).unwrap();
    let value = |vrf| found(&state, vrf, "10.1.1.1".parse().unwrap());
    assert_eq!(value(RED), Some(reserved::of_vrf(BLUE)));
    assert_eq!(value(BLUE), Some(reserved::of_vrf(DEFAULT_VRF)));
    for (change, error) in [
        (add(RED, "10.0.0.0/8", Target::Vrf(RED)), RouteError::SameVrf(prefix("10.0.0.0/8"))),
        (add(RED, "10.0.0.0/8", Target::Vrf(9)), RouteError::NoSuchVrf(9)),
        (add(9, "10.0.0.0/8", Target::Blackhole), RouteError::NoSuchVrf(9)),
        (
            add(RED, "10.0.0.0/8", Target::Port(InterfaceId::new(2))),
            RouteError::OtherVrf(InterfaceId::new(2)),
        ),
    ] {
        assert_eq!(rib.apply(&[change]).unwrap_err().error, error);
    }
    assert_eq!(value(RED), Some(reserved::of_vrf(BLUE)));
}

#[test]
fn routes_of_and_to_a_vrf_that_is_gone_wait_for_it() {
    let (mut rib, state, _) = router();
    rib.apply(&[
        add(RED, "10.0.0.0/8", Target::Vrf(BLUE)),
        add(RED, "0.0.0.0/0", Target::Unreachable),
        add(BLUE, "10.0.0.0/8", Target::Blackhole),
    ])
    .unwrap();
    show(&mut rib, [DEFAULT_VRF, RED, DEFAULT_VRF], &[RED]);
    assert_eq!(
        in_vrf(&state, RED, "10.1.1.1"),
        Some((Kind::Unreachable, InterfaceId::NONE)),
        "the wider route"
    );
    assert_eq!(in_vrf(&state, BLUE, "10.1.1.1"), None);
    for vrf in [RED, BLUE] {
        let routes = rib.routes_of(vrf, prefix("10.0.0.0/8"));
        let flags: Vec<_> = routes.iter().map(|route| (route.usable, route.active)).collect();
        assert_eq!(flags, [(false, false)]);
    }
    assert_eq!(rib.named_vrfs().collect::<BTreeSet<_>>(), BTreeSet::from([RED, BLUE]));
    assert_eq!(rib.len(), (3, 0), "they count");

    show(&mut rib, ALL, &[RED, BLUE]);
    assert_eq!(in_vrf(&state, BLUE, "10.1.1.1"), Some((Kind::Blackhole, InterfaceId::NONE)));
    assert_eq!(
        found(&state, RED, "10.1.1.1".parse().unwrap()),
        Some(reserved::of_vrf(BLUE)),
        "and in force again"
    );
    // Once nothing names it, nothing of it is left.
    let all = [(RED, "10.0.0.0/8"), (BLUE, "10.0.0.0/8")];
    rib.apply(&all.map(|(vrf, text)| Change::Remove(Place::of_static(vrf, prefix(text))))).unwrap();
    show(&mut rib, [DEFAULT_VRF, RED, DEFAULT_VRF], &[RED]);
    assert_eq!(rib.named_vrfs().collect::<Vec<_>>(), [RED]);
    assert!(rib.routes((BLUE, None), false, None, 10).is_empty());
    let error = rib.apply(&[add(BLUE, "10.0.0.0/8", Target::Blackhole)]).unwrap_err().error;
    assert_eq!(error, RouteError::NoSuchVrf(BLUE));
}

/// Where random routes lead.
#[derive(Debug, Clone, Copy)]
enum Aim {
    Blackhole,
    Unreachable,
    Vrf(VrfId),
}

impl Aim {
    fn target(self) -> Target {
        match self {
            Self::Blackhole => Target::Blackhole,
            Self::Unreachable => Target::Unreachable,
            Self::Vrf(vrf) => Target::Vrf(vrf),
        }
    }

    fn value(self) -> u32 {
        match self {
            Self::Blackhole => reserved::BLACKHOLE,
            Self::Unreachable => reserved::UNREACHABLE,
            Self::Vrf(vrf) => reserved::of_vrf(vrf),
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Add(VrfId, usize, Aim),
    Remove(VrfId, usize),
    /// These VRFs are there.
    There(Vec<VrfId>),
    /// So many routes are shown that this concerns.
    Converge(usize),
}

const PREFIXES: [&str; 4] = ["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.1.1/32"];
const ADDRESSES: [&str; 4] = ["20.0.0.1", "10.9.0.1", "10.1.9.1", "10.1.1.1"];

/// All routes by VRF, the VRFs that there are, and those that have tables.
#[derive(Default)]
struct Model {
    routes: BTreeMap<(VrfId, usize), Aim>,
    there: BTreeSet<VrfId>,
    open: BTreeSet<VrfId>,
}

impl Model {
    fn is_there(&self, vrf: VrfId) -> bool {
        vrf == DEFAULT_VRF || self.there.contains(&vrf)
    }

    fn takes(&self, vrf: VrfId, aim: Aim) -> bool {
        let open = |vrf: VrfId| vrf == DEFAULT_VRF || self.open.contains(&vrf);
        let fits = if let Aim::Vrf(to) = aim { open(to) && to != vrf } else { true };
        open(vrf) && fits
    }

    fn find(&self, vrf: VrfId, address: usize) -> Option<u32> {
        if !self.is_there(vrf) {
            return None;
        }
        // Address n lies in the first n + 1 prefixes.
        let mut routes = (0..=address).rev().filter_map(|at| self.routes.get(&(vrf, at)));
        let usable = |aim: &&Aim| if let Aim::Vrf(to) = aim { self.is_there(*to) } else { true };
        Some(routes.find(usable).map_or(reserved::MISS, |aim| aim.value()))
    }
}

fn step() -> impl Strategy<Value = Step> {
    let vrf = || 0..4_u16;
    let aim = prop_oneof![Just(Aim::Blackhole), Just(Aim::Unreachable), vrf().prop_map(Aim::Vrf)];
    prop_oneof![
        5 => (vrf(), 0..PREFIXES.len(), aim).prop_map(|(vrf, at, aim)| Step::Add(vrf, at, aim)),
        3 => (vrf(), 0..PREFIXES.len()).prop_map(|(vrf, at)| Step::Remove(vrf, at)),
        2 => proptest::sample::subsequence(vec![1_u16, 2, 3], 0..=3).prop_map(Step::There),
        3 => (1..6_usize).prop_map(Step::Converge),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn workers_find_in_each_vrf_what_is_in_it(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let (mut rib, state, _) = new(LIMITS);
        let mut model = Model::default();
        let at_prefix = |at: usize| prefix(PREFIXES[at]);
        for step in steps.into_iter().chain([Step::Converge(usize::MAX)]) {
            match step {
                Step::Add(vrf, at, aim) => {
                    let route = Route::of_static(vrf, at_prefix(at), aim.target());
                    let added = rib.apply(&[Change::Add(route)]);
                    prop_assert_eq!(added.is_ok(), model.takes(vrf, aim));
                    if added.is_ok() {
                        model.routes.insert((vrf, at), aim);
                    }
                }
                Step::Remove(vrf, at) => {
                    let removed = rib.apply(&[Change::Remove(Place::of_static(vrf, at_prefix(at)))]);
                    prop_assert_eq!(removed.is_ok(), model.routes.remove(&(vrf, at)).is_some());
                }
                Step::There(there) => {
                    set(&mut rib, [DEFAULT_VRF; 3], &there);
                    model.there = there.into_iter().collect();
                    model.open = model.there.clone();
                    model.open.extend(model.routes.keys().map(|(vrf, _)| *vrf));
                }
                Step::Converge(most) => {
                    rib.converge(most);
                }
            }
            let all_shown = !rib.converge(0);
            for vrf in 0..4 {
                for (at, address) in ADDRESSES.iter().enumerate().filter(|_| all_shown) {
                    let seen = found(&state, vrf, address.parse().unwrap());
                    prop_assert_eq!(seen, model.find(vrf, at), "{} in {}", address, vrf);
                }
                let count = model.routes.keys().filter(|(of, _)| *of == vrf).count();
                prop_assert_eq!(rib.len_of(vrf), (count, 0));
            }
        }
    }
}
