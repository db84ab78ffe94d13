//! Data, with everything that a path does to it.

use super::pair::*;
use crate::options::{MILLISECOND, SECOND};
use crate::*;

fn options() -> Options {
    Options::default()
}

#[test]
fn a_megabyte_arrives_without_retransmission() {
    let mut link = Link::new();
    let ids = link.connect(&options(), &options());
    let data = pattern(1_000_000);
    assert!(link.transfer(ids, CLIENT, &data, 60 * SECOND) == data);
    for stack in &link.stacks {
        assert_eq!(stack.counters().retransmissions, 0);
    }
}

#[test]
fn an_answer_carries_the_acknowledgment() {
    let mut link = Link::new();
    let ids = link.connect(&options(), &options());
    link.run(SECOND);
    let before = link.seen.len();
    link.stacks[CLIENT].send(ids[CLIENT], b"request").unwrap();
    link.flush();
    // The server answers before its flush.
    let request = link.seen.last().unwrap().1.clone();
    let mut list = PacketList::default();
    link.stacks[SERVER].input(link.now, &[Packet::new(&request)], &mut list);
    link.stacks[SERVER].send(ids[SERVER], b"answer").unwrap();
    link.stacks[SERVER].flush(link.now, &mut list);
    assert_eq!((link.seen.len() - before, list.packets.len()), (1, 1));
}

fn lossy(name: &str, options: &Options, percent: u64, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut link = Link::new();
        let ids = link.connect(options, options);
        let mut number = random(seed * 7919 + 1);
        link.fate = Box::new(move |_, packet| {
            let roll = number();
            let place = number() as usize % packet.len();
            match roll % 100 {
                n if n < percent => None,
                n if n < percent + 2 => {
                    packet[place] ^= 1 << (roll >> 8 & 7);
                    Some(0)
                }
                n if n < percent + 10 => Some(number() % (20 * MILLISECOND)),
                _ => Some(0),
            }
        });
        let data = pattern(200_000);
        let got = link.transfer(ids, CLIENT, &data, 600 * SECOND);
        assert!(got == data, "{name}, seed {seed}: {} bytes, {:?}", got.len(), link.events);
        let got = link.transfer(ids, SERVER, &data, 600 * SECOND);
        assert!(got == data, "{name}, seed {seed}: {} bytes back, {:?}", got.len(), link.events);
    }
}

#[test]
fn everything_arrives_over_a_bad_path() {
    lossy("all options", &options(), 3, 0..20);
    lossy("much loss", &options(), 15, 0..5);
}

#[test]
fn everything_arrives_without_options() {
    let plain = Options { sack: false, timestamps: false, window_scale: false, ..options() };
    lossy("no options", &plain, 3, 0..20);
    lossy("no SACK", &Options { sack: false, ..options() }, 3, 0..10);
    lossy("no time stamps", &Options { timestamps: false, ..options() }, 3, 0..10);
}

#[test]
fn one_lost_segment_is_repaired_without_a_timeout() {
    let mut link = Link::new();
    let ids = link.connect(&options(), &options());
    let mut dropped = false;
    link.fate = Box::new(move |_, packet| {
        if packet.len() > 1000 && !dropped {
            dropped = true;
            return None;
        }
        Some(0)
    });
    let data = pattern(100_000);
    assert!(link.transfer(ids, CLIENT, &data, 10 * SECOND) == data);
    let counters = link.stacks[CLIENT].counters();
    assert_eq!((counters.retransmissions, counters.timeouts), (1, 0));
}

#[test]
fn a_lost_tail_is_probed() {
    let mut link = Link::new();
    let ids = link.connect(&options(), &options());
    let mut count = 0;
    link.fate = Box::new(move |_, packet| {
        count += u32::from(packet.len() > 1000);
        (packet.len() <= 1000 || count != 4).then_some(0)
    });
    let data = pattern(4 * 1448);
    assert!(link.transfer(ids, CLIENT, &data, 10 * SECOND) == data);
    let counters = link.stacks[CLIENT].counters();
    assert_eq!((counters.retransmissions, counters.timeouts), (1, 0));
}

#[test]
fn a_lost_tail_waits_for_the_timeout_without_sack() {
    // RFC 8985 7.2: no probes.
    let mut link = Link::new();
    let plain = Options { sack: false, ..options() };
    let ids = link.connect(&plain, &plain);
    let mut count = 0;
    link.fate = Box::new(move |_, packet| {
        count += u32::from(packet.len() > 1000);
        (packet.len() <= 1000 || count != 4).then_some(0)
    });
    let data = pattern(4 * 1448);
    assert!(link.transfer(ids, CLIENT, &data, 10 * SECOND) == data);
    let counters = link.stacks[CLIENT].counters();
    assert_eq!((counters.retransmissions, counters.timeouts), (1, 1));
}

#[test]
fn a_closed_window_is_probed_and_opens() {
    let mut link = Link::new();
    let small = Options { receive_buffer: 4096, receive_buffer_limit: 4096, ..options() };
    let ids = link.connect(&options(), &small);
    let data = pattern(10_000);
    let written = link.stacks[CLIENT].send(ids[CLIENT], &data).unwrap();
    assert_eq!(written, 10_000);
    link.run(60 * SECOND);
    assert_eq!(link.stacks[CLIENT].info(ids[CLIENT]).unwrap().peer_window, 0);
    assert!(link.events[CLIENT].iter().all(|event| !matches!(event, Event::Failed(..))));
    // The update that opens the window is lost: a probe finds out.
    link.fate = Box::new({
        let mut first = true;
        move |_, _| (!std::mem::take(&mut first)).then_some(0)
    });
    let (mut got, mut buffer) = (Vec::<u8>::new(), vec![0; 4096]);
    while got.len() < data.len() {
        let count = link.stacks[SERVER].recv(ids[SERVER], &mut buffer).unwrap();
        got.extend(&buffer[..count]);
        let now = link.now;
        assert!(link.step(now + 200 * SECOND), "stuck after {} bytes", got.len());
    }
    assert!(got == data);
}

#[test]
fn small_writes_wait_unless_asked_not_to() {
    let count = |no_delay| {
        let mut link = Link::new();
        let ids = link.connect(&Options { no_delay, ..options() }, &options());
        let before = link.seen.iter().filter(|(side, _)| *side == CLIENT).count();
        for _ in 0..10 {
            link.stacks[CLIENT].send(ids[CLIENT], b"x").unwrap();
            link.flush();
        }
        link.run(SECOND);
        link.seen.iter().filter(|(side, _)| *side == CLIENT).count() - before
    };
    assert_eq!((count(true), count(false)), (10, 2));
}

#[test]
fn a_peer_that_vanishes_is_given_up() {
    let mut link = Link::new();
    let keepalive = Keepalive { idle: 10 * SECOND, interval: SECOND, count: 3 };
    let probing = Options { keepalive: Some(keepalive), ..options() };
    let ids = link.connect(&Options { user_timeout: 5 * SECOND, ..options() }, &probing);
    link.fate = Box::new(|_, _| None);
    link.stacks[CLIENT].send(ids[CLIENT], b"data").unwrap();
    link.run(60 * SECOND);
    for side in [CLIENT, SERVER] {
        let failed = Event::Failed(ids[side], Failure::TimedOut);
        assert!(link.events[side].contains(&failed), "{side}: {:?}", link.events);
    }
}

/// What arrived behind a hole is acknowledged late: that is no measure of the path (RFC 6298 3).
#[test]
fn a_hole_that_lasts_does_not_stretch_the_timeout() {
    let options = Options { sack: false, timestamps: false, ..options() };
    let mut link = Link::new();
    let ids = link.connect(&options, &options);
    let (mut lost, mut first) = (0, None);
    link.fate = Box::new(move |_, packet| {
        // The first data segment is lost five times; others arrive.
        let seq = packet[24..28].to_vec();
        let hit = packet.len() > 1000 && lost < 5 && *first.get_or_insert(seq.clone()) == seq;
        lost += u32::from(hit);
        (!hit).then_some(0)
    });
    let data = pattern(10_000);
    assert!(link.transfer(ids, CLIENT, &data, 60 * SECOND) == data);
    let info = link.stacks[CLIENT].info(ids[CLIENT]).unwrap();
    assert!(info.retransmissions >= 5 && info.rto < 300_000, "{info:?}");
}
