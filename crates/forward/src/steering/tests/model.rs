//! Whoever comes and goes, flows stay and new ones go where a plain model says.

use std::collections::BTreeMap;
use std::net::IpAddr;

use proptest::prelude::*;

use super::*;

/// What happens to the steering.
#[derive(Debug, Clone)]
enum Step {
    Add,
    End(usize),
    Listen(usize, usize, u8),
    Unlisten(usize, usize),
    Open(usize, u16),
    Close(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => Just(Step::Add),
        1 => (0..8usize).prop_map(Step::End),
        4 => (0..8usize, 0..BINDS.len(), 0..4u8).prop_map(|(a, b, w)| Step::Listen(a, b, w)),
        2 => (0..8usize, 0..BINDS.len()).prop_map(|(a, b)| Step::Unlisten(a, b)),
        8 => (0..LOCALS.len(), 1..500u16).prop_map(|(at, port)| Step::Open(at, port)),
        2 => (0..50usize).prop_map(Step::Close),
    ];
    prop::collection::vec(step, 1..120)
}

/// Address, and whether IPv6 only; the more particular first.
const BINDS: [(&str, bool); 5] =
    [("10.0.0.1", false), ("2001:db8::1", false), ("0.0.0.0", false), ("::", true), ("::", false)];
const LOCALS: [&str; 4] = ["10.0.0.1", "10.0.0.2", "2001:db8::1", "2001:db8::2"];

fn serves(bind: usize, local: IpAddr) -> bool {
    match bind {
        0 | 1 => BINDS[bind].0.parse() == Ok(local),
        2 => local.is_ipv4(),
        3 => local.is_ipv6(),
        _ => true,
    }
}

/// The same, as plain as can be.
#[derive(Default)]
struct Model {
    stacks: Vec<(StackId, ClaimsWriter)>,
    members: BTreeMap<(usize, StackId), u8>,
    flows: Vec<(Flow, StackId)>,
}

impl Model {
    /// Who may get a new flow.
    fn takers(&self, local: IpAddr) -> Vec<StackId> {
        let of = |bind| self.members.iter().filter(move |((at, _), _)| *at == bind);
        let serving = (0..BINDS.len()).filter(|bind| serves(*bind, local));
        let Some(bind) = serving.into_iter().find(|bind| of(*bind).count() > 0) else {
            return Vec::new();
        };
        let active = of(bind).any(|(_, weight)| *weight > 0);
        of(bind).filter(|(_, weight)| !active || **weight > 0).map(|((_, id), _)| *id).collect()
    }
}

fn bind_of(at: usize) -> Bind {
    let (address, only_v6) = BINDS[at];
    Bind { only_v6, ..bind(address, 80) }
}

fn run(steering: &mut Steering, model: &mut Model, step: &Step) {
    let reader = steering.reader();
    match *step {
        Step::Add if model.stacks.len() < 8 => model.stacks.push(stack(steering)),
        Step::Add => {}
        Step::End(at) if at < model.stacks.len() => {
            let (id, _) = model.stacks.remove(at);
            steering.remove_stack(id).unwrap();
            model.members.retain(|(_, member), _| *member != id);
            model.flows.retain(|(_, owner)| *owner != id);
        }
        Step::Listen(at, bind, weight) if at < model.stacks.len() => {
            let id = model.stacks[at].0;
            steering.listen(id, bind_of(bind), weight).unwrap();
            model.members.insert((bind, id), weight);
        }
        Step::Unlisten(at, bind) if at < model.stacks.len() => {
            let id = model.stacks[at].0;
            let known = steering.listeners().find(|view| view.bind == bind_of(bind));
            let done = known.map(|view| steering.unlisten(id, view.id).is_ok());
            assert_eq!(done.unwrap_or(false), model.members.remove(&(bind, id)).is_some());
        }
        Step::Open(at, port) => {
            let local: IpAddr = LOCALS[at].parse().unwrap();
            let remote = if local.is_ipv4() { "192.0.2.7" } else { "2001:db8::7" };
            let remote = (remote.parse::<IpAddr>().unwrap(), port).into();
            let flow = Flow { protocol: Tcp, local: (local, 80).into(), remote };
            if model.flows.iter().any(|(known, _)| *known == flow) {
                return;
            }
            let takers = model.takers(local);
            let found = reader.find(&flow, true);
            assert_eq!(found.is_some(), !takers.is_empty());
            let Some(owner) = found else { return };
            assert!(takers.contains(&owner), "{owner} of {takers:?}");
            let (_, claims) = model.stacks.iter_mut().find(|(id, _)| *id == owner).unwrap();
            if claims.len() < 40 && claims.insert(tag(KEY, Tcp, flow.local, flow.remote)) {
                model.flows.push((flow, owner));
            }
        }
        Step::Close(at) if at < model.flows.len() => {
            let (flow, owner) = model.flows.swap_remove(at);
            let (_, claims) = model.stacks.iter_mut().find(|(id, _)| *id == owner).unwrap();
            claims.remove(tag(KEY, Tcp, flow.local, flow.remote));
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn flows_stay_and_new_ones_go_where_they_should(steps in steps()) {
        let mut steering = steering();
        let mut model = Model::default();
        let reader = steering.reader();
        for step in &steps {
            run(&mut steering, &mut model, step);
            for (flow, owner) in &model.flows {
                prop_assert_eq!(reader.find(flow, false), Some(*owner), "{:?} after {:?}", flow, step);
                prop_assert!(reader.lets_send(*owner, flow));
            }
        }
    }
}
