//! Opening: both ways, at once, refused, under flood.

use super::pair::*;
use crate::options::SECOND;
use crate::*;

#[test]
fn a_connection_is_made_and_negotiates() {
    let mut link = Link::new();
    let options = Options { ecn: Ecn::Active, ..Options::default() };
    let ids = link.connect(&options, &Options::default());
    assert!(link.events[CLIENT].contains(&Event::Connected(ids[CLIENT])));
    for side in [CLIENT, SERVER] {
        let info = link.stacks[side].info(ids[side]).unwrap();
        assert_eq!(info.state, State::Established);
        assert_eq!(info.negotiated, (true, true, true));
        assert_eq!(info.mss, 1448);
        assert_eq!(info.window, 14_480);
        assert!((10_000..11_000).contains(&info.srtt), "{}", info.srtt);
    }
}

#[test]
fn nobody_listens() {
    let mut link = Link::new();
    let remote = (ADDRESSES[SERVER], 81).into();
    let id = link.stacks[CLIENT]
        .connect(link.now, ADDRESSES[CLIENT].into(), 0, remote, &Options::default())
        .unwrap();
    link.run(SECOND);
    assert_eq!(link.events[CLIENT], [Event::Failed(id, Failure::Refused)]);
    link.stacks[CLIENT].close(id);
    assert_eq!(link.stacks[CLIENT].connections(), 0);
    let end = End { acknowledged: false, failure: Some(Failure::Refused) };
    assert_eq!(link.stacks[CLIENT].poll_event(), Some(Event::Gone(id, end)));
}

#[test]
fn a_lost_syn_is_sent_again_until_given_up() {
    let mut link = Link::new();
    link.fate = Box::new(|_, _| None);
    let remote = (ADDRESSES[SERVER], 80).into();
    let options = Options { syn_retries: 2, ..Options::default() };
    let id = link.stacks[CLIENT]
        .connect(link.now, ADDRESSES[CLIENT].into(), 0, remote, &options)
        .unwrap();
    link.run(6 * SECOND);
    assert_eq!(link.seen.len(), 3);
    assert!(link.events[CLIENT].is_empty());
    link.run(2 * SECOND);
    assert_eq!(link.events[CLIENT], [Event::Failed(id, Failure::TimedOut)]);
}

/// Puts a fragment header ahead of what an IPv6 packet holds; `more`: fragments follow it.
fn add_fragment_header(packet: &mut Vec<u8>, more: bool) {
    let length = u16::from_be_bytes([packet[4], packet[5]]) + 8;
    packet[4..6].copy_from_slice(&length.to_be_bytes());
    let next = std::mem::replace(&mut packet[6], 44);
    drop(packet.splice(40..40, [next, 0, 0, u8::from(more), 0, 0, 0, 1]));
}

/// RFC 6946: a packet that is all there, though it has a fragment header, is no fragment.
#[test]
fn segments_with_a_fragment_header_that_are_whole_are_taken() {
    let (mut link, options) = (Link::new(), Options::default());
    let server: std::net::SocketAddr = "[fd00::2]:80".parse().unwrap();
    let listener = link.stacks[SERVER].listen(server, 5, &options).unwrap();
    link.fate = Box::new(|_, packet| {
        add_fragment_header(packet, false);
        Some(0)
    });
    let id = link.stacks[CLIENT]
        .connect(link.now, "fd00::1".parse().unwrap(), 0, server, &options)
        .unwrap();
    link.run(SECOND);
    let accepted = link.stacks[SERVER].accept(listener).unwrap();
    let data = pattern(20_000);
    assert!(link.transfer([id, accepted], CLIENT, &data, SECOND) == data);
    // One that is not all there is.
    link.fate = Box::new(|_, packet| {
        add_fragment_header(packet, true);
        Some(0)
    });
    link.stacks[CLIENT].send(id, b"more").unwrap();
    link.run(SECOND / 100);
    assert!(link.stacks[SERVER].counters().dropped(Reason::Fragment) > 0);
}

/// What our clock says to a peer is anywhere, so that 0 may seem to be from the future or from long ago.
#[test]
fn an_answer_that_echoes_no_time_stamp_is_taken() {
    let (mut link, options) = (Link::new(), Options::default());
    let address = (ADDRESSES[SERVER], 80).into();
    link.stacks[SERVER].listen(address, 100, &options).unwrap();
    link.fate = Box::new(|_, packet| {
        // SYN ACK: segment size, SACK and time stamps come first.
        if packet[33] & 0x12 == 0x12 {
            assert_eq!(&packet[46..48], &[8u8, 10]);
            let word = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
            let checksum = wire::checksum::update_u32((word(36) >> 16) as u16, word(52), 0);
            packet[36..38].copy_from_slice(&checksum.to_be_bytes());
            packet[52..56].fill(0);
        }
        Some(0)
    });
    let client = &mut link.stacks[CLIENT];
    let from = ADDRESSES[CLIENT].into();
    let ids = [(); 40].map(|()| client.connect(link.now, from, 0, address, &options).unwrap());
    link.run(SECOND);
    for id in ids {
        assert_eq!(link.stacks[CLIENT].info(id).unwrap().state, State::Established);
    }
}

#[test]
fn both_open_at_once() {
    let mut link = Link::new();
    let ends = |side: usize| (ADDRESSES[side], 7000);
    let ids = [CLIENT, SERVER].map(|side| {
        let remote = ends(1 - side).into();
        link.stacks[side]
            .connect(link.now, ADDRESSES[side].into(), 7000, remote, &Options::default())
            .unwrap()
    });
    link.run(SECOND);
    for side in [CLIENT, SERVER] {
        assert_eq!(link.events[side], [Event::Connected(ids[side])]);
    }
    assert_eq!(link.transfer(ids, CLIENT, b"hello", SECOND), b"hello");
    assert_eq!(link.transfer(ids, SERVER, b"there", SECOND), b"there");
}

/// A listener whose queue is full of half-open connections, since the client of one never answers, and a connection to it that has
/// just begun.
fn flood(link: &mut Link) -> (ListenerId, ConnectionId) {
    let address = (ADDRESSES[SERVER], 80).into();
    let listener = link.stacks[SERVER].listen(address, 1, &Options::default()).unwrap();
    let ghost = link.stacks[CLIENT]
        .connect(link.now, [10, 0, 0, 9].into(), 0, address, &Options::default())
        .unwrap();
    link.flush();
    link.stacks[CLIENT].abort(ghost);
    link.fate = Box::new(|_, packet| (packet[19] != 9).then_some(0));
    link.run(SECOND / 10);
    let id = link.stacks[CLIENT]
        .connect(link.now, ADDRESSES[CLIENT].into(), 0, address, &Options::default())
        .unwrap();
    (listener, id)
}

#[test]
fn a_flood_is_answered_with_cookies() {
    let mut link = Link::new();
    let (listener, id) = flood(&mut link);
    link.run(SECOND);
    assert_eq!(link.stacks[SERVER].counters().dropped(Reason::SynQueue), 1);
    let accepted = link.stacks[SERVER].accept(listener).unwrap();
    let info = link.stacks[SERVER].info(accepted).unwrap();
    assert_eq!((info.negotiated, info.scales), ((true, true, false), (7, 7)));
    let data = pattern(100_000);
    assert!(link.transfer([id, accepted], CLIENT, &data, 10 * SECOND) == data);
    assert!(link.transfer([id, accepted], SERVER, &data, 10 * SECOND) == data);
}

#[test]
fn a_cookie_is_good_at_another_stack_with_the_same_secret() {
    let (same, other) = ([2, 1], [2, 2]);
    for (seed, resets, is_taken, resets_out) in
        [(same, 1000, true, 0), (other, 1000, false, 1), (same, 0, false, 0)]
    {
        let mut link = Link::new();
        let (_, id) = flood(&mut link);
        // The answer is on its way.
        link.run(link.delay + link.delay / 2);
        assert_eq!(link.stacks[SERVER].counters().dropped(Reason::SynQueue), 1);
        let config = Config { seed, resets, ..Config::default() };
        link.stacks[SERVER] = Stack::new(config, Rings).unwrap();
        let address = (ADDRESSES[SERVER], 80).into();
        let listener = link.stacks[SERVER].listen(address, 10, &Options::default()).unwrap();
        link.run(SECOND);
        let accepted = link.stacks[SERVER].accept(listener);
        assert_eq!(accepted.is_some(), is_taken, "{seed:?}, {resets} resets");
        assert_eq!(link.stacks[SERVER].counters().resets_out, resets_out);
        if let Some(accepted) = accepted {
            assert_eq!(link.transfer([id, accepted], SERVER, b"hello", SECOND), b"hello");
        }
    }
}

#[test]
fn ipv6_works_alike() {
    let mut link = Link::new();
    let server: std::net::SocketAddr = "[fd00::2]:80".parse().unwrap();
    let listener =
        link.stacks[SERVER].listen("[::]:80".parse().unwrap(), 5, &Options::default()).unwrap();
    let id = link.stacks[CLIENT]
        .connect(link.now, "fd00::1".parse().unwrap(), 0, server, &Options::default())
        .unwrap();
    link.run(SECOND);
    let accepted = link.stacks[SERVER].accept(listener).unwrap();
    let data = pattern(50_000);
    assert!(link.transfer([id, accepted], CLIENT, &data, 10 * SECOND) == data);
    assert_eq!(link.stacks[CLIENT].info(id).unwrap().mss, 1428);
}

#[test]
fn a_port_of_which_resets_are_spared_is_no_others_business() {
    let mut link = Link::new();
    link.stacks[SERVER].spare_resets(9, u64::MAX);
    let [_, _] = link.connect(&Options::default(), &Options::default());
    let from = ADDRESSES[CLIENT].into();
    let [stray, refused] = [(40_001, 9), (40_002, 10)].map(|(own, port)| {
        let nobody = (ADDRESSES[SERVER], port).into();
        link.stacks[CLIENT].connect(link.now, from, own, nobody, &Options::default()).unwrap()
    });
    link.run(SECOND / 2);
    assert_eq!(link.stacks[SERVER].counters().resets_out, 1);
    assert_eq!(link.stacks[CLIENT].state(stray), Some(State::SynSent));
    assert_eq!(link.stacks[CLIENT].state(refused), Some(State::Closed));
    link.stacks[SERVER].spare_resets(9, 0);
    link.run(2 * SECOND);
    assert_eq!(link.stacks[SERVER].counters().resets_out, 2);
}

#[test]
fn a_syn_waits_while_all_is_quiet() {
    let mut link = Link::new();
    let remote = (ADDRESSES[SERVER], 80).into();
    let from = ADDRESSES[CLIENT].into();
    let options = Options::default();
    link.stacks[SERVER].listen(remote, 10, &options).unwrap();
    link.stacks[SERVER].keep_quiet(u64::MAX);
    let id = link.stacks[CLIENT].connect(link.now, from, 40_001, remote, &options).unwrap();
    link.run(SECOND / 2);
    assert_eq!(link.stacks[CLIENT].state(id), Some(State::SynSent));
    link.stacks[SERVER].keep_quiet(0);
    link.run(SECOND / 10);
    assert_eq!(link.stacks[CLIENT].state(id), Some(State::Established));
}
