use super::*;
use crate::testbed::{Outside, packet, pool};

fn options(receive: bool, transmit: bool, drop: bool) -> CaptureOptions {
    let taps = Taps { receive, transmit, drop };
    CaptureOptions { filter: Filter::default(), taps, snap: 4, ring: 8 }
}

fn traffic(options: CaptureOptions) -> (Vec<Frame>, u64) {
    let mut outside = Outside::new(1, u64::MAX, 2);
    let (tap, mut frames) = capture(options);
    outside.exits.set_tap(Some(tap));
    for n in 0..3 {
        outside.exits.transmit(packet(&pool(), &[n; 6]), PortId::new(0), 0);
    }
    outside.exits.output.flush(&outside.counters);
    outside.exits.drop(packet(&pool(), &[9, 9]), Reason::Blackhole);
    // A drop that is counted, and captured, before the packet is freed.
    let refused = Some(packet(&pool(), &[7]));
    outside.exits.refuse(&refused, Reason::NoPort);
    refused.into_iter().for_each(|buffer| outside.exits.free(buffer));
    outside.exits.free_dropped();
    drop(outside.exits.set_tap(None));
    assert!(frames.is_over());
    (std::iter::from_fn(|| frames.pop()).collect(), frames.lost())
}

#[test]
fn copies_what_leaves_and_what_is_dropped() {
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let (frames, lost) = traffic(options(true, true, true));
    let kinds: Vec<_> = frames.iter().map(|frame| (frame.direction, frame.data[0])).collect();
    let full = Direction::Drop(Reason::TransmitFull);
    let dropped = Direction::Drop(Reason::Blackhole);
    let sent = Direction::Transmit;
    // The ring behind the port takes two.
    let refused = Direction::Drop(Reason::NoPort);
    // What was dropped is seen when it is freed, in bulk.
    assert_eq!(kinds, [(sent, 0), (sent, 1), (sent, 2), (full, 2), (refused, 7), (dropped, 9)]);
    assert_eq!((frames[0].length, &*frames[0].data), (6, &[0; 4][..]), "cut to the snap length");
    assert_eq!((frames[5].length, &*frames[5].data), (2, &[9; 2][..]));
    assert!(frames.iter().all(|frame| frame.time.abs_diff(started) < 3_600_000_000_000));
    assert_eq!(lost, 0);
}

#[test]
fn takes_only_the_taps_that_were_asked_for() {
    let (frames, _) = traffic(options(true, false, false));
    assert_eq!(frames, []);
    let (frames, _) = traffic(options(false, false, true));
    assert_eq!(frames.len(), 3);
}

#[test]
fn counts_what_the_ring_loses() {
    let (frames, lost) = traffic(CaptureOptions { ring: 2, ..options(false, true, true) });
    assert_eq!((frames.len(), lost), (2, 4));
}

#[test]
fn obeys_the_filter() {
    let filter = Filter { port: Some(PortId::new(5)), ..Filter::default() };
    let (frames, lost) = traffic(CaptureOptions { filter, ..options(true, true, true) });
    assert_eq!((frames.len(), lost), (0, 0));
}
