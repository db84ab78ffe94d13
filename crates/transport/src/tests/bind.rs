//! Addresses and ports of TCP sockets: who may have which.

use super::pair::*;
use crate::options::SECOND;
use crate::*;

const REUSE: Binding = Binding {
    reuse_address: true,
    reuse_port: false,
    spread: Spread::Hash,
    v6_only: false,
    owner: 0,
};

fn any(port: u16) -> std::net::SocketAddr {
    ([0; 4], port).into()
}

#[test]
fn a_bound_port_is_reserved_before_it_listens() {
    let mut link = Link::new();
    let server = &mut link.stacks[SERVER];
    let socket = server.bind(any(80), &Binding::default()).unwrap();
    assert_eq!(server.bind(any(80), &REUSE), Err(BindError::InUse));
    assert_eq!(server.listen(any(80), 1, &Options::default()), Err(BindError::InUse));
    assert_eq!(server.bound(socket), Some((any(80), Binding::default())));
    assert!((server.backlog(socket), server.accept(socket)) == (None, None), "not listening yet");
    // Nobody listens, so a SYN is refused.
    let to = (ADDRESSES[SERVER], 80).into();
    let from = ADDRESSES[CLIENT].into();
    let id = link.stacks[CLIENT].connect(link.now, from, 0, to, &Options::default()).unwrap();
    link.run(SECOND);
    assert_eq!(link.events[CLIENT], [Event::Failed(id, Failure::Refused)]);
    link.stacks[SERVER].listen_on(socket, 5, &Options::default()).unwrap();
    let id = link.stacks[CLIENT].connect(link.now, from, 0, to, &Options::default()).unwrap();
    link.run(SECOND);
    assert_eq!(link.events[CLIENT].last(), Some(&Event::Connected(id)));
    // A second `listen` changes the backlog only.
    link.stacks[SERVER].listen_on(socket, 7, &Options::default()).unwrap();
    let waits = Backlog { waiting: 1, half_open: 0, limit: 7 };
    assert_eq!(link.stacks[SERVER].backlog(socket), Some(waits));
    assert_eq!(link.stacks[SERVER].backlog(socket), Some(waits), "looking takes nothing");
    assert!(link.stacks[SERVER].accept(socket).is_some());
    link.stacks[SERVER].close_listener(socket);
    assert_eq!(link.stacks[SERVER].bound(socket), None);
}

#[test]
fn of_two_that_reuse_an_address_one_listens() {
    let mut link = Link::new();
    let server = &mut link.stacks[SERVER];
    let [one, two] = [(); 2].map(|()| server.bind(any(80), &REUSE).unwrap());
    server.listen_on(one, 1, &Options::default()).unwrap();
    assert_eq!(server.listen_on(two, 1, &Options::default()), Err(BindError::InUse));
    assert_eq!(server.bind(any(80), &REUSE), Err(BindError::InUse), "one listens");
    server.close_listener(one);
    server.listen_on(two, 1, &Options::default()).unwrap();
}

#[test]
fn connections_hold_the_port_of_their_listener() {
    let mut link = Link::new();
    // Its listener is closed, the connection is not: SO_REUSEADDR must be said by both, as on Linux.
    for binding in [Binding::default(), REUSE] {
        let listener = link.stacks[SERVER].bind(any(80), &binding).unwrap();
        link.stacks[SERVER].listen_on(listener, 5, &Options::default()).unwrap();
        let to = (ADDRESSES[SERVER], 80).into();
        let from = ADDRESSES[CLIENT].into();
        link.stacks[CLIENT].connect(link.now, from, 0, to, &Options::default()).unwrap();
        link.run(SECOND);
        let accepted = link.stacks[SERVER].accept(listener).unwrap();
        link.stacks[SERVER].close_listener(listener);
        assert_eq!(link.stacks[SERVER].bind(any(80), &Binding::default()), Err(BindError::InUse));
        let again = link.stacks[SERVER].bind(any(80), &REUSE);
        assert_eq!(again.is_ok(), binding == REUSE);
        if let Ok(again) = again {
            link.stacks[SERVER].listen_on(again, 5, &Options::default()).unwrap();
            link.stacks[SERVER].close_listener(again);
        }
        link.stacks[SERVER].abort(accepted);
        link.run(SECOND);
        let free = link.stacks[SERVER].bind(any(80), &Binding::default()).unwrap();
        link.stacks[SERVER].close_listener(free);
    }
}

#[test]
fn port_0_is_chosen_and_never_twice() {
    let mut link = Link::new();
    let server = &mut link.stacks[SERVER];
    let sockets = [(); 50].map(|()| server.listen(any(0), 1, &Options::default()).unwrap());
    let ports = sockets.map(|socket| server.bound(socket).unwrap().0.port());
    let distinct: std::collections::BTreeSet<u16> = ports.into_iter().collect();
    assert!(distinct.len() == 50 && ports.iter().all(|port| *port >= 32_768));
    let odd = |port: u16| port % 2 == 1;
    let socket = server.bind_where(any(0), &Binding::default(), &mut |port| odd(port)).unwrap();
    assert!(odd(server.bound(socket).unwrap().0.port()));
    let none = server.bind_where(any(0), &Binding::default(), &mut |_| false);
    assert_eq!(none, Err(BindError::NoPort));
    let group = "224.0.0.1:80".parse().unwrap();
    assert_eq!(server.bind(group, &Binding::default()), Err(BindError::Address));
}

#[test]
fn a_connection_is_opened_from_a_bound_socket() {
    let mut link = Link::new();
    let to = (ADDRESSES[SERVER], 80).into();
    let listener = link.stacks[SERVER].listen(to, 5, &Options::default()).unwrap();
    let (now, from) = (link.now, ADDRESSES[CLIENT].into());
    let client = &mut link.stacks[CLIENT];
    let socket = client.bind(any(5000), &Binding::default()).unwrap();
    let options = Options::default();
    let foreign = (ADDRESSES[SERVER], 0).into();
    assert_eq!(
        client.connect_from(now, socket, from, foreign, &options),
        Err(ConnectError::Address)
    );
    let id = client.connect_from(now, socket, from, to, &options).unwrap();
    assert_eq!(client.info(id).unwrap().ends.local, (ADDRESSES[CLIENT], 5000).into());
    assert_eq!(client.bound(socket), None, "the handle is spent");
    assert_eq!(client.bind(any(5000), &Binding::default()), Err(BindError::InUse));
    link.run(SECOND);
    assert!(link.stacks[SERVER].accept(listener).is_some());
    link.stacks[CLIENT].abort(id);
    link.run(SECOND);
    link.stacks[CLIENT].bind(any(5000), &Binding::default()).unwrap();
}

#[test]
fn ports_are_chosen_as_the_caller_likes_and_held() {
    let mut link = Link::new();
    let to = (ADDRESSES[SERVER], 80).into();
    let (now, from, options) = (link.now, ADDRESSES[CLIENT].into(), Options::default());
    let client = &mut link.stacks[CLIENT];
    // As RSS with four queues would have it.
    let mine = |ends: &Ends| ends.local.port() % 4 == 3;
    for _ in 0..10 {
        let id = client.connect_where(now, from, to, &options, &mut |ends| mine(ends)).unwrap();
        let local = client.info(id).unwrap().ends.local;
        assert!(mine(&client.info(id).unwrap().ends));
        assert_eq!(client.bind(local, &REUSE), Err(BindError::InUse));
        client.bind((ADDRESSES[SERVER], local.port()).into(), &REUSE).unwrap();
    }
    let none = client.connect_where(now, from, to, &options, &mut |_| false);
    assert_eq!(none, Err(ConnectError::NoPort));
    let own = (from, 40_000).into();
    let alone = |ends: &Ends| ends.local.port() == 40_000;
    let itself = client.connect_where(now, from, own, &options, &mut |ends| alone(ends));
    assert_eq!(itself, Err(ConnectError::NoPort), "no port is its own peer");
    // A port that a socket is bound to, at whatever address, is not chosen.
    let mut taken = 0;
    let (mut stack, mut seen) = (Link::new().stacks, 0);
    let other = stack[CLIENT].bind(any(32_768), &Binding::default()).unwrap();
    let refused = stack[CLIENT].connect_where(now, from, to, &options, &mut |ends| {
        seen += 1;
        taken += u32::from(ends.local.port() == 32_768);
        false
    });
    assert_eq!((refused, taken, seen), (Err(ConnectError::NoPort), 0, 60_999 - 32_768));
    stack[CLIENT].close_listener(other);
}

#[test]
fn both_versions_or_one() {
    let mut link = Link::new();
    let server = &mut link.stacks[SERVER];
    let v6 = |port: u16| std::net::SocketAddr::from(([0u16; 8], port));
    server.listen(v6(80), 5, &Options::default()).unwrap();
    assert_eq!(server.listen(any(80), 5, &Options::default()), Err(BindError::InUse));
    let only = Binding { v6_only: true, ..Binding::default() };
    let socket = server.bind(v6(81), &only).unwrap();
    server.listen_on(socket, 5, &Options::default()).unwrap();
    server.listen(any(81), 5, &Options::default()).unwrap();
    // A mapped address is the IPv4 one.
    let mapped = "[::ffff:10.0.0.2]:82".parse().unwrap();
    let socket = server.bind(mapped, &Binding::default()).unwrap();
    assert_eq!(server.bound(socket).unwrap().0, (ADDRESSES[SERVER], 82).into());
    let (now, from) = (link.now, ADDRESSES[CLIENT].into());
    let to = (ADDRESSES[SERVER], 80).into();
    let id = link.stacks[CLIENT].connect(now, from, 0, to, &Options::default()).unwrap();
    link.run(SECOND);
    assert_eq!(link.events[CLIENT], [Event::Connected(id)]);
}

#[test]
fn time_wait_keeps_a_port_from_who_does_not_share() {
    let mut link = Link::new();
    let ids = link.connect(&Options::default(), &Options::default());
    link.stacks[SERVER].close(ids[SERVER]);
    link.run(SECOND);
    link.stacks[CLIENT].close(ids[CLIENT]);
    link.run(SECOND);
    let server = &mut link.stacks[SERVER];
    assert_eq!(server.connections(), 1, "in TIME-WAIT");
    assert_eq!(server.bind(any(80), &Binding::default()), Err(BindError::InUse));
    let other = server.bind(([10, 9, 9, 9], 80).into(), &Binding::default()).unwrap();
    server.close_listener(other);
    let again = server.bind(any(80), &REUSE).unwrap();
    server.listen_on(again, 5, &Options::default()).unwrap();
    server.close_listener(again);
    link.run(61 * SECOND);
    link.stacks[SERVER].bind(any(80), &Binding::default()).unwrap();
}

#[test]
fn connections_are_bounded_over_both_versions_together() {
    let config = Config { connections: 2, ..Config::default() };
    let mut stack = Stack::new(config, Rings).unwrap();
    let mut connect = |local: &str, remote: &str| {
        let (local, remote) = (local.parse().unwrap(), remote.parse().unwrap());
        stack.connect(1, local, 0, remote, &Options::default())
    };
    let ids = [connect("10.0.0.1", "10.0.0.2:80"), connect("fd00::1", "[fd00::2]:80")];
    assert!(ids.iter().all(Result::is_ok), "{ids:?}");
    for (local, remote) in [("10.0.0.1", "10.0.0.2:81"), ("fd00::1", "[fd00::2]:81")] {
        assert_eq!(connect(local, remote), Err(ConnectError::Full));
    }
}
