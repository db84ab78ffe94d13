//! Accurate congestion feedback (RFC 9768) between two stacks, with a path that changes bits.

mod marks;

use super::pair::*;
use crate::options::SECOND;
use crate::*;

const CE: u8 = 3;
const SYN: u8 = 2;
const SYN_ACK: u8 = 0x12;

fn options(ecn: Ecn) -> Options {
    Options { ecn, ..Options::default() }
}

fn flags(packet: &[u8]) -> u8 {
    packet[33]
}

/// AE, CWR, ECE as a number.
fn ace(packet: &[u8]) -> u8 {
    (packet[32] & 1) << 2 | packet[33] >> 6
}

fn set_ace(packet: &mut [u8], ace: u8) {
    packet[32] = packet[32] & !1 | ace >> 2;
    packet[33] = packet[33] & 0x3f | ace << 6;
    packet[36..38].fill(0);
    let address = |at: usize| <[u8; 4]>::try_from(&packet[at..at + 4]).unwrap().into();
    let sum = wire::checksum::Sum::new().pseudo_v4(
        address(12),
        address(16),
        wire::Protocol::TCP,
        packet.len() as u16 - 20,
    );
    let sum = sum.bytes(&packet[20..]).finish();
    packet[36..38].copy_from_slice(&sum.to_be_bytes());
}

fn mark(packet: &mut [u8], ecn: u8) {
    packet[1] = packet[1] & !3 | ecn;
    wire::ipv4::write_checksum(packet).unwrap();
}

fn option(packet: &[u8]) -> Option<(u8, Vec<u8>)> {
    let segment = wire::tcp::Segment::parse(&packet[20..]).unwrap();
    segment.options().flatten().find_map(|option| match option {
        wire::tcp::Option::Other { kind: kind @ (172 | 174), data } => Some((kind, data.to_vec())),
        _ => None,
    })
}

fn info(link: &Link, side: usize, ids: [ConnectionId; 2]) -> Info {
    link.stacks[side].info(ids[side]).unwrap()
}

/// The packets of a side with these of SYN and ACK.
fn seen(link: &Link, side: usize, kind: u8) -> Vec<Vec<u8>> {
    let of = |(from, packet): &&(usize, Vec<u8>)| *from == side && flags(packet) & SYN_ACK == kind;
    link.seen.iter().filter(of).map(|(_, packet)| packet.clone()).collect()
}

/// Whether data of a side leaves as capable of marks.
fn is_capable(link: &mut Link, side: usize, ids: [ConnectionId; 2]) -> bool {
    let data = pattern(1000);
    assert!(link.transfer(ids, side, &data, 30 * SECOND) == data);
    link.run(SECOND);
    let long = |(from, packet): &&(usize, Vec<u8>)| *from == side && packet.len() > 500;
    link.seen.iter().rev().find(long).unwrap().1[1] & 3 == 2
}

#[test]
fn both_sides_agree_on_the_most_that_both_have() {
    use Ecn::{Accurate, Active, Off, Passive};
    for (client, server, syn, answer, mode) in [
        (Accurate, Passive, 7, 2, 2),
        (Accurate, Active, 7, 2, 2),
        (Accurate, Accurate, 7, 2, 2),
        (Accurate, Off, 7, 0, 0),
        (Active, Accurate, 3, 1, 1),
        (Passive, Accurate, 0, 0, 0),
        (Off, Accurate, 0, 0, 0),
    ] {
        let mut link = Link::new();
        let ids = link.connect(&options(client), &options(server));
        assert_eq!(ace(&seen(&link, CLIENT, SYN)[0]), syn, "{client:?} {server:?}");
        assert_eq!(ace(&seen(&link, SERVER, SYN_ACK)[0]), answer, "{client:?} {server:?}");
        for side in [CLIENT, SERVER] {
            let info = info(&link, side, ids);
            let found = u8::from(info.negotiated.2) + u8::from(info.marks.is_some());
            assert_eq!(found, mode, "{client:?} {server:?} {side}");
            assert_eq!(is_capable(&mut link, side, ids), mode > 0);
        }
    }
}

#[test]
fn the_handshake_tests_the_option_and_tells_how_it_arrived() {
    let mut link = Link::new();
    let ids = link.connect(&options(Ecn::Accurate), &options(Ecn::Passive));
    let first = [0, 0, 1, 0, 0, 0, 0, 0, 1].to_vec();
    assert_eq!(option(&seen(&link, CLIENT, SYN)[0]), None);
    assert_eq!(option(&seen(&link, SERVER, SYN_ACK)[0]), Some((172, first.clone())));
    let ack = seen(&link, CLIENT, 0x10)[0].clone();
    // The handshake's encoding: the answer came as not capable.
    assert_eq!((ace(&ack), option(&ack), ack.len()), (2, Some((172, first)), 20 + 20 + 24));
    link.stacks[CLIENT].send(ids[CLIENT], b"small").unwrap();
    link.run(SECOND);
    let data = seen(&link, CLIENT, 0x10).pop().unwrap();
    assert_eq!((ace(&data), option(&data).map(|(_, fields)| fields.len())), (5, Some(9)));
    let answer = seen(&link, SERVER, 0x10).pop().unwrap();
    assert_eq!(option(&answer), Some((172, vec![0, 0, 6])), "five bytes more with ECT(0)");
}

/// What the client makes of an answer to its SYN with other bits.
fn answered(bits: u8) -> (Info, bool) {
    let mut link = Link::new();
    link.fate = Box::new(move |_, packet| {
        if flags(packet) & SYN_ACK == SYN_ACK {
            set_ace(packet, bits);
        }
        Some(0)
    });
    let ids = link.connect(&options(Ecn::Accurate), &options(Ecn::Passive));
    let capable = is_capable(&mut link, CLIENT, ids);
    (info(&link, CLIENT, ids), capable)
}

#[test]
fn every_answer_has_its_meaning() {
    for (bits, accurate, marks, capable) in [
        (0, false, false, false),
        (1, false, true, true),
        (2, true, true, true),
        // Our SYN came capable or marked, which it was not: feedback goes on, marks do not.
        (3, true, true, false),
        (4, true, true, false),
        (6, true, true, false),
        (5, true, true, true),
        (7, false, false, false),
    ] {
        let (info, sent) = answered(bits);
        assert_eq!(
            (info.marks.is_some(), info.negotiated.2, sent),
            (accurate, marks, capable),
            "{bits}"
        );
    }
}

#[test]
fn a_server_reflects_how_the_syn_arrived() {
    for (ecn, bits) in [(0, 2), (1, 3), (2, 4), (CE, 6)] {
        let mut link = Link::new();
        link.fate = Box::new(move |_, packet| {
            if flags(packet) & SYN_ACK == SYN {
                mark(packet, ecn);
            }
            Some(0)
        });
        let ids = link.connect(&options(Ecn::Accurate), &options(Ecn::Passive));
        assert_eq!(ace(&seen(&link, SERVER, SYN_ACK)[0]), bits);
        assert_eq!(info(&link, SERVER, ids).marks, Some((0, 0)), "a SYN is not counted");
    }
}

#[test]
fn a_marked_answer_is_counted_once() {
    let mut link = Link::new();
    link.fate = Box::new(move |number, packet| {
        if flags(packet) & SYN_ACK == SYN_ACK {
            mark(packet, CE);
        }
        // The acknowledgment of the first is lost: the answer comes again.
        (number != 3).then_some(0)
    });
    let ids = link.connect(&options(Ecn::Accurate), &options(Ecn::Passive));
    link.run(SECOND);
    let acks = seen(&link, CLIENT, 0x10);
    assert_eq!((acks.len(), ace(&acks[0]), ace(&acks[1])), (2, 6, 6));
    assert_eq!(
        (info(&link, CLIENT, ids).marks, info(&link, SERVER, ids).marks),
        (Some((1, 0)), Some((0, 1)))
    );
    assert!(!is_capable(&mut link, SERVER, ids), "it left as not capable");
}

#[test]
fn a_syn_that_is_lost_twice_asks_for_nothing() {
    let mut link = Link::new();
    link.fate = Box::new(|number, _| (number > 2).then_some(0));
    let ids = link.connect(&options(Ecn::Accurate), &options(Ecn::Passive));
    let syns = seen(&link, CLIENT, SYN);
    assert_eq!(syns.iter().map(|syn| ace(syn)).collect::<Vec<_>>(), [7, 7, 0]);
    assert_eq!(info(&link, CLIENT, ids).marks, None);
}

#[test]
fn an_answer_that_is_lost_gets_simpler() {
    let mut link = Link::new();
    let mut answers = 0;
    link.fate = Box::new(move |_, packet| {
        answers += u32::from(flags(packet) & SYN_ACK == SYN_ACK);
        // The client's own repetitions are lost too.
        let again = flags(packet) & SYN_ACK == SYN && answers > 0;
        (!again && (answers > 2 || flags(packet) & SYN_ACK != SYN_ACK)).then_some(0)
    });
    let ids = link.connect(&options(Ecn::Accurate), &options(Ecn::Passive));
    let told: Vec<_> =
        seen(&link, SERVER, SYN_ACK).iter().map(|p| (ace(p), option(p).is_some())).collect();
    assert_eq!(told, [(2, true), (2, false), (0, false)]);
    // The server stays with its feedback, but nothing of it may be marked.
    assert!(info(&link, SERVER, ids).marks.is_some() && info(&link, CLIENT, ids).marks.is_none());
    assert!(!is_capable(&mut link, SERVER, ids));
}

#[test]
fn two_kinds_of_syn_are_reset() {
    for (first, then) in [(7, 3), (3, 7)] {
        let mut link = Link::new();
        let mut syns = 0;
        link.fate = Box::new(move |_, packet| {
            if flags(packet) & SYN_ACK == SYN {
                syns += 1;
                set_ace(packet, if syns == 1 { first } else { then });
            }
            (flags(packet) & SYN_ACK != SYN_ACK).then_some(0)
        });
        let address = (ADDRESSES[SERVER], 80).into();
        link.stacks[SERVER].listen(address, 10, &Options::default()).unwrap();
        let id = link.stacks[CLIENT]
            .connect(link.now, ADDRESSES[CLIENT].into(), 0, address, &options(Ecn::Accurate))
            .unwrap();
        link.run(3 * SECOND);
        assert_eq!(link.stacks[SERVER].counters().dropped(Reason::EcnMixed), 1);
        assert_eq!(link.events[CLIENT], [Event::Failed(id, Failure::Refused)]);
        assert_eq!(link.stacks[SERVER].connections(), 0);
    }
}

#[test]
fn an_answer_that_came_capable_was_mangled() {
    for ecn in [1, 2] {
        let mut link = Link::new();
        link.fate = Box::new(move |_, packet| {
            if flags(packet) & SYN_ACK == SYN_ACK {
                mark(packet, ecn);
            }
            Some(0)
        });
        let ids = link.connect(&options(Ecn::Accurate), &options(Ecn::Passive));
        assert_eq!(ace(&seen(&link, CLIENT, 0x10)[0]), 2 + ecn);
        assert!(is_capable(&mut link, CLIENT, ids) && !is_capable(&mut link, SERVER, ids));
    }
}

#[test]
fn an_empty_option_tests_the_path_where_a_cookie_takes_the_room() {
    let mut link = Link::new();
    let both = Options { fast_open: true, ..options(Ecn::Accurate) };
    link.connect(&both, &both);
    assert_eq!(option(&seen(&link, SERVER, SYN_ACK)[0]), Some((172, Vec::new())));
}

#[test]
fn both_open_at_once() {
    let mut link = Link::new();
    let ends = |side: usize| (ADDRESSES[side], 7000);
    let ids = [CLIENT, SERVER].map(|side| {
        let remote = ends(1 - side).into();
        let ecn = options(Ecn::Accurate);
        link.stacks[side].connect(link.now, ADDRESSES[side].into(), 7000, remote, &ecn).unwrap()
    });
    link.run(SECOND);
    for side in [CLIENT, SERVER] {
        assert_eq!(info(&link, side, ids).marks, Some((0, 0)));
        assert!(is_capable(&mut link, side, ids));
        assert_eq!(info(&link, side, ids).marks, Some((0, 0)));
    }
}

#[test]
fn a_cookie_needs_no_memory_of_it() {
    for (ecn, timestamps, accurate) in
        [(Ecn::Accurate, true, true), (Ecn::Accurate, false, true), (Ecn::Active, true, false)]
    {
        let mut link = Link::new();
        let address = (ADDRESSES[SERVER], 80).into();
        let listener = link.stacks[SERVER].listen(address, 1, &Options::default()).unwrap();
        let options = Options { timestamps, ..options(ecn) };
        // A half-open connection fills the queue: its client never answers.
        let ghost = link.stacks[CLIENT]
            .connect(link.now, [10, 0, 0, 9].into(), 0, address, &options)
            .unwrap();
        link.flush();
        link.stacks[CLIENT].abort(ghost);
        link.fate = Box::new(|_, packet| (packet[19] != 9).then_some(0));
        link.run(SECOND / 10);
        let id = link.stacks[CLIENT]
            .connect(link.now, ADDRESSES[CLIENT].into(), 0, address, &options)
            .unwrap();
        link.run(SECOND / 10);
        assert_eq!(link.stacks[SERVER].counters().dropped(Reason::SynQueue), 1);
        let ids = [id, link.stacks[SERVER].accept(listener).unwrap()];
        for side in [CLIENT, SERVER] {
            let found = info(&link, side, ids);
            assert_eq!(
                (found.negotiated.2, found.marks.is_some()),
                (true, accurate),
                "{ecn:?} {side}"
            );
            assert!(is_capable(&mut link, side, ids));
        }
    }
}

#[test]
fn a_syn_that_asks_for_nothing_any_more_ends_the_servers_marks() {
    let mut link = Link::new();
    let (mut syns, mut answers) = (0, 0);
    link.fate = Box::new(move |_, packet| {
        match flags(packet) & SYN_ACK {
            SYN => {
                syns += 1;
                set_ace(packet, if syns == 1 { 7 } else { 0 });
            }
            SYN_ACK => answers += 1,
            _ => {}
        }
        (answers != 1 || flags(packet) & SYN_ACK != SYN_ACK).then_some(0)
    });
    let ids = link.connect(&options(Ecn::Accurate), &options(Ecn::Passive));
    let told: Vec<_> = seen(&link, SERVER, SYN_ACK).iter().map(|packet| ace(packet)).collect();
    assert!(told.len() > 1 && told.iter().all(|told| *told == 2), "{told:?}");
    assert!(info(&link, SERVER, ids).marks.is_some() && info(&link, CLIENT, ids).marks.is_some());
    assert!(!is_capable(&mut link, SERVER, ids));
    assert!(is_capable(&mut link, CLIENT, ids));
}

#[test]
fn only_the_answer_that_comes_again_is_answered_as_in_the_handshake() {
    let mut link = Link::new();
    // Without time stamps: with them the answer would be too old by now.
    let options = Options { timestamps: false, ..options(Ecn::Accurate) };
    let ids = link.connect(&options, &options);
    assert_eq!(link.transfer(ids, SERVER, &pattern(3000), SECOND).len(), 3000);
    link.run(SECOND);
    let answer = seen(&link, SERVER, SYN_ACK)[0].clone();
    let data = seen(&link, SERVER, 0x10).into_iter().find(|packet| packet.len() > 1000).unwrap();
    for (packet, field) in [(data, 5), (answer, 2)] {
        let mut list = PacketList::default();
        link.stacks[CLIENT].input(link.now, &[Packet::new(&packet)], &mut list);
        assert_eq!(list.packets.iter().map(|packet| ace(packet)).collect::<Vec<_>>(), [field]);
        link.run(SECOND);
    }
}

#[test]
fn a_classic_syn_may_be_followed_by_a_plain_one() {
    let mut link = Link::new();
    let mut answers = 0;
    link.fate = Box::new(move |_, packet| {
        answers += u32::from(flags(packet) & SYN_ACK == SYN_ACK);
        (answers != 1 || flags(packet) & SYN_ACK != SYN_ACK).then_some(0)
    });
    let ids = link.connect(&options(Ecn::Active), &options(Ecn::Passive));
    let syns: Vec<_> = seen(&link, CLIENT, SYN).iter().map(|packet| ace(packet)).collect();
    assert_eq!(syns, [3, 0]);
    assert_eq!(link.stacks[SERVER].counters().dropped(Reason::EcnMixed), 0);
    assert!(info(&link, CLIENT, ids).marks.is_none());
}
