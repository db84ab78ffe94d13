//! How large packets may be: told by ICMP, found out by probes, remembered.

use super::pair::*;
use crate::options::SECOND;
use crate::*;

fn info(link: &Link, id: ConnectionId) -> Info {
    link.stacks[CLIENT].info(id).unwrap()
}

/// Tells the client that its last packet of `length` bytes was too big for `mtu`.
fn too_big(link: &mut Link, length: usize, mtu: u16) {
    let quoted = link.seen.iter().rev().find(|(_, packet)| packet.len() == length).unwrap();
    let error = icmp_unreachable(&quoted.1[..100], 4, mtu);
    let mut list = PacketList::default();
    link.stacks[CLIENT].input(link.now, &[Packet::new(&error)], &mut list);
}

/// A connection over a path whose router tells that it takes 1,300 bytes.
fn told() -> (Link, [ConnectionId; 2]) {
    let mut link = Link::new();
    let ids = link.connect(&Options::default(), &Options::default());
    link.stacks[CLIENT].send(ids[CLIENT], &pattern(3000)).unwrap();
    link.fate = Box::new(|_, packet| (packet.len() <= 1300).then_some(0));
    link.flush();
    too_big(&mut link, 1500, 1300);
    (link, ids)
}

#[test]
fn a_smaller_path_is_found() {
    let (mut link, ids) = told();
    assert_eq!((info(&link, ids[CLIENT]).mss, info(&link, ids[CLIENT]).path_mtu), (1248, 1300));
    let mut buffer = [0; 10_000];
    link.run(SECOND / 10);
    assert_eq!(link.stacks[SERVER].recv(ids[SERVER], &mut buffer).unwrap(), 3000);
    assert_eq!(link.stacks[CLIENT].counters().timeouts, 0);
}

#[test]
fn a_router_of_old_does_not_say_how_much() {
    let mut link = Link::new();
    let ids = link.connect(&Options::default(), &Options::default());
    link.fate = Box::new(|_, _| None);
    // RFC 1191 5 and 7: plateaus below what was sent.
    for (sent, plateau) in [(1500, 1492), (1492, 1006), (1006, 576), (576, 552)] {
        link.stacks[CLIENT].send(ids[CLIENT], &pattern(3000)).unwrap();
        link.flush();
        too_big(&mut link, sent, 0);
        assert_eq!(info(&link, ids[CLIENT]).path_mtu, plateau);
    }
    // The plateaus go on below what packets are made: from then on, routers may cut them.
    let may_be_cut = |link: &Link| link.seen.last().unwrap().1[6] & 0x40 == 0;
    link.flush();
    assert!(!may_be_cut(&link));
    too_big(&mut link, 552, 0);
    link.flush();
    assert!(may_be_cut(&link));
    assert_eq!(info(&link, ids[CLIENT]).path_mtu, 552);
}

#[test]
fn the_next_connection_knows_for_ten_minutes() {
    let (mut link, ids) = told();
    link.run(SECOND);
    let again = link.connect(&Options::default(), &Options::default());
    assert_eq!(info(&link, again[CLIENT]).path_mtu, 1300);
    // Without don't-fragment the path's size is nobody's business.
    let deaf = Options { mtu_discovery: false, ..Options::default() };
    let unaware = link.connect(&deaf, &deaf);
    assert_eq!(info(&link, unaware[CLIENT]).path_mtu, 1500);
    link.fate = Box::new(|_, _| Some(0));
    link.run(600 * SECOND);
    let fresh = link.connect(&Options::default(), &Options::default());
    assert_eq!(info(&link, fresh[CLIENT]).path_mtu, 1500);
    // Those that are open try again by a probe (RFC 1191 6.3).
    assert_eq!(link.stacks[SERVER].recv(ids[SERVER], &mut [0; 4000]), Ok(3000));
    let data = pattern(100_000);
    assert!(link.transfer(ids, CLIENT, &data, 10 * SECOND) == data);
    assert_eq!(info(&link, ids[CLIENT]).path_mtu, 1500);
    assert_eq!(link.stacks[CLIENT].counters().path_probes, 1);
}

#[test]
fn without_probing_ten_minutes_are_enough() {
    let (mut link, _) = told();
    let options = Options { path_probing: PathProbing::Off, ..Options::default() };
    let ids = link.connect(&options, &options);
    assert_eq!(info(&link, ids[CLIENT]).path_mtu, 1300);
    link.fate = Box::new(|_, _| Some(0));
    link.run(600 * SECOND);
    let data = pattern(10_000);
    assert!(link.transfer(ids, CLIENT, &data, 10 * SECOND) == data);
    assert_eq!(info(&link, ids[CLIENT]).path_mtu, 1500);
    assert_eq!(link.stacks[CLIENT].counters().path_probes, 0);
}

/// What a path that silently takes `mtu` bytes does to a connection.
fn silent(options: &Options, mtu: usize, length: usize, limit: u64) -> (Info, Counters, usize) {
    let mut link = Link::new();
    // A window that does not grow: a search takes round trips.
    let server = Options { receive_buffer_limit: 131_072, ..Options::default() };
    let ids = link.connect(options, &server);
    link.fate = Box::new(move |_, packet| (packet.len() <= mtu).then_some(0));
    let got = link.transfer(ids, CLIENT, &pattern(length), limit);
    assert!(got == pattern(length)[..got.len()]);
    (info(&link, ids[CLIENT]), link.stacks[CLIENT].counters().clone(), got.len())
}

#[test]
fn a_black_hole_is_left_and_the_path_searched() {
    let (info, counters, got) = silent(&Options::default(), 1400, 3_000_000, 60 * SECOND);
    assert_eq!((got, counters.black_holes), (3_000_000, 1), "{info:?}");
    assert!((1392..=1400).contains(&info.path_mtu), "{info:?}");
    assert_eq!(counters.timeouts, 3);
    let off = Options { path_probing: PathProbing::Off, ..Options::default() };
    let (info, counters, got) = silent(&off, 1400, 3_000_000, 60 * SECOND);
    assert_eq!((got, counters.black_holes, info.path_mtu), (0, 0, 1500));
}

#[test]
fn a_narrow_black_hole_takes_more_steps() {
    let (info, counters, got) = silent(&Options::default(), 600, 100_000, 200 * SECOND);
    assert_eq!((got, counters.black_holes), (100_000, 2), "{info:?}");
    assert!((512..=600).contains(&info.path_mtu), "{info:?}");
}

#[test]
fn a_search_from_the_start_is_no_congestion() {
    let options = Options {
        path_probing: PathProbing::Always,
        congestion: Algorithm::NewReno,
        ..Options::default()
    };
    for (mtu, lost) in [(9000, 0), (1500, 0), (1337, 3), (1024, 3)] {
        let (info, counters, got) = silent(&options, mtu, 4_000_000, 60 * SECOND);
        assert_eq!((got, counters.timeouts), (4_000_000, 0), "{mtu}");
        let most = mtu.min(1500) as u16;
        assert!((most - 8..=most).contains(&info.path_mtu), "{mtu}: {info:?}");
        // Lost probes are sent again in pieces; the window never shrank.
        assert_eq!(info.threshold, u32::MAX, "{mtu}: {info:?}");
        assert!(counters.path_probes_lost >= lost, "{mtu}: {counters:?}");
    }
}

#[test]
fn a_probe_lost_among_others_decides_nothing() {
    let mut link = Link::new();
    let options = Options { path_probing: PathProbing::Always, ..Options::default() };
    let ids = link.connect(&options, &Options::default());
    // The first probe is lost, and the two segments behind it.
    let mut probed = 0;
    link.fate = Box::new(move |number, packet| {
        if packet.len() > 1024 && probed == 0 {
            probed = number;
        }
        (probed == 0 || number - probed > 2).then_some(0)
    });
    let data = pattern(1_000_000);
    assert!(link.transfer(ids, CLIENT, &data, 20 * SECOND) == data);
    let counters = link.stacks[CLIENT].counters();
    assert_eq!((info(&link, ids[CLIENT]).path_mtu, counters.path_probes_lost), (1500, 0));
    assert_eq!(counters.path_probes, 2);
    assert!(info(&link, ids[CLIENT]).threshold < u32::MAX);
}

#[test]
fn a_probe_that_is_alone_in_flight_settles() {
    let mut link = Link::new();
    let options = Options { path_probing: PathProbing::Always, ..Options::default() };
    let ids = link.connect(&options, &Options::default());
    link.stacks[CLIENT].send(ids[CLIENT], &pattern(30_000)).unwrap();
    let (now, [client, server]) = (link.now, &mut link.stacks);
    let (mut probe, mut answers) = (PacketList::default(), PacketList::default());
    // The probe leaves, and nothing behind it.
    client.flush_within(now, 1, &mut probe);
    assert_eq!((client.counters().path_probes, probe.packets.len()), (1, 1));
    server.input(now, &[Packet::new(&probe.packets[0])], &mut answers);
    server.expire(now + SECOND, &mut answers);
    server.flush(now + SECOND, &mut answers);
    client.input(now, &[Packet::new(&answers.packets[0])], &mut probe);
    assert_eq!(info(&link, ids[CLIENT]).path_mtu, 1500);
}

#[test]
fn a_router_may_answer_a_probe() {
    let mut link = Link::new();
    let options = Options { path_probing: PathProbing::Always, ..Options::default() };
    let ids = link.connect(&options, &Options::default());
    link.fate = Box::new(|_, packet| (packet.len() <= 1300).then_some(0));
    let data = pattern(1_000_000);
    link.stacks[CLIENT].send(ids[CLIENT], &data).unwrap();
    link.flush();
    assert_eq!(link.stacks[CLIENT].counters().path_probes, 1);
    too_big(&mut link, 1500, 1300);
    assert_eq!(info(&link, ids[CLIENT]).path_mtu, 1024);
    link.run(SECOND);
    let found = info(&link, ids[CLIENT]);
    assert_eq!((found.path_mtu, link.stacks[CLIENT].counters().path_probes), (1300, 2));
}

#[test]
fn ipv6_begins_with_what_every_path_takes() {
    let mut link = Link::new();
    let server: std::net::SocketAddr = "[fd00::2]:80".parse().unwrap();
    let listener = link.stacks[SERVER].listen(server, 5, &Options::default()).unwrap();
    let options = Options { path_probing: PathProbing::Always, ..Options::default() };
    let id = link.stacks[CLIENT]
        .connect(link.now, "fd00::1".parse().unwrap(), 0, server, &options)
        .unwrap();
    link.run(SECOND);
    let accepted = link.stacks[SERVER].accept(listener).unwrap();
    assert_eq!((info(&link, id).path_mtu, info(&link, id).mss), (1280, 1280 - 40 - 20 - 12));
    link.fate = Box::new(|_, packet| (packet.len() <= 1400).then_some(0));
    let data = pattern(5_000_000);
    assert!(link.transfer([id, accepted], CLIENT, &data, 60 * SECOND) == data);
    let (found, counters) = (info(&link, id), link.stacks[CLIENT].counters());
    assert!((1392..=1400).contains(&found.path_mtu), "{found:?}");
    assert_eq!((counters.timeouts, counters.black_holes), (0, 0));
}

#[test]
fn one_lost_probe_is_no_proof() {
    let mut link = Link::new();
    let options = Options { path_probing: PathProbing::Always, ..Options::default() };
    let ids = link.connect(&options, &Options::default());
    let mut first = true;
    link.fate = Box::new(move |_, packet| {
        (packet.len() <= 1024 || !std::mem::take(&mut first)).then_some(0)
    });
    let data = pattern(200_000);
    assert!(link.transfer(ids, CLIENT, &data, 20 * SECOND) == data);
    let counters = link.stacks[CLIENT].counters();
    assert_eq!((counters.path_probes, counters.path_probes_lost), (2, 1));
    assert_eq!(info(&link, ids[CLIENT]).path_mtu, 1500);
}

#[test]
fn small_segments_that_vanish_are_no_black_hole() {
    let mut link = Link::new();
    let ids = link.connect(&Options::default(), &Options::default());
    link.fate = Box::new(|_, _| None);
    link.stacks[CLIENT].send(ids[CLIENT], &pattern(900)).unwrap();
    link.run(20 * SECOND);
    let counters = link.stacks[CLIENT].counters();
    assert!(counters.timeouts > 4, "{counters:?}");
    assert_eq!((counters.black_holes, info(&link, ids[CLIENT]).path_mtu), (0, 1500));
}

#[test]
fn nothing_is_probed_where_a_loss_would_not_show() {
    let options = Options { path_probing: PathProbing::Always, ..Options::default() };
    let plain = Options { sack: false, ..options.clone() };
    // 1,448 bytes and three segments behind them do not fit the window.
    let narrow = Options { receive_buffer: 4300, receive_buffer_limit: 4300, ..Options::default() };
    for (client, server) in [(&plain, &Options::default()), (&options, &narrow)] {
        let mut link = Link::new();
        let ids = link.connect(client, server);
        let data = pattern(100_000);
        assert!(link.transfer(ids, CLIENT, &data, 100 * SECOND) == data);
        assert_eq!(link.stacks[CLIENT].counters().path_probes, 0);
        assert_eq!(info(&link, ids[CLIENT]).path_mtu, 1024);
    }
}

#[test]
fn a_suspicion_is_not_handed_on() {
    let mut link = Link::new();
    let ids = link.connect(&Options::default(), &Options::default());
    link.fate = Box::new(|_, packet| (packet.len() <= 1400).then_some(0));
    // Too little for a search.
    let data = pattern(3000);
    assert!(link.transfer(ids, CLIENT, &data, 20 * SECOND) == data);
    let counters = link.stacks[CLIENT].counters();
    assert_eq!((counters.black_holes, counters.path_probes), (1, 0));
    assert_eq!(info(&link, ids[CLIENT]).path_mtu, 1024);
    let next = link.connect(&Options::default(), &Options::default());
    assert_eq!(info(&link, next[CLIENT]).path_mtu, 1500);
}
