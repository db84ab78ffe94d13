use super::*;
use proptest::prelude::*;

fn model(way: Way) -> Model {
    Model { link: Link::default(), way, fetch: 32 }
}

const CLASSIC: Way = Way::Classic { batch: 1 };

/// Receiving, as the document counts: classic and self-described.
fn document(size: u64) -> (f64, f64) {
    let of = |way| model(way).document(Direction::Receive, size);
    (of(CLASSIC), of(Way::SelfDescribed))
}

#[test]
fn a_packet_of_64_bytes_costs_192_and_128_as_the_document_says() {
    assert_eq!(document(64), (192.0, 128.0));
    let saved = 1.0 - 128.0 / 192.0;
    assert_eq!(format!("{:.1}", saved * 100.0), "33.3");
    let one = model(CLASSIC).packet(Direction::Receive, 1, 100, 64);
    // 64 written back, 128 for the packet and its header.
    assert_eq!((one.report.up.units, one.packet.up.units), (1, 2));
    let one = model(Way::SelfDescribed).packet(Direction::Receive, 1, 100, 64);
    assert_eq!((one.report, one.packet.up.units), (Traffic::default(), 2));
}

#[test]
fn the_document_s_curve_over_packet_sizes() {
    // Payload of 256 B at most: 280 B with the overhead are 5 units.
    assert_eq!(document(128), (256.0, 192.0));
    assert_eq!(document(256), (384.0, 384.0));
    assert_eq!(document(512), (704.0, 704.0));
    assert_eq!(document(600), (832.0, 768.0));
    assert_eq!(document(1024), (1344.0, 1344.0));
    assert_eq!(document(1518), (1984.0, 1920.0));
}

#[test]
fn the_gain_shrinks_and_is_never_a_loss() {
    let mut most = 1.0;
    for from in (64..1518).step_by(256) {
        let gains = (from..from + 256).map(document).map(|(classic, own)| 1.0 - own / classic);
        let best = gains.clone().fold(f64::MIN, f64::max);
        assert!(best < most, "from {from}: {best} of {most}");
        assert!(gains.clone().all(|gain| gain >= 0.0), "from {from}");
        most = best;
    }
}

#[test]
fn bytes_of_a_packet_by_hand() {
    let (up, down) = model(CLASSIC).bytes(Direction::Receive, 64);
    // Packet 64 + 24, write-back 16 + 24, a 32nd of one request; two answers of 256 + 20 and a doorbell.
    assert_eq!(up, 88.0 + 40.0 + 24.0 / 32.0);
    assert_eq!(down, (2.0 * 276.0 + 28.0) / 32.0);
    let (up, down) = model(Way::SelfDescribed).bytes(Direction::Transmit, 64);
    // Request; packet 64 + 20. A 32nd of request, answers, doorbell, register read.
    assert_eq!(up, 24.0 + (24.0 + 24.0) / 32.0);
    assert_eq!(down, 84.0 + (2.0 * 276.0 + 28.0 + 24.0) / 32.0);
    let (up, _) = model(Way::Classic { batch: 4 }).bytes(Direction::Receive, 64);
    assert_eq!(up, 88.0 + (64.0 + 24.0) / 4.0 + 24.0 / 32.0);
}

#[test]
fn a_link_carries_what_its_slower_direction_does() {
    let model = model(CLASSIC);
    let rate = model.rate(&[Direction::Receive], 64, 8);
    let expected = model.link.generation.bytes_per_second(8) / 128.75;
    assert!((rate - expected).abs() < 1.0, "{rate}");
    let both = model.rate(&[Direction::Receive, Direction::Transmit], 64, 8);
    assert!(both < rate);
    assert!((model.rate(&[Direction::Receive], 64, 16) / rate - 2.0).abs() < 1e-9);
}

#[test]
fn small_answers_cost_more() {
    let small = Model { link: Link { completion: 64, ..Link::default() }, ..model(CLASSIC) };
    let (_, down) = small.bytes(Direction::Transmit, 1024);
    let (_, large) = model(CLASSIC).bytes(Direction::Transmit, 1024);
    assert_eq!(down - large, 12.0 * 20.0 + 6.0 * 20.0 / 32.0);
}

proptest! {
    #[test]
    fn a_stream_is_the_sum_of_its_periods(
        size in 64..1519u64, fetch in 0..6u32, batch in 0..6u32, receives: bool,
    ) {
        let direction = if receives { Direction::Receive } else { Direction::Transmit };
        let model = Model {
            link: Link::default(),
            way: Way::Classic { batch: 1 << batch },
            fetch: 1 << fetch,
        };
        let mut sum = Ledger::default();
        let count = 3 * model.period();
        (0..count).for_each(|at| sum += model.packet(direction, at, count, size));
        let mut thrice = Ledger::default();
        (0..3).for_each(|_| thrice += model.steady(direction, size));
        prop_assert_eq!(sum, thrice);
    }
}
