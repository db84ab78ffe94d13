use super::*;
use proptest::prelude::*;

fn flight(count: u32) -> Flight {
    let mut flight = Flight::default();
    flight.rack.begin(Seq(0));
    for i in 0..count {
        flight.push(Seq(i * 100), Seq(i * 100 + 100), 0, 1000 + u64::from(i));
    }
    flight
}

#[test]
fn an_acknowledgment_takes_off_the_front() {
    let mut flight = flight(4);
    let mut news = Delivered::default();
    flight.acknowledge(Seq(150), &mut news);
    assert_eq!((news.acked, news.bytes, flight.sent.len()), (150, 150, 3));
    assert_eq!(flight.pipe(Seq(150), Seq(400), 100), 250);
}

#[test]
fn a_block_is_counted_once() {
    let mut flight = flight(5);
    let mut news = Delivered::default();
    flight.sack(Seq(250), Seq(400), &mut news);
    flight.sack(Seq(200), Seq(400), &mut news);
    assert_eq!((news.bytes, flight.sacked, flight.sent.len()), (200, 200, 6));
    flight.acknowledge(Seq(500), &mut news);
    assert_eq!((news.acked, news.bytes, flight.sacked), (500, 500, 0));
    assert!(flight.is_empty());
}

#[test]
fn three_segments_delivered_later_mean_loss() {
    let mut flight = flight(5);
    let mut news = Delivered::default();
    flight.sack(Seq(100), Seq(400), &mut news);
    flight.rack_update(&news, false, Seq(0), Seq(500), 2000);
    let (lost, wake) = flight.detect_loss(false, 100, 1_000_000, 2000);
    assert_eq!((lost, wake), (100, None));
    let first = flight.next_lost().unwrap();
    assert_eq!(first.start, Seq(0));
    flight.resent(Seq(0), 2001);
    assert!(flight.next_lost().is_none());
    // Sent after what was delivered: not lost again.
    assert_eq!(flight.detect_loss(true, 100, 1_000_000, 9000).0, 0);
}

#[test]
fn one_segment_delivered_later_waits_for_the_window() {
    let mut flight = flight(3);
    let mut news = Delivered::default();
    flight.sack(Seq(100), Seq(200), &mut news);
    flight.rack_update(&news, false, Seq(0), Seq(300), 2001);
    let (lost, wake) = flight.detect_loss(false, 100, 1_000_000, 2001);
    // Round-trip time 1000, a quarter of it for reordering.
    assert_eq!((lost, wake), (0, Some(1000 + 1000 + 250)));
    assert_eq!(flight.detect_loss(false, 100, 1_000_000, 2250).0, 100);
}

proptest! {
    #[test]
    fn sums_agree_with_the_records(steps in proptest::collection::vec((0..4u8, 0..2000u32, 0..600u32), 0..60)) {
        let mut flight = flight(20);
        let mut una = Seq(0);
        for (kind, at, length) in steps {
            let (start, end) = (Seq(at).max(una), Seq(at + length).min(Seq(2000)));
            let mut news = Delivered::default();
            match kind {
                0 if start.before(end) => flight.sack(start, end, &mut news),
                1 if start.after(una) => { flight.acknowledge(start, &mut news); una = start; }
                2 => { flight.lose_all(); }
                3 => if let Some(lost) = flight.next_lost() { flight.resent(lost.start, 5000) },
                _ => {}
            }
            let sum = |mark| flight.sent.iter().filter(|s| s.is(mark)).map(Sent::length).sum::<u32>();
            prop_assert_eq!(flight.sacked, sum(mark::SACKED));
            prop_assert_eq!(flight.lost, sum(mark::LOST));
            let mut next = una;
            for sent in &flight.sent {
                prop_assert_eq!(sent.start, next);
                next = sent.end;
            }
            prop_assert!(flight.sent.is_empty() || next == Seq(2000));
        }
    }
}
