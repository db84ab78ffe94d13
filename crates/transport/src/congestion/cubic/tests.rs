use super::*;
use crate::congestion::RateSample;
use crate::congestion::fixture::{ack, start};

const LOSS: Congestion = Congestion { now: 0, in_flight: 0, lost: 1000 };

#[test]
fn returns_to_the_old_window_after_k_seconds() {
    let mut cubic = Cubic::new(&start(100_000, u32::MAX));
    cubic.on_loss(&LOSS);
    assert_eq!((cubic.window(), cubic.threshold()), (70_000, 70_000));
    // K = cbrt(30 / 0.4) = 4.2 s; a window is acknowledged each round trip.
    let mut at_k = 0;
    for round in 1..=100u64 {
        let window = cubic.window();
        for _ in 0..window / 1000 {
            cubic.on_ack(&ack(round * 100_000_000, 1000));
        }
        if round == 42 {
            at_k = cubic.window();
        }
    }
    assert!((95_000..=103_000).contains(&at_k), "{at_k}");
    assert!(cubic.window() > 140_000, "{}", cubic.window());
}

#[test]
fn a_spurious_timeout_is_undone() {
    let mut cubic = Cubic::new(&start(10_000, u32::MAX));
    cubic.on_rto(&LOSS);
    cubic.on_rto(&LOSS);
    assert_eq!((cubic.window(), cubic.threshold()), (1000, 7000));
    cubic.undo(0);
    assert_eq!((cubic.window(), cubic.threshold()), (10_000, u32::MAX));
}

#[test]
fn growth_after_a_timeout_begins_where_slow_start_ends() {
    // 4.8: K is 0 and W_max the window then, however large it was before.
    let mut cubic = Cubic::new(&start(1_000_000, u32::MAX));
    cubic.on_rto(&LOSS);
    while cubic.window() < cubic.threshold() {
        cubic.on_ack(&ack(0, 1000));
    }
    assert_eq!(cubic.window(), 700_000);
    // A second on: 0.4 of a segment by the cubic function. The old K of 9 s would have made it 80.
    for round in 1..=10u64 {
        (0..700).for_each(|_| cubic.on_ack(&ack(round * 100_000_000, 1000)));
    }
    assert!(cubic.window() < 710_000, "{}", cubic.window());
}

#[test]
fn time_without_use_does_not_count() {
    let grown = |pause: u64| {
        let mut cubic = Cubic::new(&start(100_000, u32::MAX));
        cubic.on_loss(&LOSS);
        cubic.on_ack(&ack(0, 1000));
        cubic.on_unused(1_000_000);
        cubic.on_ack(&ack(1_000_000 + pause, 1000));
        cubic.window()
    };
    assert_eq!(grown(60_000_000_000), grown(0));
}

#[test]
fn a_rising_delay_ends_slow_start() {
    let mut cubic = Cubic::new(&start(20_000, u32::MAX));
    for round in 0..3u64 {
        for _ in 0..10 {
            let rtt = Some(100_000_000 + round * 30_000_000);
            let sample = RateSample { rtt, prior_delivered: round, ..RateSample::default() };
            cubic.on_ack(&Ack { sample, total_delivered: round + 1, ..ack(round, 1000) });
        }
    }
    assert!(cubic.threshold() < u32::MAX);
}

#[test]
fn smaller_segments_are_as_many_bytes() {
    let mut cubic = Cubic::new(&start(100_000, u32::MAX));
    cubic.on_loss(&LOSS);
    cubic.on_ack(&ack(0, 1000));
    let window = cubic.window();
    cubic.set_mss(500);
    assert_eq!((cubic.window(), cubic.threshold()), (window, 70_000));
    // Growth goes on towards the same window: 200 segments now.
    for round in 1..=42u64 {
        (0..cubic.window() / 500).for_each(|_| cubic.on_ack(&ack(round * 100_000_000, 500)));
    }
    assert!(cubic.window() > 90_000, "{}", cubic.window());
    cubic.undo(0);
    assert_eq!((cubic.window(), cubic.threshold()), (100_000, u32::MAX));
}

#[test]
fn slow_start_after_a_pause_leads_back_to_three_quarters() {
    let mut cubic = Cubic::new(&start(10_000, 8_000));
    for round in 1..=60u64 {
        (0..cubic.window() / 1000).for_each(|_| cubic.on_ack(&ack(round * 100_000_000, 1000)));
    }
    let window = cubic.window();
    assert!(window > 20_000, "{window}");
    for _ in 0..2 {
        cubic.on_restart(0, 10, 1);
        assert_eq!(cubic.window(), 10_000);
        assert!(cubic.threshold().abs_diff(window / 4 * 3) < 10, "{}", cubic.threshold());
    }
}
