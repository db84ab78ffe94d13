use super::*;

fn round_trip(slot: &mut Slot, spares: &mut Spares, start: u32, whole: bool) -> Delivered {
    slot.push(spares, (Seq(start), Seq(start + 100)), (0, 100), 1000, whole);
    assert!(!slot.is_empty());
    let (mut news, ack) = (Delivered::new(5000, Seq(start), false), Seq(start + 100));
    if !slot.acknowledge_lone(ack, 5000, &mut news) {
        slot.acknowledge(ack, &mut news);
        slot.rack_update(&news, ack, ack);
        slot.rate.sample(news.bytes, news.newest.as_ref(), 5000);
        slot.rest(spares);
    }
    assert!(slot.is_empty() && slot.is_at_rest());
    // RACK's, which has nothing to find.
    (news.latest, news.rtt) = (None, 0);
    news
}

#[test]
fn a_flight_that_was_another_connections_brings_nothing_along() {
    let mut spares = Spares::default();
    let (mut one, mut other) = (Slot::default(), Slot::default());
    round_trip(&mut one, &mut spares, 0, true);
    assert_eq!(spares.0.len(), 1);
    other.push(&mut spares, (Seq(7), Seq(8)), (0, 100), 0, true);
    assert_eq!((other.rate.delivered, other.rack.min_rtt, other.sent.len()), (0, 0, 1));
    one.push(&mut spares, (Seq(100), Seq(200)), (0, 100), 9000, true);
    assert_eq!((one.rate.delivered, one.rack.min_rtt), (100, 4000));
}

#[test]
fn a_lone_segment_is_as_good_as_a_flight() {
    let mut spares = Spares::default();
    let (mut lone, mut whole) = (Slot::default(), Slot::default());
    for start in [0, 100] {
        let one = round_trip(&mut lone, &mut spares, start, false);
        let other = round_trip(&mut whole, &mut spares, start, true);
        assert_eq!(format!("{one:?}"), format!("{other:?}"));
        assert_eq!(format!("{:?}", lone.memory), format!("{:?}", whole.memory));
    }
    for slot in [&mut lone, &mut whole] {
        let is_lone = matches!(slot.content, Content::Nothing);
        slot.push(&mut spares, (Seq(200), Seq(300)), (mark::PUSH, 100), 9000, !is_lone);
        slot.push(&mut spares, (Seq(300), Seq(400)), (0, 100), 9500, false);
    }
    assert_eq!(format!("{:?}", *lone), format!("{:?}", *whole));
    let mut news = Delivered::default();
    assert!(!lone.acknowledge_lone(Seq(300), 9900, &mut news));
}
