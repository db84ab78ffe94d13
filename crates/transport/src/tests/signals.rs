//! Congestion marks, and losses that were none.

use super::pair::*;
use crate::options::{MILLISECOND, SECOND};
use crate::*;

/// A transfer from the client, whose 30th segment is marked; `prepare` may change the client's connection before.
fn marked(prepare: impl FnOnce(&mut Stack<Rings>, ConnectionId)) -> (Link, Info) {
    let mut link = Link::new();
    let options = Options { ecn: Ecn::Active, ..Options::default() };
    let ids = link.connect(&options, &options);
    prepare(&mut link.stacks[CLIENT], ids[CLIENT]);
    let mut count = 0;
    link.fate = Box::new(move |_, packet| {
        // The capable ones only: ECT(0) on data.
        if packet.len() > 1000 {
            assert_eq!(packet[1] & 3, 2, "data is capable");
            count += 1;
            if count == 30 {
                packet[1] |= 3;
                wire::ipv4::write_checksum(packet).unwrap();
            }
        }
        Some(0)
    });
    let data = pattern(300_000);
    assert!(link.transfer(ids, CLIENT, &data, 10 * SECOND) == data);
    let info = link.stacks[CLIENT].info(ids[CLIENT]).unwrap();
    (link, info)
}

#[test]
fn a_mark_reduces_the_window_once_and_nothing_is_sent_again() {
    let (link, info) = marked(|_, _| {});
    assert!(info.threshold < u32::MAX, "the window was reduced");
    assert_eq!(link.stacks[CLIENT].counters().retransmissions, 0);
    // The server said so until the client answered, once, with CWR.
    let flags = |side: usize, bit: u8| {
        link.seen.iter().filter(|(from, p)| *from == side && p[33] & (bit | 2) == bit).count()
    };
    assert_eq!(flags(CLIENT, 0x80), 1);
    assert!(flags(SERVER, 0x40) >= 1);
}

#[test]
fn a_reduction_of_two_gigabytes_ago_hides_no_mark() {
    let (_, info) = marked(|client, id| {
        let (hot, cold) = client.slab.get_mut(id).unwrap();
        // Sequence numbers that far back look as if they were ahead.
        cold.reduced_until = hot.snd_una.sub((1 << 31) + 100_000);
    });
    assert!(info.threshold < u32::MAX, "{info:?}");
}

/// The path becomes longer, by more than the time-out; `delay`: ns each way.
fn late(options: &Options, delay: u64) -> (Info, Counters) {
    let mut link = Link::new();
    let ids = link.connect(options, options);
    let warm = pattern(200_000);
    assert!(link.transfer(ids, CLIENT, &warm, 10 * SECOND) == warm);
    link.fate = Box::new(move |_, _| Some(delay));
    // More than the window lets go: F-RTO needs something new to send.
    let data = pattern(240_000);
    link.stacks[CLIENT].send(ids[CLIENT], &data).unwrap();
    link.run(3 * SECOND);
    let info = link.stacks[CLIENT].info(ids[CLIENT]).unwrap();
    (info, link.stacks[CLIENT].counters().clone())
}

#[test]
fn a_spurious_timeout_is_taken_back() {
    let (info, counters) = late(&Options::default(), 400 * MILLISECOND);
    assert!(counters.timeouts >= 1, "{counters:?}");
    assert_eq!((info.threshold, info.recovering), (u32::MAX, false));
    assert!(info.window > 100_000, "{info:?}");
}

#[test]
fn a_spurious_timeout_is_taken_back_without_time_stamps() {
    for sack in [true, false] {
        // One time-out, not two: after the second nothing is tried.
        let options = Options { timestamps: false, sack, ..Options::default() };
        let (info, counters) = late(&options, 200 * MILLISECOND);
        assert!(counters.timeouts >= 1, "{counters:?}");
        assert_eq!((info.threshold, info.recovering), (u32::MAX, false), "SACK {sack}");
        assert!(info.window > 100_000, "{info:?}");
    }
}

/// A whole window is lost but for its segment `spared`, counted from 0. Gives the bytes
/// that were not acknowledged yet when recovery ended, too.
fn lost(options: &Options, spared: usize) -> (Info, Counters, u32) {
    let mut link = Link::new();
    let ids = link.connect(options, options);
    let warm = pattern(200_000);
    assert!(link.transfer(ids, CLIENT, &warm, 10 * SECOND) == warm);
    link.run(SECOND);
    let data = pattern(240_000);
    link.stacks[CLIENT].send(ids[CLIENT], &data).unwrap();
    let mut count = 0;
    link.fate = Box::new(move |_, _| {
        count += 1;
        (count == spared + 1).then_some(0)
    });
    link.run(SECOND / 10);
    link.fate = Box::new(|_, _| Some(0));
    let (mut read, mut buffer) = (Vec::new(), vec![0; 65_536]);
    let until = link.now + 20 * SECOND;
    let mut left = None;
    while read.len() < data.len() && link.step(until) {
        let info = link.stacks[CLIENT].info(ids[CLIENT]).unwrap();
        if link.stacks[CLIENT].counters().timeouts > 0 && !info.recovering {
            left = left.or(Some(info.queued));
        }
        let count = link.stacks[SERVER].recv(ids[SERVER], &mut buffer).unwrap();
        read.extend_from_slice(&buffer[..count]);
    }
    assert!(read == data);
    let client = &link.stacks[CLIENT];
    (client.info(ids[CLIENT]).unwrap(), client.counters().clone(), left.unwrap())
}

#[test]
fn a_true_timeout_is_not_taken_back() {
    for sack in [true, false] {
        // With the second spared, the first acknowledgment after the time-out covers two.
        for spared in [1, 5, 1000] {
            let options = Options { timestamps: false, sack, ..Options::default() };
            let (info, counters, left) = lost(&options, spared);
            assert_eq!(counters.timeouts, 1, "SACK {sack}, {spared} spared");
            assert!(info.threshold < u32::MAX, "SACK {sack}, {spared} spared: {info:?}");
            // Not before all that was in flight at the time-out had arrived.
            assert!(left <= 240_000 - 10 * 1448, "SACK {sack}, {spared} spared: {left}, {info:?}");
        }
    }
}

#[test]
fn two_duplicates_let_out_a_new_segment_each() {
    for sack in [true, false] {
        let mut link = Link::new();
        // A buffer that the handshake can tell, so that the duplicates differ in nothing.
        let options =
            Options { sack, receive_buffer: 65_000, receive_buffer_limit: 0, ..Options::default() };
        let ids = link.connect(&options, &options);
        let window = link.stacks[CLIENT].info(ids[CLIENT]).unwrap().window;
        // The first segment is late by less than what would make three duplicates.
        let mut count = 0;
        link.fate = Box::new(move |_, packet| {
            count += u32::from(packet.len() > 1000);
            (packet.len() <= 1000 || matches!(count, 2 | 3)).then_some(0)
        });
        link.stacks[CLIENT].send(ids[CLIENT], &pattern(100_000)).unwrap();
        link.run(12 * MILLISECOND);
        // RFC 3042: beyond the window by one for each, and nothing sent again.
        let sent = link.seen.iter().filter(|(from, p)| *from == CLIENT && p.len() > 1000).count();
        assert_eq!(sent as u32, window / 1448 + 2, "SACK {sack}");
        assert_eq!(link.stacks[CLIENT].counters().retransmissions, 0);
        assert_eq!(link.stacks[CLIENT].info(ids[CLIENT]).unwrap().window, window);
    }
}

#[test]
fn a_recovery_of_two_gigabytes_ago_hinders_none() {
    let mut link = Link::new();
    let options = Options {
        sack: false,
        receive_buffer: 65_000,
        receive_buffer_limit: 0,
        ..Options::default()
    };
    let ids = link.connect(&options, &options);
    let (hot, cold) = link.stacks[CLIENT].slab.get_mut(ids[CLIENT]).unwrap();
    // Sequence numbers that far back look as if they were ahead.
    cold.recover = hot.snd_una.sub((1 << 31) + 100_000);
    let mut count = 0;
    link.fate = Box::new(move |_, packet| {
        count += u32::from(packet.len() > 1000);
        (packet.len() <= 1000 || count != 3).then_some(0)
    });
    let data = pattern(10 * 1448);
    assert!(link.transfer(ids, CLIENT, &data, 10 * SECOND) == data);
    let counters = link.stacks[CLIENT].counters();
    assert_eq!((counters.retransmissions, counters.timeouts), (1, 0));
}
