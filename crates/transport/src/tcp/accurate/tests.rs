use super::*;
use proptest::prelude::*;

const CE: u8 = CONGESTION_EXPERIENCED;

fn fresh() -> Accurate {
    Accurate::new(0)
}

#[test]
fn tables_2_and_3_are_as_written() {
    let fields = [0, ECT1, ECT0, CE].map(|ecn| ace(handshake_bits(ecn)));
    assert_eq!(fields, [0b010, 0b011, 0b100, 0b110]);
    assert_eq!(ace(bits::AE | bits::CWR | bits::ECE | bits::ACK), 0b111);
}

#[test]
fn counters_begin_where_the_standard_says() {
    let mut both = fresh();
    assert_eq!(both.received, Counts { cep: 5, ceb: 0, e0b: 1, e1b: 1 });
    assert_eq!(ace(both.field(false)), 5);
    both.answers_handshake = true;
    assert_eq!(ace(both.field(false)), 5, "data goes with the counter");
    assert_eq!((ace(both.field(true)), ace(both.field(true))), (0b010, 5));
}

#[test]
fn marks_are_acknowledged_when_they_begin_and_every_second() {
    let mut peer = fresh();
    assert!(!peer.count(ECT0, 100, true));
    assert!(peer.count(CE, 100, true), "a change");
    assert!(peer.count(CE, 100, true), "two since the last acknowledgment");
    peer.field(false);
    assert!(!peer.count(CE, 100, true));
    assert!(peer.count(CE, 100, true));
    // Without data: every third, and no change.
    peer.field(false);
    peer.count(0, 0, false);
    assert!(!peer.count(CE, 0, false) && !peer.count(CE, 0, false));
    assert!(peer.count(CE, 0, false));
    assert_eq!(peer.received, Counts { cep: 12, ceb: 400, e0b: 101, e1b: 1 });
}

#[test]
fn options_hold_what_ever_changed() {
    let mut peer = fresh();
    assert_eq!(peer.option(), None);
    peer.count(ECT0, 100, true);
    assert_eq!(peer.option(), Some((172, [101, 0, 1], 1)));
    peer.told_by_option();
    assert_eq!(peer.option(), None);
    peer.count(CE, 50, true);
    assert_eq!(peer.option(), Some((172, [101, 50, 1], 2)));
    peer.count(ECT1, 7, true);
    assert_eq!(peer.option(), Some((172, [101, 50, 8], 3)));
    let mut peer = fresh();
    peer.count(ECT1, 7, true);
    assert_eq!(peer.option(), Some((174, [8, 0, 1], 1)));
    peer.count(CE, 9, true);
    assert_eq!(peer.option(), Some((174, [8, 9, 1], 2)));
    peer.tests = 1;
    assert_eq!(peer.option(), Some((172, [1, 9, 8], 3)));
    peer.mute = true;
    assert_eq!(peer.option(), None);
}

/// Packets found marked by fields one after the other: each with packets covered.
fn found(fields: &[(u32, u32)]) -> Vec<u32> {
    let mut own = fresh();
    let read = |&(field, packets)| own.read(field, None, packets, packets * 1000, 1000).packets;
    fields.iter().map(read).collect()
}

#[test]
fn the_field_wraps() {
    assert_eq!(found(&[(5, 1), (7, 2), (0, 1), (3, 3), (3, 1)]), [0, 2, 1, 3, 0]);
}

#[test]
fn many_packets_at_once_may_hide_a_cycle() {
    // The appendix's examples: 9 packets and a step of 2, 10 and 2.
    assert_eq!(found(&[(7, 9)]), [2]);
    assert_eq!(found(&[(7, 10)]), [10]);
    // Where acknowledgments that cover many are the rule, the least is believed.
    let usual = [(5, 7); 20];
    let mut fields = usual.to_vec();
    fields.push((7, 10));
    assert_eq!(found(&fields).last(), Some(&2));
}

#[test]
fn an_option_tells_how_many_marks_there_were() {
    let echo = |ceb| Some(Echo { e0b: Some(1), ceb: Some(ceb), e1b: None });
    // The appendix's examples, segments of 1460 bytes.
    for (delta, packets, ceb, marked) in [(0, 8, 1460, 8), (2, 10, 1460, 2), (7, 15, 10_200, 7)] {
        let mut own = fresh();
        let news = own.read((5 + delta) % 8, echo(ceb), packets, packets * 1460, 1460);
        assert_eq!((news.packets, news.bytes, news.mangled), (marked, ceb, false));
    }
    let mut own = fresh();
    assert!(own.read(5, echo(1460), 2, 2920, 1460).mangled, "bytes, but no packet");
}

#[test]
fn no_mark_and_no_option_are_nothing_wrong() {
    assert_eq!(fresh().read(5, None, 2, 2000, 1000), News::default());
}

#[test]
fn zeros_are_no_feedback() {
    let mut own = fresh();
    let news = own.read(0, None, 1, 1000, 1000);
    assert!(news.mangled && news.senseless);
    let mut own = fresh();
    assert!(!own.read(0, None, 3, 3000, 1000).mangled, "three marks explain it");
    let mut own = fresh();
    own.greet(Some(Echo { e0b: Some(0), ceb: Some(0), e1b: Some(1) }));
    let echo = Some(Echo { e0b: Some(1), ceb: Some(9000), e1b: None });
    assert_eq!(
        own.read(6, echo, 1, 1000, 1000),
        News { packets: 1, bytes: 1000, ..News::default() }
    );
}

#[test]
fn an_older_option_is_no_step_forward() {
    let mut own = fresh();
    let echo = |ceb: u32| Some(Echo { e0b: None, ceb: Some(ceb & 0xff_ffff), e1b: None });
    assert_eq!(own.read(6, echo(1000), 1, 1000, 1000).bytes, 1000);
    assert_eq!(own.read(7, echo(500), 1, 1000, 1000).bytes, 1000, "by the field alone");
    assert_eq!(own.sent.ceb, 1000);
}

#[test]
fn four_rounds_of_nothing_but_marks_are_mangling() {
    let mut own = fresh();
    let mut rounds = |marks: &[u32]| {
        own = fresh();
        marks.iter().enumerate().any(|(round, marked)| {
            let (una, next) = (Seq(round as u32 * 100), Seq(round as u32 * 100 + 100));
            own.add_round(una, next, 1000, *marked)
        })
    };
    assert!(rounds(&[1000, 1000, 1000, 1000, 0]));
    assert!(!rounds(&[1000, 1000, 1000, 999, 1000, 1000, 1000, 1000, 1000]));
}

proptest! {
    #[test]
    fn feedback_follows_the_marks(acks in proptest::collection::vec((0..4u8, 1..8u32), 0..60)) {
        // Every packet of an acknowledgment has the same mark, and no acknowledgment is lost.
        let (mut peer, mut own) = (fresh(), fresh());
        for (ecn, packets) in acks {
            for _ in 0..packets {
                peer.count(ecn, 1000, true);
            }
            let echo = peer.option().map(|(kind, fields, count)| {
                let field = |at: usize| (at < count).then(|| fields[at] & 0xff_ffff);
                let (e0b, e1b) = if kind == 172 { (field(0), field(2)) } else { (field(2), field(0)) };
                Echo { e0b, ceb: field(1), e1b }
            });
            peer.told_by_option();
            let news = own.read(ace(peer.field(true)), echo, packets, packets * 1000, 1000);
            prop_assert!(!news.senseless || peer.received.cep % 8 == 0);
            prop_assert_eq!(own.sent, peer.received);
        }
    }
}
