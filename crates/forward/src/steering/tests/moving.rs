//! Connections that move from stack to stack, and ports that a process both leases and serves.

use std::net::SocketAddr;

use super::*;

const OURS: (&str, &str) = ("10.0.0.1:80", "192.0.2.7:7");

fn ours() -> Flow {
    flow(Tcp, OURS.0, OURS.1)
}

fn claim(claims: &mut ClaimsWriter, flow: &Flow) {
    assert!(claims.insert(tag(KEY, flow.protocol, flow.local, flow.remote)));
}

fn release(claims: &mut ClaimsWriter, flow: &Flow) {
    claims.remove(tag(KEY, flow.protocol, flow.local, flow.remote));
}

/// Stacks that claim nothing.
fn ids<const N: usize>(steering: &mut Steering) -> [StackId; N] {
    std::array::from_fn(|_| stack(steering).0)
}

#[test]
fn a_connection_that_moved_is_found_before_leases_and_listeners() {
    let mut steering = steering();
    let reader = steering.reader();
    let [server, lessee] = ids(&mut steering);
    let (heir, mut claims) = stack(&mut steering);
    steering.listen(server, bind("0.0.0.0", 80), 1).unwrap();
    steering.lease(lessee, 20_000, 256).unwrap();
    let flows = [
        (ours(), server),
        (flow(Tcp, "10.0.0.1:20001", "192.0.2.7:443"), lessee),
        (flow(Tcp, "[2001:db8::1]:20001", "[2001:db8::7]:443"), lessee),
    ];
    for (flow, owner) in flows {
        let beside = Flow { remote: "192.0.2.7:444".parse().unwrap(), ..flow };
        assert_eq!(reader.find(&flow, false), Some(owner));
        assert!(!reader.lets_send(heir, &flow));
        claim(&mut claims, &flow);
        steering.redirect(heir, &flow).unwrap();
        for opens in [false, true] {
            assert_eq!(reader.find(&flow, opens), Some(heir));
        }
        assert!(reader.lets_send(heir, &flow) && !reader.lets_send(heir, &beside));
        assert_eq!(steering.redirected(&flow), Some(heir));
        steering.redirect(owner, &flow).unwrap();
        assert_eq!(reader.find(&flow, false), Some(owner), "and back");
        assert!(!reader.lets_send(heir, &flow));
        assert_eq!(steering.end_redirect(&flow), Some(owner));
        assert_eq!((reader.find(&flow, false), steering.end_redirect(&flow)), (Some(owner), None));
    }
    let mixed = flow(Tcp, "10.0.0.1:80", "[2001:db8::7]:7");
    assert_eq!(steering.redirect(heir, &mixed), Err(SteeringError::NoFlow));
}

#[test]
fn what_moved_to_a_stack_ends_with_it() {
    let mut steering = steering();
    let reader = steering.reader();
    let [server, heir] = ids(&mut steering);
    steering.listen(server, bind("0.0.0.0", 80), 1).unwrap();
    steering.redirect(heir, &ours()).unwrap();
    assert!(steering.has_moved_within(80, 80) && !steering.has_moved_within(81, 90));
    steering.remove_stack(heir).unwrap();
    assert_eq!(reader.find(&ours(), false), Some(server));
    assert!(!steering.has_moved_within(0, u16::MAX));
    // Whoever has its place next has not its flows.
    let next = stack(&mut steering).0;
    assert_eq!((next.place(), reader.find(&ours(), false)), (heir.place(), Some(server)));
    assert_eq!(steering.redirect(heir, &ours()), Err(SteeringError::NoStack(heir)));
}

#[test]
fn there_is_room_for_so_many_connections_that_moved() {
    let limits = SteeringLimits { redirects: 4, ..SteeringLimits::default() };
    let mut steering = Steering::new(limits, 1, &Epoch::new()).unwrap();
    let (id, _) = stack(&mut steering);
    let nth = |port: u16| flow(Tcp, "10.0.0.1:80", &format!("192.0.2.7:{port}"));
    let full = (1..1000).find(|port| steering.redirect(id, &nth(*port)).is_err()).unwrap();
    assert_eq!(steering.redirect(id, &nth(full)), Err(SteeringError::TooManyRedirects(4)));
    assert_eq!(steering.redirected(&nth(full)), None);
    assert_eq!(steering.redirect(id, &nth(1)), Ok(()), "one that is there");
    assert_eq!(steering.moved_to(id), usize::from(full) - 1);
    steering.end_redirect(&nth(1)).unwrap();
    steering.redirect(id, &nth(full)).unwrap();
}

#[test]
fn only_who_has_a_connection_may_give_it_away() {
    let mut steering = steering();
    let (server, mut claims) = stack(&mut steering);
    let (second, mut others) = stack(&mut steering);
    let [lessee] = ids(&mut steering);
    let (stranger, mut heirs) = stack(&mut steering);
    let listener = steering.listen(server, bind("0.0.0.0", 80), 1).unwrap();
    steering.listen(second, bind("0.0.0.0", 80), 1).unwrap();
    steering.lease(lessee, 20_000, 256).unwrap();
    let leased = flow(Tcp, "10.0.0.1:20001", "192.0.2.7:443");
    assert_eq!(steering.check_owner(server, &ours()), Ok(()));
    assert_eq!(steering.check_owner(lessee, &leased), Ok(()));
    for (id, flow) in [(stranger, ours()), (stranger, leased), (server, leased), (lessee, ours())] {
        assert_eq!(steering.check_owner(id, &flow), Err(SteeringError::NotIts(id)));
    }
    // What another member has taken is not its.
    claim(&mut others, &ours());
    assert_eq!(steering.check_owner(server, &ours()), Err(SteeringError::Belongs(second)));
    assert_eq!(steering.check_owner(second, &ours()), Ok(()));
    release(&mut others, &ours());
    // Who has left may still have it.
    claim(&mut claims, &ours());
    steering.unlisten(server, listener).unwrap();
    assert_eq!(steering.check_owner(server, &ours()), Ok(()));
    // It has moved: to nobody else's gain.
    claim(&mut heirs, &ours());
    steering.redirect(stranger, &ours()).unwrap();
    assert_eq!(steering.check_owner(server, &ours()), Err(SteeringError::Belongs(stranger)));
    assert_eq!(steering.check_owner(stranger, &ours()), Ok(()));
    steering.remove_stack(stranger).unwrap();
    let gone = Err(SteeringError::NoStack(stranger));
    assert_eq!(steering.check_owner(stranger, &ours()), gone);
}

#[test]
fn redirects_end_when_the_claim_does() {
    let mut steering = steering();
    let (server, _) = stack(&mut steering);
    let (heir, mut claims) = stack(&mut steering);
    steering.listen(server, bind("0.0.0.0", 80), 1).unwrap();
    steering.redirect(heir, &ours()).unwrap();
    steering.sweep_redirects(heir, |_| true);
    assert_eq!(steering.redirected(&ours()), Some(heir), "it has had no time to claim it");
    claim(&mut claims, &ours());
    steering.sweep_redirects(heir, |_| false);
    assert_eq!(steering.redirected(&ours()), Some(heir));
    release(&mut claims, &ours());
    steering.sweep_redirects(heir, |_| false);
    assert_eq!(steering.redirected(&ours()), None);
    // One that is its by its lease needs none.
    let leased = flow(Tcp, "10.0.0.1:20001", "192.0.2.7:443");
    steering.lease(heir, 20_000, 256).unwrap();
    claim(&mut claims, &leased);
    steering.redirect(heir, &leased).unwrap();
    steering.sweep_redirects(heir, |_| false);
    assert_eq!(steering.redirected(&leased), None);
    assert_eq!(steering.reader().find(&leased, false), Some(heir));
}

#[test]
fn what_nobody_accepted_goes_to_another_member() {
    let mut steering = steering();
    let [leaver, heavy, light] = ids(&mut steering);
    let listener = steering.listen(leaver, bind("0.0.0.0", 80), 1).unwrap();
    assert_eq!(steering.successor(listener, leaver, &ours()), None);
    steering.listen(light, bind("0.0.0.0", 80), 0).unwrap();
    assert_eq!(steering.successor(listener, leaver, &ours()), Some(light));
    steering.listen(heavy, bind("0.0.0.0", 80), 1).unwrap();
    assert_eq!(steering.successor(listener, leaver, &ours()), Some(heavy));
    steering.unlisten(leaver, listener).unwrap();
    assert_eq!(steering.successor(listener, leaver, &ours()), Some(heavy));
    assert_eq!(steering.successor(listener + 1, leaver, &ours()), None);
}

#[test]
fn what_nobody_accepted_goes_where_its_flow_would() {
    let mut steering = steering();
    let [leaver, one, other] = ids(&mut steering);
    let listener = steering.listen(leaver, bind("0.0.0.0", 80), 0).unwrap();
    steering.listen(one, bind("0.0.0.0", 80), 1).unwrap();
    steering.listen(other, bind("0.0.0.0", 80), 1).unwrap();
    let reader = steering.reader();
    let mut heirs = [0; 2];
    for port in 1..=64 {
        let remote = SocketAddr::from(([192, 0, 2, 7], port));
        let flow = Flow { remote, ..ours() };
        let heir = steering.successor(listener, leaver, &flow);
        assert_eq!(heir, reader.find(&flow, true), "{port}");
        heirs[usize::from(heir == Some(other))] += 1;
    }
    assert!(heirs.iter().all(|count| *count > 0), "{heirs:?}");
}

#[test]
fn only_members_give_a_listener_connections_and_only_its_own() {
    let mut steering = steering();
    let [server, heir, other] = ids(&mut steering);
    let listener = steering.listen(server, bind("0.0.0.0", 80), 1).unwrap();
    steering.listen(heir, bind("0.0.0.0", 80), 1).unwrap();
    steering.listen(other, bind("0.0.0.0", 81), 1).unwrap();
    assert!(steering.may_hand(listener, server, &ours()));
    assert!(!steering.may_hand(listener, other, &ours()), "it serves elsewhere");
    assert!(!steering.may_hand(listener + 7, server, &ours()));
    let foreign = [
        flow(Tcp, "10.0.0.1:81", OURS.1),
        flow(Udp, OURS.0, OURS.1),
        flow(Tcp, "[2001:db8::1]:80", "[2001:db8::7]:7"),
    ];
    for flow in foreign {
        assert!(!steering.may_hand(listener, server, &flow), "{flow:?}");
    }
    // One that has left gives away what it had.
    steering.unlisten(server, listener).unwrap();
    assert!(steering.may_hand(listener, server, &ours()));
    steering.remove_stack(server).unwrap();
    assert!(!steering.may_hand(listener, server, &ours()));
}

#[test]
fn a_process_serves_a_port_that_it_leases() {
    let mut steering = steering();
    let reader = steering.reader();
    let (client, _) = stack_in(&mut steering, 1000, 77_777);
    let (server, mut claims) = stack_in(&mut steering, 1000, 77_777);
    let (stranger, _) = stack_in(&mut steering, 1000, 77_778);
    steering.lease(client, 20_000, 256).unwrap();
    let leased = SteeringError::Leased { port: 20_007, by: client };
    assert_eq!(steering.listen(stranger, bind("0.0.0.0", 20_007), 1), Err(leased));
    let listener = steering.listen(server, bind("0.0.0.0", 20_007), 1).unwrap();
    let from = |port: u16| flow(Tcp, "10.0.0.1:20007", &format!("192.0.2.7:{port}"));
    assert_eq!(reader.find(&from(1), true), Some(server), "who comes");
    claim(&mut claims, &from(1));
    assert_eq!(reader.find(&from(1), false), Some(server), "who has come");
    assert_eq!(reader.find(&from(443), false), Some(client), "what was opened from there");
    assert!(reader.lets_send(client, &from(443)) && reader.lets_send(server, &from(1)));
    let datagram = flow(Udp, "10.0.0.1:20007", "192.0.2.7:53");
    assert_eq!(reader.find(&datagram, false), Some(client), "nobody serves UDP there");
    let udp = Bind { protocol: Udp, ..bind("0.0.0.0", 20_007) };
    steering.listen(server, udp, 1).unwrap();
    assert_eq!(reader.find(&datagram, false), Some(server));
    // The other way round, too, as after a restart.
    steering.release(client, 20_000).unwrap();
    assert_eq!(steering.lease(stranger, 20_000, 256), Err(SteeringError::Served(20_007)));
    steering.lease(client, 20_000, 256).unwrap();
    assert_eq!(reader.find(&from(443), false), Some(client));
    assert_eq!(reader.find(&from(443), true), Some(server));
    steering.unlisten(server, listener).unwrap();
    steering.remove_stack(server).unwrap();
    assert_eq!(reader.find(&from(1), true), Some(client), "nobody serves it any more");
}

#[test]
fn the_next_connection_between_the_same_ends_is_no_more_where_the_last_had_moved_to() {
    let mut steering = steering();
    let reader = steering.reader();
    let (old, mut claims) = stack(&mut steering);
    let (new, mut others) = stack(&mut steering);
    let listener = steering.listen(old, bind("0.0.0.0", 80), 1).unwrap();
    steering.redirect(old, &ours()).unwrap();
    // The old one still has connections, and takes no new ones.
    steering.listen(new, bind("0.0.0.0", 80), 1).unwrap();
    steering.unlisten(old, listener).unwrap();
    let find = || (reader.find(&ours(), true), reader.find(&ours(), false));
    assert_eq!(find(), (Some(new), Some(old)), "it is on its way");
    claim(&mut claims, &ours());
    assert_eq!(find(), (Some(old), Some(old)), "it is there");
    release(&mut claims, &ours());
    claim(&mut others, &ours());
    assert_eq!(find(), (Some(new), Some(new)), "it is over, and the next one has begun");
    assert_eq!(steering.check_owner(old, &ours()), Err(SteeringError::Belongs(new)));
    assert_eq!(steering.check_owner(new, &ours()), Ok(()));
}

#[test]
fn the_same_where_it_had_moved_to_who_serves_nothing_here() {
    let mut steering = steering();
    let reader = steering.reader();
    let (server, mut claims) = stack(&mut steering);
    let (worker, mut others) = stack(&mut steering);
    let [own] = ids(&mut steering);
    steering.listen(server, bind("0.0.0.0", 80), 1).unwrap();
    let find = || (reader.find(&ours(), true), reader.find(&ours(), false));
    // It is kept on its way, and nobody claims it meanwhile.
    steering.park(own, &ours()).unwrap();
    assert_eq!(find(), (Some(own), Some(own)));
    steering.redirect(worker, &ours()).unwrap();
    assert_eq!(find(), (Some(server), Some(worker)), "it is on its way");
    claim(&mut others, &ours());
    assert_eq!(find(), (Some(worker), Some(worker)), "it is there");
    release(&mut others, &ours());
    assert_eq!(find(), (Some(server), Some(worker)), "it is over");
    claim(&mut claims, &ours());
    assert_eq!(find(), (Some(server), Some(server)), "the next one has begun");
    steering.park(own, &ours()).unwrap();
    assert_eq!(find(), (Some(own), Some(own)), "whatever others claim");
    assert!(steering.is_parked(&ours()));
    steering.redirect(own, &ours()).unwrap();
    assert_eq!(find(), (Some(server), Some(server)), "it is not kept any more");
    assert_eq!(steering.redirected(&ours()), Some(own));
    assert!(!steering.is_parked(&ours()));
}
