//! Congestion marks, and losses that were none.

use super::pair::*;
use crate::options::{MILLISECOND, SECOND};
use crate::*;

#[test]
fn a_mark_reduces_the_window_once_and_nothing_is_sent_again() {
    let mut link = Link::new();
    let options = Options { ecn: Ecn::Active, ..Options::default() };
    let ids = link.connect(&options, &options);
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
    assert!(info.threshold < u32::MAX, "the window was reduced");
    assert_eq!(link.stacks[CLIENT].counters().retransmissions, 0);
    // The server said so until the client answered, once, with CWR.
    let flags = |side: usize, bit: u8| {
        link.seen.iter().filter(|(from, p)| *from == side && p[33] & (bit | 2) == bit).count()
    };
    assert_eq!(flags(CLIENT, 0x80), 1);
    assert!(flags(SERVER, 0x40) >= 1);
}

/// The path becomes longer, by more than the time-out.
fn late(options: &Options) -> (Info, Counters) {
    let mut link = Link::new();
    let ids = link.connect(options, options);
    let warm = pattern(200_000);
    assert!(link.transfer(ids, CLIENT, &warm, 10 * SECOND) == warm);
    link.fate = Box::new(|_, _| Some(400 * MILLISECOND));
    let data = pattern(20 * 1448);
    link.stacks[CLIENT].send(ids[CLIENT], &data).unwrap();
    link.run(3 * SECOND);
    let info = link.stacks[CLIENT].info(ids[CLIENT]).unwrap();
    (info, link.stacks[CLIENT].counters().clone())
}

#[test]
fn a_spurious_timeout_is_taken_back() {
    let (info, counters) = late(&Options::default());
    assert!(counters.timeouts >= 1, "{counters:?}");
    assert_eq!((info.threshold, info.recovering), (u32::MAX, false));
    assert!(info.window > 100_000, "{info:?}");
}
