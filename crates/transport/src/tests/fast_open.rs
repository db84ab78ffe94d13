//! Fast Open (RFC 7413): data in the SYN.

use super::pair::*;
use crate::options::{MILLISECOND, SECOND};
use crate::*;

fn options() -> Options {
    Options { fast_open: true, ..Options::default() }
}

/// Two stacks, a listener that stays, and a client that wants to send at once.
struct Scene {
    link: Link,
    listener: ListenerId,
}

impl Scene {
    fn new(server: &Options) -> Self {
        let mut link = Link::new();
        let address = (ADDRESSES[SERVER], 80).into();
        let listener = link.stacks[SERVER].listen(address, 100, server).unwrap();
        Self { link, listener }
    }

    /// Opens a connection and writes to it before the SYN leaves.
    fn open(&mut self, data: &[u8]) -> ConnectionId {
        let (from, to) = (ADDRESSES[CLIENT].into(), (ADDRESSES[SERVER], 80).into());
        let client = &mut self.link.stacks[CLIENT];
        let id = client.connect(self.link.now, from, 0, to, &options()).unwrap();
        assert_eq!(client.send(id, data), Ok(data.len()));
        self.link.flush();
        id
    }

    fn accept(&mut self) -> Option<ConnectionId> {
        self.link.stacks[SERVER].accept(self.listener)
    }

    fn read(&mut self, side: usize, id: ConnectionId) -> Vec<u8> {
        let mut buffer = vec![0; 100_000];
        let count = self.link.stacks[side].recv(id, &mut buffer).unwrap();
        buffer.truncate(count);
        buffer
    }

    /// A first connection, which brings the cookie.
    fn acquaint(&mut self) {
        let id = self.open(b"hello");
        self.link.run(SECOND);
        let accepted = self.accept().unwrap();
        assert_eq!(self.read(SERVER, accepted), b"hello");
        assert_eq!(self.dropped(Reason::SynData), 0, "it asked without data");
        assert!(!self.info(CLIENT, id).fast_open && !self.info(SERVER, accepted).fast_open);
    }

    fn info(&self, side: usize, id: ConnectionId) -> Info {
        self.link.stacks[side].info(id).unwrap()
    }

    /// What the last SYN of a side carried: Fast Open option and bytes of data.
    fn last_syn(&self, side: usize) -> (Option<Vec<u8>>, usize) {
        let syn = |(from, packet): &&(usize, Vec<u8>)| *from == side && packet[33] & 2 != 0;
        let (_, packet) = self.link.seen.iter().rev().find(syn).unwrap();
        let segment = wire::tcp::Segment::parse(&packet[20..]).unwrap();
        let option = segment.options().flatten().find_map(|option| match option {
            wire::tcp::Option::Other { kind: 34, data } => Some(data.to_vec()),
            _ => None,
        });
        (option, segment.data.len())
    }

    fn dropped(&self, reason: Reason) -> u64 {
        self.link.stacks[SERVER].counters().dropped(reason)
    }
}

#[test]
fn nothing_is_asked_for_by_itself() {
    let mut link = Link::new();
    link.connect(&Options::default(), &options());
    let plain = |(_, packet): &(usize, Vec<u8>)| packet[33] & 2 == 0 || packet.len() == 20 + 40;
    assert!(link.seen.iter().all(plain), "a SYN and its answer have 20 bytes of options");
}

#[test]
fn an_answer_comes_after_one_round_trip() {
    let mut scene = Scene::new(&options());
    scene.acquaint();
    assert_eq!(scene.last_syn(CLIENT), (Some(vec![]), 0), "the first asks, without data");
    let cookie = scene.last_syn(SERVER).0.unwrap();
    assert_eq!(cookie.len(), 8);
    let began = scene.link.now;
    let id = scene.open(b"request");
    assert_eq!(scene.last_syn(CLIENT), (Some(cookie), 7));
    scene.link.run(5 * MILLISECOND);
    let accepted = scene.accept().unwrap();
    assert_eq!(scene.info(SERVER, accepted).state, State::SynReceived);
    assert_eq!(scene.read(SERVER, accepted), b"request");
    scene.link.stacks[SERVER].send(accepted, b"answer").unwrap();
    scene.link.stacks[SERVER].close(accepted);
    scene.link.run(6 * MILLISECOND);
    assert_eq!(
        (scene.read(CLIENT, id).as_slice(), scene.link.now - began),
        (&b"answer"[..], 11_000_000)
    );
    assert!(scene.info(CLIENT, id).fast_open);
    scene.link.run(SECOND);
    assert!(scene.link.stacks[CLIENT].is_finished(id), "the FIN followed the handshake");
    assert_eq!(scene.link.stacks[SERVER].counters().fast_opens, 1);
    let counters = scene.link.stacks[CLIENT].counters();
    assert_eq!((counters.retransmissions, counters.timeouts), (0, 0));
}

#[test]
fn more_than_a_segment_follows_the_handshake() {
    let mut scene = Scene::new(&options());
    scene.acquaint();
    let data = pattern(50_000);
    scene.open(&data);
    // 1460 less 20 of options and 12 of the cookie.
    assert_eq!(scene.last_syn(CLIENT).1, 1428);
    scene.link.run(SECOND);
    let accepted = scene.accept().unwrap();
    assert!(scene.read(SERVER, accepted) == data);
    assert_eq!(scene.link.stacks[CLIENT].counters().retransmissions, 0);
}

#[test]
fn what_the_server_does_not_take_comes_again_at_once() {
    let mut scene = Scene::new(&options());
    scene.acquaint();
    // The server's key changes; twice, so that the cookie is too old.
    scene.link.run(2 * 86_400 * SECOND);
    let began = scene.link.now;
    scene.open(b"request");
    scene.link.run(16 * MILLISECOND);
    let accepted = scene.accept().unwrap();
    assert_eq!(
        (scene.read(SERVER, accepted).as_slice(), scene.link.now - began),
        (&b"request"[..], 16_000_000)
    );
    assert_eq!(
        (scene.dropped(Reason::FastOpenCookie), scene.link.stacks[CLIENT].counters().timeouts),
        (1, 0)
    );
    // A new cookie came with the refusal.
    let id = scene.open(b"request");
    scene.link.run(SECOND);
    assert!(scene.info(CLIENT, id).fast_open);
    // After one change a cookie still counts, and is renewed.
    scene.link.run(86_400 * SECOND);
    let old = scene.last_syn(CLIENT).0;
    let id = scene.open(b"request");
    scene.link.run(SECOND);
    assert!(scene.info(CLIENT, id).fast_open);
    assert!(scene.last_syn(SERVER).0.is_some_and(|new| Some(new) != old));
}

#[test]
fn a_listener_without_it_takes_no_data() {
    let mut scene = Scene::new(&options());
    scene.acquaint();
    scene.link.stacks[SERVER].close_listener(scene.listener);
    let address = (ADDRESSES[SERVER], 80).into();
    scene.listener = scene.link.stacks[SERVER].listen(address, 10, &Options::default()).unwrap();
    let id = scene.open(b"request");
    scene.link.run(SECOND);
    let accepted = scene.accept().unwrap();
    assert_eq!(scene.read(SERVER, accepted), b"request");
    assert_eq!((scene.info(CLIENT, id).fast_open, scene.dropped(Reason::SynData)), (false, 1));
    // The cookie is forgotten, and none is asked for in the next minute.
    scene.open(b"request");
    assert_eq!(scene.last_syn(CLIENT), (None, 0));
    scene.link.run(60 * SECOND);
    scene.open(b"request");
    assert_eq!(scene.last_syn(CLIENT), (Some(vec![]), 0));
}

#[test]
fn after_silence_the_syn_is_plain() {
    let mut scene = Scene::new(&options());
    scene.acquaint();
    let mut first = true;
    scene.link.fate = Box::new(move |_, _| (!std::mem::take(&mut first)).then_some(0));
    scene.open(b"request");
    assert_eq!(scene.last_syn(CLIENT).1, 7);
    scene.link.run(2 * SECOND);
    assert_eq!(scene.last_syn(CLIENT), (None, 0));
    let accepted = scene.accept().unwrap();
    assert_eq!(scene.read(SERVER, accepted), b"request");
    // For a minute the next are plain too.
    scene.open(b"request");
    assert_eq!(scene.last_syn(CLIENT), (None, 0));
    scene.link.run(60 * SECOND);
    scene.open(b"request");
    assert_eq!(scene.last_syn(CLIENT).1, 7);
}

#[test]
fn few_may_be_half_open_and_resets_count_for_a_minute() {
    let mut scene = Scene::new(&Options { fast_open_pending: 1, ..options() });
    scene.acquaint();
    // The client aborts as soon as the answer comes, so the handshake ends in a reset.
    let id = scene.open(b"request");
    scene.link.run(5 * MILLISECOND);
    let accepted = scene.accept().unwrap();
    scene.link.stacks[CLIENT].abort(id);
    scene.link.run(SECOND);
    assert_eq!(scene.info(SERVER, accepted).failure, Some(Failure::Reset));
    scene.open(b"request");
    scene.link.run(SECOND);
    assert_eq!(
        (scene.dropped(Reason::FastOpenQueue), scene.link.stacks[SERVER].counters().fast_opens),
        (1, 1)
    );
    scene.link.run(60 * SECOND);
    // The refusal cost the client its cookie.
    scene.open(b"request");
    scene.link.run(SECOND);
    let id = scene.open(b"request");
    scene.link.run(SECOND);
    assert!(scene.info(CLIENT, id).fast_open);
}

#[test]
fn everything_arrives_over_a_bad_path() {
    for seed in 0..40 {
        let mut scene = Scene::new(&options());
        scene.acquaint();
        let mut number = random(seed * 7919 + 1);
        scene.link.fate = Box::new(move |_, _| match number() % 10 {
            0..2 => None,
            2..5 => Some(number() % (20 * MILLISECOND)),
            _ => Some(0),
        });
        let data = pattern(20_000);
        let id = scene.open(&data);
        let mut accepted = None;
        for _ in 0..100 {
            scene.link.run(SECOND);
            accepted = accepted.or_else(|| scene.accept());
            if accepted.is_some() {
                break;
            }
        }
        let ids = [id, accepted.unwrap()];
        let (mut read, until) = (Vec::new(), scene.link.now + 600 * SECOND);
        while read.len() < data.len() && scene.link.step(until) {
            read.extend(scene.read(SERVER, ids[1]));
        }
        assert!(read == data, "seed {seed}: {} bytes", read.len());
        assert!(scene.link.transfer(ids, SERVER, &data, 600 * SECOND) == data, "seed {seed}");
    }
}

#[test]
fn a_connection_that_ends_is_not_counted_twice() {
    let mut scene = Scene::new(&Options { fast_open_pending: 1, ..options() });
    scene.acquaint();
    scene.open(b"first");
    scene.link.run(SECOND);
    let first = scene.accept().unwrap();
    // The second's handshake does not end: its client's acknowledgments are lost.
    scene.link.fate = Box::new(|_, packet| (packet[33] & 2 != 0).then_some(0));
    scene.open(b"second");
    scene.link.run(10 * MILLISECOND);
    assert_eq!(scene.link.stacks[SERVER].counters().fast_opens, 2);
    scene.link.stacks[SERVER].abort(first);
    scene.open(b"third");
    scene.link.run(10 * MILLISECOND);
    let fast_opens = scene.link.stacks[SERVER].counters().fast_opens;
    assert_eq!((fast_opens, scene.dropped(Reason::FastOpenQueue)), (2, 1));
}

#[test]
fn the_application_knows_whether_a_syn_takes_data_and_what_it_took() {
    let mut scene = Scene::new(&options());
    let peer = ADDRESSES[SERVER].into();
    let room = |scene: &Scene, options: &Options| {
        scene.link.stacks[CLIENT].fast_open_room(scene.link.now, peer, options)
    };
    assert_eq!(room(&scene, &options()), 0, "no cookie yet");
    scene.acquaint();
    assert_eq!((room(&scene, &options()), room(&scene, &Options::default())), (1420, 0));
    let id = scene.open(&pattern(3000));
    scene.link.run(SECOND);
    let accepted = scene.accept().unwrap();
    let taken = [(CLIENT, id), (SERVER, accepted)].map(|(side, id)| scene.info(side, id).syn_data);
    assert_eq!(taken, [1428, 1428]);
    scene.link.run(2 * 86_400 * SECOND);
    let id = scene.open(b"with a cookie that is too old");
    scene.link.run(SECOND);
    assert_eq!(scene.info(CLIENT, id).syn_data, 0);
}

#[test]
fn servers_with_the_same_keys_know_one_anothers_cookies() {
    let keys = |primary, backup| Some(FastOpenKeys { primary, backup });
    let mut scene = Scene::new(&options());
    scene.link.stacks[SERVER].set_fast_open_keys(keys([1; 16], None));
    scene.acquaint();
    // Rotation: the next key is known, used, and the old one forgotten.
    let mut taken = Vec::new();
    for (primary, backup) in [([1; 16], Some([2; 16])), ([2; 16], Some([1; 16])), ([2; 16], None)] {
        scene.link.run(86_400 * SECOND);
        scene.link.stacks[SERVER].set_fast_open_keys(keys(primary, backup));
        let id = scene.open(b"request");
        scene.link.run(SECOND);
        taken.push(scene.info(CLIENT, id).fast_open);
        scene.accept().unwrap();
    }
    assert_eq!(taken, [true; 3], "the second was renewed, so the third knows it");
    scene.link.stacks[SERVER].set_fast_open_keys(keys([3; 16], None));
    let id = scene.open(b"request");
    scene.link.run(SECOND);
    assert!(!scene.info(CLIENT, id).fast_open);
}

#[test]
fn among_friends_no_cookie_is_needed() {
    let free = Options { fast_open_without_cookie: true, ..options() };
    let mut scene = Scene::new(&free);
    let to = std::net::SocketAddr::from((ADDRESSES[SERVER], 80));
    let from = ADDRESSES[CLIENT].into();
    let client = &mut scene.link.stacks[CLIENT];
    assert!(client.fast_open_room(1, to.ip(), &free) > 1400);
    let id = client.connect(scene.link.now, from, 0, to, &free).unwrap();
    client.send(id, b"request").unwrap();
    scene.link.run(5 * MILLISECOND);
    assert_eq!(scene.last_syn(CLIENT), (None, 7));
    let accepted = scene.accept().unwrap();
    assert_eq!(scene.read(SERVER, accepted), b"request");
    scene.link.run(SECOND);
    assert_eq!((scene.info(CLIENT, id).syn_data, scene.info(SERVER, accepted).syn_data), (7, 7));
    // A listener that wants cookies takes nothing without.
    let mut scene = Scene::new(&options());
    let client = &mut scene.link.stacks[CLIENT];
    let id = client.connect(scene.link.now, from, 0, to, &free).unwrap();
    client.send(id, b"request").unwrap();
    scene.link.run(SECOND);
    assert_eq!((scene.dropped(Reason::SynData), scene.info(CLIENT, id).syn_data), (1, 0));
    let accepted = scene.accept().unwrap();
    assert_eq!(scene.read(SERVER, accepted), b"request");
}
