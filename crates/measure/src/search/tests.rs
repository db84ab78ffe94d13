use proptest::prelude::*;

// The prelude has a `Strategy` too.
use super::{Strategy, *};

/// Runs a search against a device that passes up to `limit`. The answer, and the steps that were tried.
fn run(mut search: Throughput, limit: u32) -> (Option<u32>, Vec<u32>) {
    let mut tried = Vec::new();
    while let Some(step) = search.next() {
        assert!(search.left() > 0 && tried.len() < 10_000);
        tried.push(step);
        search.tell(step, step <= limit);
    }
    assert_eq!(search.left(), 0);
    (search.answer(), tried)
}

#[test]
fn the_steps_of_rfc_2544_go_down_one_by_one() {
    assert_eq!(run(Throughput::new(Strategy::Stepwise, 5), 3), (Some(3), vec![5, 4, 3]));
    assert_eq!(run(Throughput::new(Strategy::Stepwise, 3), 0), (None, vec![3, 2, 1]));
    assert_eq!(run(Throughput::new(Strategy::Bisection, 0), 0), (None, vec![]));
}

#[test]
fn a_device_that_fills_the_link_costs_one_trial() {
    for strategy in [Strategy::Stepwise, Strategy::Bisection] {
        assert_eq!(run(Throughput::new(strategy, 1000), 1000), (Some(1000), vec![1000]));
    }
}

#[test]
fn a_step_that_passes_above_one_that_fails_does_not_count() {
    let mut search = Throughput::new(Strategy::Bisection, 8);
    search.tell(8, false);
    search.tell(4, true);
    search.tell(6, true);
    search.tell(4, false);
    assert_eq!((search.answer(), search.next()), (None, Some(2)));
}

#[test]
fn the_loss_curve_ends_after_two_clean_trials() {
    let mut curve = LossCurve::new(0.1);
    let mut loads = Vec::new();
    while let Some(load) = curve.next() {
        loads.push((load * 10.0).round() as u32);
        curve.tell(load, if load > 0.75 { load - 0.75 } else { 0.0 });
    }
    assert_eq!(loads, [10, 9, 8, 7, 6]);
    // One clean trial between lossy ones ends nothing, and the end of the loads does.
    let mut curve = LossCurve::new(1.0);
    while let Some(load) = curve.next() {
        let lossy = curve.points().len() % 2 == 0;
        curve.tell(load, if lossy { 0.5 } else { 0.0 });
    }
    assert_eq!(curve.points().len(), 10, "a tenth is the widest granularity");
}

#[test]
fn bursts_are_searched_for_again_and_again() {
    let mut burst = Burst::new(1000, 4);
    assert!(burst.summary(1.0, 2.0).is_none());
    let mut limits = [100, 110, 90, 100].into_iter();
    for done in 0..4 {
        assert_eq!(burst.done(), done);
        let limit = limits.next().unwrap();
        while burst.done() == done {
            let length = burst.next().unwrap();
            burst.tell(length, Some(length <= limit));
        }
    }
    assert_eq!(burst.next(), None);
    let summary = burst.summary(500.0, 1000.0).unwrap();
    assert_eq!((summary.mean, summary.least, summary.most, summary.searches), (100.0, 90, 110, 4));
    assert!((summary.deviation - 50_f64.sqrt()).abs() < 1e-9 && !summary.at_limit);
    // A hundred frames at 1000/s, half of which left meanwhile: 50 ms.
    assert_eq!(summary.buffer, Some(0.05));
    assert_eq!(burst.summary(1000.0, 1000.0).unwrap().buffer, None);
    // How many left meanwhile nobody knows.
    assert_eq!(burst.summary(0.0, 1000.0).unwrap().buffer, None);
}

#[test]
fn a_burst_at_the_limit_says_so() {
    let mut burst = Burst::new(64, 1);
    while let Some(length) = burst.next() {
        burst.tell(length, Some(true));
    }
    let summary = burst.summary(1.0, 2.0).unwrap();
    assert!(summary.at_limit && summary.buffer.is_none());
    let mut none = Burst::new(64, 1);
    while let Some(length) = none.next() {
        none.tell(length, Some(false));
    }
    assert_eq!(none.summary(1.0, 2.0).unwrap().mean, 0.0);
}

#[test]
fn a_search_that_a_void_trial_has_ended_has_no_answer() {
    // Bursts above the limit are lost, or void, of which those above 32 say nothing: the device lost shorter ones as well.
    let search = |burst: &mut Burst, limit: u32, void: std::ops::RangeInclusive<u32>| {
        let done = burst.done();
        while burst.done() == done {
            let length = burst.next().unwrap();
            let passed = (!void.contains(&length)).then_some(length <= limit);
            burst.tell(length, passed);
        }
    };
    let mut burst = Burst::new(64, 3);
    search(&mut burst, 10, 11..=64);
    assert!(burst.summary(1.0, 2.0).is_none() && burst.done() == 1);
    search(&mut burst, 20, 32..=64);
    search(&mut burst, 40, 41..=41);
    assert_eq!(burst.next(), None);
    let summary = burst.summary(1.0, 2.0).unwrap();
    assert_eq!((summary.searches, summary.void, summary.mean), (1, 2, 20.0));
}

#[test]
fn grids_have_their_steps() {
    let grid = Grid::new(10e9, 0.001);
    assert_eq!((grid.steps(), grid.load(1000), grid.load(500)), (1000, 10e9, 5e9));
    assert_eq!(
        (grid.step(5e9), grid.step(5.009e9), grid.step(20e9), grid.step(0.0)),
        (500, 500, 1000, 0)
    );
    assert_eq!((Grid::new(1.0, 0.0).steps(), Grid::new(1.0, 5.0).steps()), (1_000_000, 1));
    // Ever lower, whatever the resolution.
    let below = grid.below().below();
    assert!((below.load(1000) - 10e3).abs() < 1e-6 && below.steps() == 1000);
    assert_eq!(Grid::new(1.0, 1.0).below().load(1), 0.5);
}

proptest! {
    #[test]
    fn both_strategies_give_the_same_answer(top in 1..2000_u32, limit in 0..2100_u32) {
        let (stepwise, slow) = run(Throughput::new(Strategy::Stepwise, top), limit);
        let (bisection, fast) = run(Throughput::new(Strategy::Bisection, top), limit);
        prop_assert_eq!(stepwise, bisection);
        prop_assert_eq!(stepwise, Some(limit.min(top)).filter(|answer| *answer > 0));
        prop_assert!(fast.len() as u32 <= 2 + top.ilog2());
        prop_assert_eq!(slow.len() as u32, (top.saturating_sub(limit) + 1).min(top));
    }

    #[test]
    fn below_a_step_that_fails_it_is_not_tried_again(top in 0..2000_u32, limit in 0..2000_u32) {
        let limit = limit.min(top.saturating_sub(1));
        for strategy in [Strategy::Stepwise, Strategy::Bisection] {
            let (answer, tried) = run(Throughput::below(strategy, top), limit);
            prop_assert_eq!(answer, Some(limit).filter(|limit| *limit > 0));
            prop_assert!(tried.iter().all(|step| *step < top));
        }
    }

    #[test]
    fn every_step_of_a_grid_is_found_again(top in 1.0..1e11, resolution in 0.0001..1.0) {
        let grid = Grid::new(top, resolution);
        for step in [1, grid.steps() / 2, grid.steps()] {
            prop_assert_eq!(grid.step(grid.load(step)), step);
        }
    }
}
