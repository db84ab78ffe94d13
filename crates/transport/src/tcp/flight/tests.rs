use super::*;
use proptest::prelude::*;

/// Bytes of a segment.
const SIZE: u16 = 100;

fn flight(count: u32) -> Flight {
    batches(&vec![1; count as usize])
}

/// Records of so many segments each, sent a nanosecond apart.
fn batches(counts: &[u32]) -> Flight {
    let mut flight = Flight::default();
    flight.rack.begin(Seq(0));
    let mut start = 0;
    for (place, count) in counts.iter().enumerate() {
        let end = start + count * u32::from(SIZE);
        flight.push(Seq(start), Seq(end), 0, SIZE, 1000 + place as u64);
        start = end;
    }
    flight
}

/// Of an acknowledgment at `now`.
fn news(flight: &Flight, now: u64) -> Delivered {
    Delivered::new(now, flight.rack.highest(), false)
}

#[test]
fn an_acknowledgment_takes_off_the_front() {
    let mut flight = flight(4);
    let mut news = news(&flight, 2000);
    flight.acknowledge(Seq(150), &mut news);
    assert_eq!((news.acked, news.bytes, flight.sent.len()), (150, 150, 3));
    assert_eq!(flight.pipe(Seq(150), Seq(400), 100), 250);
}

#[test]
fn a_block_is_counted_once_and_for_whole_segments() {
    let mut flight = flight(5);
    let mut news = news(&flight, 2000);
    flight.sack(Seq(250), Seq(400), &mut news);
    assert_eq!((news.bytes, flight.sacked, flight.sent.len()), (100, 100, 5));
    flight.sack(Seq(200), Seq(400), &mut news);
    // Two that are sacked side by side are one record.
    assert_eq!((news.bytes, flight.sacked, flight.sent.len()), (200, 200, 4));
    assert_eq!(flight.sacked_segments, 2);
    flight.acknowledge(Seq(500), &mut news);
    assert_eq!((news.acked, news.bytes, flight.sacked), (500, 500, 0));
    assert!(flight.is_empty());
}

#[test]
fn blocks_of_a_byte_make_no_records() {
    // CVE-2019-11477 and its kin: what a peer says must not decide how much there is to look through.
    let mut flight = batches(&[16; 4]);
    let mut news = news(&flight, 2000);
    for at in (1..6400).step_by(2) {
        flight.sack(Seq(at), Seq(at + 1), &mut news);
    }
    assert_eq!((flight.sent.len(), flight.sacked, news.bytes), (4, 0, 0));
    // Whole segments count, each second one here: a record for each, and no more.
    for at in (100..6400).step_by(200) {
        flight.sack(Seq(at - 1), Seq(at + 101), &mut news);
    }
    assert_eq!((flight.sent.len(), flight.sacked, flight.sacked_segments), (64, 3200, 32));
    flight.sack(Seq(100), Seq(6400), &mut news);
    assert_eq!((flight.sent.len(), flight.sacked, flight.sacked_segments), (2, 6300, 63));
}

#[test]
fn what_is_cut_after_it_was_sacked_counts_once() {
    let mut flight = batches(&[1, 4]);
    let mut news = news(&flight, 2000);
    flight.sack(Seq(100), Seq(500), &mut news);
    // As a tail loss probe does.
    flight.split_at(Seq(400));
    let counts: Vec<u32> = flight.sent.iter().map(|sent| sent.segments).collect();
    assert_eq!((counts, flight.sacked_segments), (vec![0, 3, 1], 4));
    assert!(flight.is_sound(Seq(0), Seq(500)));
    flight.acknowledge(Seq(500), &mut news);
    assert_eq!((flight.sacked, flight.sacked_segments), (0, 0));
}

#[test]
fn a_fin_may_be_left_out() {
    let mut flight = Flight::default();
    flight.push(Seq(0), Seq(100), 0, SIZE, 1000);
    flight.push(Seq(100), Seq(151), mark::FIN, SIZE, 1000);
    let mut news = news(&flight, 2000);
    flight.sack(Seq(100), Seq(150), &mut news);
    assert_eq!((flight.sacked, flight.sent.len()), (50, 3));
    assert!(
        flight.sent.back().unwrap().is(mark::FIN) && !flight.sent.back().unwrap().is(mark::SACKED)
    );
}

#[test]
fn three_segments_delivered_later_mean_loss() {
    let mut flight = flight(5);
    let mut news = news(&flight, 2000);
    flight.sack(Seq(100), Seq(400), &mut news);
    flight.rack_update(&news, Seq(0), Seq(500));
    let (lost, wake) = flight.detect_loss(false, 1_000_000, 2000);
    assert_eq!((lost, wake), (100, None));
    let first = flight.next_lost().unwrap();
    assert_eq!(first.start, Seq(0));
    flight.resent(Seq(0), 2001);
    assert!(flight.next_lost().is_none());
    // Sent after what was delivered: not lost again.
    assert_eq!(flight.detect_loss(true, 1_000_000, 9000).0, 0);
}

#[test]
fn three_small_segments_are_three() {
    let mut flight = Flight::default();
    flight.rack.begin(Seq(0));
    for i in 0..4 {
        flight.push(Seq(i), Seq(i + 1), 0, SIZE, 1000);
    }
    let mut news = news(&flight, 2000);
    flight.sack(Seq(1), Seq(4), &mut news);
    flight.rack_update(&news, Seq(0), Seq(4));
    assert_eq!(flight.detect_loss(false, 1_000_000, 2000), (1, None));
}

#[test]
fn one_segment_delivered_later_waits_for_the_window() {
    let mut flight = flight(3);
    let mut news = news(&flight, 2001);
    flight.sack(Seq(100), Seq(200), &mut news);
    flight.rack_update(&news, Seq(0), Seq(300));
    let (lost, wake) = flight.detect_loss(false, 1_000_000, 2001);
    // Round-trip time 1000, a quarter of it for reordering.
    assert_eq!((lost, wake), (0, Some(1000 + 1000 + 250)));
    assert_eq!(flight.detect_loss(false, 1_000_000, 2250).0, 100);
}

#[test]
fn what_was_sent_again_is_found_lost_again() {
    let mut flight = flight(8);
    let mut first = news(&flight, 2000);
    flight.sack(Seq(200), Seq(500), &mut first);
    flight.rack_update(&first, Seq(0), Seq(800));
    assert_eq!(flight.detect_loss(false, 1_000_000, 2000).0, 200);
    flight.resent(Seq(0), 2010);
    flight.resent(Seq(100), 2020);
    // The second of them arrives: the first was sent before it.
    let mut second = news(&flight, 3020);
    flight.sack(Seq(100), Seq(200), &mut second);
    flight.rack_update(&second, Seq(0), Seq(800));
    // And so were those that nobody has told of.
    assert_eq!(flight.detect_loss(true, 1_000_000, 3020), (400, None));
    assert!(flight.is_lost(Seq(0)) && flight.is_lost(Seq(500)));
}

#[test]
fn every_record_says_what_it_knows() {
    // RFC 8985 6.2 step 3: not only the newest of an acknowledgment tells of reordering.
    let mut flight = flight(6);
    let mut first = news(&flight, 2000);
    flight.sack(Seq(300), Seq(400), &mut first);
    flight.rack_update(&first, Seq(0), Seq(600));
    assert!(!flight.rack.reordering);
    let mut second = news(&flight, 2001);
    flight.sack(Seq(100), Seq(200), &mut second);
    flight.sack(Seq(400), Seq(500), &mut second);
    flight.rack_update(&second, Seq(0), Seq(600));
    assert!(flight.rack.reordering);
    // Step 2: of a doubtful one and another, the other counts.
    let mut flight = super::tests::flight(4);
    flight.resent(Seq(200), 5000);
    let mut third = Delivered::new(5001, Seq(0), true);
    flight.acknowledge(Seq(300), &mut third);
    flight.rack_update(&third, Seq(300), Seq(400));
    assert_eq!(flight.rack.round_trip(), Some(5001 - 1001));
}

#[test]
fn the_round_trip_is_that_of_what_was_delivered_last() {
    // RFC 8985 6.2 step 2: RACK.rtt is set by each segment, however long ago it was sent.
    let mut flight = flight(5);
    let mut first = news(&flight, 2000);
    flight.sack(Seq(400), Seq(500), &mut first);
    flight.rack_update(&first, Seq(0), Seq(500));
    flight.resent(Seq(0), 2010);
    // What was sent again comes with something from before: what lies behind both has as much time.
    let mut second = news(&flight, 3510);
    flight.acknowledge(Seq(200), &mut second);
    flight.rack_update(&second, Seq(200), Seq(500));
    assert_eq!(flight.rack.round_trip(), Some(3510 - 1001));
    // That and a quarter of the least one, 996, after they were sent, at 1002 and 1003.
    assert_eq!(flight.detect_loss(true, 1_000_000, 3759).0, 0);
    assert_eq!(flight.detect_loss(true, 1_000_000, 3760).0, 100);
}

#[test]
fn order_holds_across_the_wrap() {
    let start = Seq(u32::MAX - 99);
    let mut flight = Flight::default();
    flight.rack.begin(start);
    flight.push(start, start.add(100), 0, SIZE, 1000);
    flight.push(start.add(100), start.add(200), 0, SIZE, 1000);
    let mut news = Delivered::new(2000, start, false);
    flight.acknowledge(start.add(200), &mut news);
    assert_eq!(news.newest.unwrap().end, Seq(100));
}

#[test]
fn only_segments_that_are_too_large_are_lost() {
    let mut flight = batches(&[16, 1]);
    flight.lose_oversized(100);
    assert_eq!(flight.lost, 0);
    flight.lose_oversized(99);
    assert_eq!(flight.lost, 1700);
}

#[test]
fn a_timeout_leaves_what_was_just_sent() {
    let mut flight = flight(3);
    let mut news = news(&flight, 1500);
    flight.acknowledge(Seq(100), &mut news);
    flight.rack_update(&news, Seq(100), Seq(300));
    flight.push(Seq(300), Seq(400), 0, SIZE, 9000);
    // A round trip of 500.
    assert_eq!(flight.lose_old(9499, 0), 200);
    assert_eq!(flight.lose_old(9500, 0), 100);
}

/// A segment of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Model {
    start: u32,
    end: u32,
    sacked: bool,
    lost: bool,
}

proptest! {
    #[test]
    fn agrees_with_a_list_of_segments(
        counts in proptest::collection::vec(1..17u32, 1..6),
        steps in proptest::collection::vec((0..5u8, 0..5000u32, 0..900u32), 0..60),
    ) {
        let mut flight = batches(&counts);
        let (size, all) = (u32::from(SIZE), counts.iter().sum::<u32>());
        let mut model: Vec<Model> = (0..all)
            .map(|i| Model { start: i * size, end: i * size + size, sacked: false, lost: false })
            .collect();
        let (mut una, next) = (0, all * size);
        for (kind, at, length) in steps {
            let (start, end) = ((at % next).max(una + 1), (at % next + length).min(next));
            let mut news = news(&flight, 10_000);
            match kind {
                0 if start < end => {
                    let before = model.iter().filter(|s| s.sacked).map(|s| s.end - s.start).sum::<u32>();
                    for segment in model.iter_mut().filter(|s| start <= s.start && s.end <= end) {
                        (segment.sacked, segment.lost) = (true, false);
                    }
                    flight.sack(Seq(start), Seq(end), &mut news);
                    let after = model.iter().filter(|s| s.sacked).map(|s| s.end - s.start).sum::<u32>();
                    prop_assert_eq!(news.bytes, after - before);
                }
                1 if at % next > una => {
                    una = at % next;
                    model.retain(|segment| segment.end > una);
                    if let Some(first) = model.first_mut() {
                        first.start = first.start.max(una);
                    }
                    flight.acknowledge(Seq(una), &mut news);
                }
                2 => {
                    flight.lose_all();
                    model.iter_mut().for_each(|segment| segment.lost = !segment.sacked);
                }
                3 => if let Some(lost) = flight.next_lost() {
                    // As it is done: a segment at a time.
                    flight.split_at(lost.start.add(size).min(lost.end));
                    let lost = flight.next_lost().unwrap();
                    flight.resent(lost.start, 5000);
                    let inside = |s: &&mut Model| lost.start.0 <= s.start && s.end <= lost.end.0;
                    model.iter_mut().filter(inside).for_each(|segment| segment.lost = false);
                },
                4 => {
                    flight.rack_update(&news, Seq(una), Seq(next));
                    flight.detect_loss(true, 1000, 3000);
                    for segment in &mut model {
                        segment.lost = flight.sent.iter().any(|sent| {
                            sent.start.0 <= segment.start && segment.end <= sent.end.0 && sent.is(mark::LOST)
                        });
                    }
                }
                _ => {}
            }
            let sum = |is: fn(&Model) -> bool| model.iter().filter(|s| is(s)).map(|s| s.end - s.start).sum::<u32>();
            prop_assert_eq!(flight.sacked, sum(|segment| segment.sacked));
            prop_assert_eq!(flight.lost, sum(|segment| segment.lost));
            let segments = flight.sent.iter().filter(|s| s.is(mark::SACKED)).map(|s| s.segments).sum::<u32>();
            prop_assert_eq!(flight.sacked_segments, segments);
            prop_assert!(flight.sent.len() <= model.len());
            let mut border = una;
            for sent in flight.sent.iter() {
                prop_assert_eq!(sent.start.0, border);
                border = sent.end.0;
            }
            prop_assert!(flight.sent.is_empty() || border == next);
            let pairs = flight.sent.iter().zip(flight.sent.iter().skip(1));
            let mut joined = pairs.map(|(one, other)| one.is(mark::SACKED) && other.is(mark::SACKED));
            prop_assert!(!joined.any(|both| both), "sacked side by side are one");
        }
    }
}

#[test]
fn an_imported_flight_counts_no_more_duplicates_than_there_are_bytes() {
    let mut flight = flight(4);
    let is_sound = |flight: &Flight| flight.is_sound(Seq(0), Seq(400));
    flight.duplicates = 400;
    assert!(is_sound(&flight));
    flight.duplicates = 401;
    assert!(!is_sound(&flight));
    // Whatever was counted, and found lost besides, nothing less than nothing is on the way.
    flight.duplicates = u32::MAX;
    flight.lose_all();
    assert_eq!(flight.pipe(Seq(0), Seq(400), u16::MAX), 0);
}

#[test]
fn half_of_a_large_window_is_lost_and_sent_again() {
    // 125 MB in the segments of ports that cut them, half of each lost and sent again.
    let mut flight = batches(&[2; 5400]);
    for at in 0..5400u32 {
        let mut news = news(&flight, 10_000);
        flight.sack(Seq(at * 200 + 100), Seq(at * 200 + 200), &mut news);
    }
    assert_eq!((flight.sent.len(), flight.sacked), (10_800, 540_000));
    flight.lose_all();
    while let Some(lost) = flight.next_lost() {
        flight.resent(lost.start, 20_000);
    }
    assert_eq!((flight.again.len(), flight.lost), (5400, 0));
    assert!(flight.is_sound(Seq(0), Seq(1_080_000)));
    let mut news = news(&flight, 30_000);
    flight.acknowledge(Seq(1_080_000), &mut news);
    assert!(flight.is_empty() && !flight.sent.is_large() && !flight.again.is_large());
}

#[test]
fn what_was_sent_again_is_listed_in_the_order_of_time() {
    let mut flight = batches(&[4; 3]);
    flight.lose_all();
    for (at, now) in [(400, 5000), (0, 6000), (800, 7000)] {
        flight.resent(Seq(at), now);
    }
    flight.split_at(Seq(600));
    let listed: Vec<_> = flight.again.iter().map(|(at, start)| (*at, start.0)).collect();
    assert_eq!(listed, [(5000, 400), (5000, 600), (6000, 0), (7000, 800)]);
    flight.sort_again();
    let sorted: Vec<_> = flight.again.iter().map(|(at, start)| (*at, start.0)).collect();
    assert_eq!(sorted, listed);
}
