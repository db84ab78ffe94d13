//! Who is let in, and when.

use std::cell::RefCell;
use std::rc::Rc;

use super::pair::*;
use crate::options::{MILLISECOND, SECOND};
use crate::*;

/// What an application says of its accept queue, and what it was asked.
#[derive(Debug, Default)]
struct Gate {
    syns: bool,
    connections: bool,
    asked: Vec<Opening>,
}

#[derive(Debug, Clone, Default)]
struct Gated(Rc<RefCell<Gate>>);

impl Buffers for Gated {
    type Fifo = Ring;

    fn admits(&mut self, _: ListenerId, ends: &Ends) -> bool {
        assert_eq!(ends.local.port(), 80);
        self.0.borrow().syns
    }

    fn open(&mut self, opening: &Opening) -> Grant<Ring> {
        let mut gate = self.0.borrow_mut();
        gate.asked.push(*opening);
        if gate.connections { Rings.open(opening) } else { Grant::Later }
    }

    fn close(&mut self, _: ConnectionId, _: Pair<Ring>) {}
}

struct Scene {
    link: Link<Gated>,
    gate: Gated,
    listener: ListenerId,
}

impl Scene {
    fn new(options: &Options, backlog: usize) -> Self {
        let open = || {
            let gate = Gated::default();
            *gate.0.borrow_mut() = Gate { syns: true, connections: true, asked: Vec::new() };
            gate
        };
        let gate = open();
        let mut link = Link::with([open(), gate.clone()]);
        let address = (ADDRESSES[SERVER], 80).into();
        let listener = link.stacks[SERVER].listen(address, backlog, options).unwrap();
        Self { link, gate, listener }
    }

    fn open(&mut self) -> ConnectionId {
        let to = (ADDRESSES[SERVER], 80).into();
        let from = ADDRESSES[CLIENT].into();
        let client = &mut self.link.stacks[CLIENT];
        client.connect(self.link.now, from, 0, to, &Options::default()).unwrap()
    }

    fn set(&self, syns: bool, connections: bool) {
        let mut gate = self.gate.0.borrow_mut();
        (gate.syns, gate.connections) = (syns, connections);
    }

    fn accept(&mut self) -> Option<ConnectionId> {
        self.link.stacks[SERVER].accept(self.listener)
    }

    fn dropped(&self, reason: Reason) -> u64 {
        self.link.stacks[SERVER].counters().dropped(reason)
    }
}

#[test]
fn a_syn_that_is_not_admitted_is_dropped_and_comes_again() {
    let mut scene = Scene::new(&Options::default(), 10);
    scene.set(false, true);
    let id = scene.open();
    scene.link.run(SECOND / 2);
    assert_eq!(
        (scene.dropped(Reason::AcceptQueue), scene.link.stacks[SERVER].connections()),
        (1, 0)
    );
    scene.set(true, true);
    scene.link.run(SECOND);
    assert_eq!(scene.link.events[CLIENT], [Event::Connected(id)]);
    assert!(scene.accept().is_some());
    assert_eq!(scene.link.stacks[SERVER].counters().resets_out, 0);
}

#[test]
fn a_handshake_that_cannot_end_now_ends_later() {
    let mut scene = Scene::new(&Options::default(), 10);
    scene.set(true, false);
    let id = scene.open();
    scene.link.run(SECOND / 2);
    assert_eq!(scene.link.events[CLIENT], [Event::Connected(id)], "the client knows nothing of it");
    assert_eq!((scene.dropped(Reason::AcceptQueue), scene.accept()), (1, None));
    let asked = scene.gate.0.borrow().asked[0];
    assert_eq!((asked.listener, asked.ends.local.port()), (Some(scene.listener), 80));
    assert_eq!(asked.ends.remote, scene.link.stacks[CLIENT].info(id).unwrap().ends.local);
    // What the client sends asks again, and so does its answer to the repeated SYN-ACK.
    scene.link.stacks[CLIENT].send(id, b"hello").unwrap();
    scene.link.run(3 * SECOND);
    assert!(scene.dropped(Reason::AcceptQueue) > 3);
    scene.set(true, true);
    scene.link.run(10 * SECOND);
    let accepted = scene.accept().unwrap();
    let mut buffer = [0; 10];
    assert_eq!(scene.link.stacks[SERVER].recv(accepted, &mut buffer), Ok(5));
    assert_eq!(scene.link.stacks[SERVER].counters().resets_out, 0);
}

#[test]
fn what_is_never_admitted_is_forgotten() {
    let mut scene = Scene::new(&Options { syn_ack_retries: 2, ..Options::default() }, 10);
    scene.set(true, false);
    scene.open();
    scene.link.run(8 * SECOND);
    assert_eq!(scene.link.stacks[SERVER].connections(), 0);
    let answers =
        scene.link.seen.iter().filter(|(from, packet)| *from == SERVER && packet[33] & 2 != 0);
    assert_eq!(answers.count(), 3);
}

#[test]
fn a_cookie_that_cannot_be_taken_now_leaves_nothing() {
    let mut scene = Scene::new(&Options::default(), 1);
    scene.set(true, false);
    let ids = [scene.open(), scene.open()];
    scene.link.run(SECOND / 2);
    // One is half open, the other was answered with a cookie.
    assert_eq!((scene.dropped(Reason::SynQueue), scene.link.stacks[SERVER].connections()), (1, 1));
    scene.set(true, true);
    for id in ids {
        scene.link.stacks[CLIENT].send(id, b"x").unwrap();
    }
    let mut accepted = 0;
    for _ in 0..20 {
        scene.link.run(SECOND);
        accepted += std::iter::from_fn(|| scene.accept()).count();
    }
    assert_eq!(accepted, 2);
}

#[test]
fn a_deferred_connection_waits_for_data() {
    let options = Options { defer_accept: 5 * SECOND, ..Options::default() };
    let mut scene = Scene::new(&options, 10);
    let id = scene.open();
    scene.link.run(2 * SECOND);
    assert_eq!(scene.link.events, [vec![Event::Connected(id)], vec![]]);
    assert_eq!((scene.accept(), scene.dropped(Reason::Deferred)), (None, 1));
    let answers = |scene: &Scene| {
        scene
            .link
            .seen
            .iter()
            .filter(|(from, packet)| *from == SERVER && packet[33] & 2 != 0)
            .count()
    };
    assert_eq!(answers(&scene), 1, "it was acknowledged, so it is not repeated");
    scene.link.stacks[CLIENT].send(id, b"request").unwrap();
    scene.link.run(20 * MILLISECOND);
    let accepted = scene.accept().unwrap();
    let mut buffer = [0; 10];
    assert_eq!(scene.link.stacks[SERVER].recv(accepted, &mut buffer), Ok(7));
    // A client that is silent is let in all the same: 5 s are three rounds (1, 2 and 4 s).
    scene.open();
    scene.link.run(6 * SECOND);
    assert_eq!(scene.accept(), None);
    scene.link.run(3 * SECOND);
    assert!(scene.accept().is_some());
    assert_eq!(answers(&scene), 3);
}

#[test]
fn retries_of_syn_and_answer_are_two_things() {
    let options = Options { syn_retries: 1, syn_ack_retries: 3, ..Options::default() };
    let mut scene = Scene::new(&options, 10);
    scene.link.fate = Box::new(|_, packet| (packet[33] & 0x12 == 2).then_some(0));
    let id = scene.link.stacks[CLIENT]
        .connect(
            scene.link.now,
            ADDRESSES[CLIENT].into(),
            0,
            (ADDRESSES[SERVER], 80).into(),
            &options,
        )
        .unwrap();
    scene.link.run(60 * SECOND);
    assert_eq!(scene.link.events[CLIENT], [Event::Failed(id, Failure::TimedOut)]);
    let syns = |side: usize| {
        scene.link.seen.iter().filter(|(from, packet)| *from == side && packet[33] & 2 != 0).count()
    };
    // Each SYN that comes again is answered too.
    assert_eq!((syns(CLIENT), syns(SERVER)), (2, 1 + 3 + 1));
}

#[test]
fn options_of_a_listener_reach_who_comes_later() {
    let mut scene = Scene::new(&Options::default(), 10);
    scene.open();
    let mut options = Options { no_delay: true, ttl: 7, ..Options::default() };
    scene.link.run(7 * MILLISECOND);
    // The handshake goes on: it is not too late.
    scene.link.stacks[SERVER].set_listener_options(scene.listener, options.clone()).unwrap();
    scene.link.run(SECOND);
    let first = scene.accept().unwrap();
    assert_eq!(scene.link.stacks[SERVER].options(first), Some(&options));
    options.user_timeout = SECOND;
    scene.link.stacks[SERVER].set_listener_options(scene.listener, options.clone()).unwrap();
    scene.open();
    scene.link.run(SECOND);
    let second = scene.accept().unwrap();
    assert_eq!(scene.link.stacks[SERVER].options(second), Some(&options));
    assert_eq!(scene.link.stacks[SERVER].options(first).unwrap().user_timeout, 0);
    assert_eq!(scene.link.seen.last().map(|(_, packet)| packet[8]), Some(64), "the client's");
    scene.link.stacks[SERVER].send(second, b"x").unwrap();
    scene.link.flush();
    assert_eq!(scene.link.seen.last().map(|(_, packet)| packet[8]), Some(7));
}

#[test]
fn a_handshake_outlives_its_listener_in_a_group() {
    let mut link = Link::new();
    let address = (ADDRESSES[SERVER], 80).into();
    let binding = Binding { reuse_port: true, ..Binding::default() };
    let listeners = [(); 2].map(|()| {
        let socket = link.stacks[SERVER].bind(address, &binding).unwrap();
        link.stacks[SERVER].listen_on(socket, 10, &Options::default()).unwrap();
        socket
    });
    let ids = [(); 8].map(|()| {
        let from = ADDRESSES[CLIENT].into();
        link.stacks[CLIENT].connect(link.now, from, 0, address, &Options::default()).unwrap()
    });
    link.run(7 * MILLISECOND);
    let half_open = listeners.map(|id| link.stacks[SERVER].backlog(id).unwrap().half_open);
    assert!(half_open.iter().sum::<usize>() == 8 && half_open[0] > 0 && half_open[1] > 0);
    link.stacks[SERVER].close_listener(listeners[0]);
    link.run(SECOND);
    assert_eq!(std::iter::from_fn(|| link.stacks[SERVER].accept(listeners[1])).count(), ids.len());
    let left = Backlog { waiting: 0, half_open: 0, limit: 10 };
    assert_eq!(link.stacks[SERVER].backlog(listeners[1]), Some(left));
}

#[test]
fn a_queue_that_fills_during_a_handshake_lets_it_end_later() {
    let mut scene = Scene::new(&Options::default(), 2);
    scene.open();
    scene.link.run(SECOND);
    let ids = [scene.open(), scene.open()];
    scene.link.run(SECOND / 2);
    assert!(ids.iter().all(|id| scene.link.events[CLIENT].contains(&Event::Connected(*id))));
    let full = Backlog { waiting: 2, half_open: 1, limit: 2 };
    assert_eq!(scene.link.stacks[SERVER].backlog(scene.listener), Some(full));
    assert_eq!(scene.dropped(Reason::AcceptQueue), 1);
    assert!(scene.accept().is_some() && scene.accept().is_some());
    // The answer to the SYN is repeated, and its acknowledgment comes in time.
    scene.link.run(2 * SECOND);
    assert!(scene.accept().is_some());
    assert_eq!(scene.link.stacks[SERVER].counters().resets_out, 0);
}
