use serde_json::{Map, Value};

use super::*;
use crate::archive::Entry;
use crate::load::Random;

/// A run on a machine.
pub(super) fn run(cpu: &str, results: impl Into<Vec<Entry>>) -> Run {
    let environment = Map::from_iter([("cpu".to_owned(), Value::from(cpu))]);
    Run { path: "run.json".into(), environment, results: results.into() }
}

/// A result without parameters or yardstick.
pub(super) fn entry(name: &str, unit: &str, samples: &[f64]) -> Entry {
    Entry {
        name: name.into(),
        parameters: Map::new(),
        observed: Map::new(),
        value: samples.first().copied(),
        unit: unit.into(),
        samples: samples.to_vec(),
        yardstick: None,
        yardstick_value: None,
        ratio: None,
        goal: None,
    }
}

impl Entry {
    pub(super) fn parameter(mut self, name: &str, value: u64) -> Self {
        self.parameters.insert(name.into(), value.into());
        self
    }

    pub(super) fn beside(mut self, yardstick: &str, value: f64) -> Self {
        self.yardstick = Some(yardstick.into());
        self.yardstick_value = Some(value);
        self.ratio = self.value.map(|own| value / own);
        self
    }
}

/// Samples about a mean, within 2 %.
fn about(mean: f64, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..20).map(|_| mean * (0.98 + random.below(4001) as f64 / 1e5)).collect()
}

fn line(before: &[Run], after: &[Run]) -> String {
    let judged = compare(before, after);
    let [one] = judged.as_slice() else { panic!("{judged:?}") };
    one.line()
}

fn one(unit: &str, mean: f64, seed: u64) -> [Run; 1] {
    [run("Xeon", [entry("it", unit, &about(mean, seed)).parameter("flows", 1)])]
}

#[test]
fn a_change_is_told_in_words_that_fit_its_unit() {
    let said = line(&one("cycles/packet", 50.0, 1), &one("cycles/packet", 44.0, 2));
    assert!(said.starts_with("it (flows 1): ") && said.contains(" cycles/packet: "), "{said}");
    assert!(said.contains("faster by 12 % (95 %: 11 to 13 %), more than noise"), "{said}");
    let slower = line(&one("packets/s", 5e7, 1), &one("packets/s", 4e7, 2));
    assert!(slower.contains("slower by 20 %"), "{slower}");
    let larger = line(&one("bytes", 100.0, 1), &one("bytes", 200.0, 2));
    assert!(larger.contains("larger by "), "{larger}");
    let unknown = line(&one("frames", 100.0, 1), &one("frames", 200.0, 2));
    assert!(unknown.contains("more by ") && unknown.contains("unit does not say"), "{unknown}");
}

#[test]
fn noise_is_no_change_and_says_what_it_would_hide() {
    let said = line(&one("ns", 50.0, 1), &one("ns", 50.0, 2));
    assert!(said.contains("no change seen: within noise (a difference under "), "{said}");
    let percent = said.split_once("under ").unwrap().1.split_once(" %").unwrap().0;
    assert!((0.2..2.5).contains(&percent.parse().unwrap()), "{said}");
}

#[test]
fn few_trials_tell_nothing_and_equal_ones_are_the_same() {
    let single = |value| [run("Xeon", [entry("memory", "bytes", &[value])])];
    let said = line(&single(100.0), &single(150.0));
    assert!(
        said.contains("larger by 50 %; too few trials to tell it from noise (1 and 1)"),
        "{said}"
    );
    assert_eq!(line(&single(100.0), &single(100.0)), "memory: 100 bytes: the same");
    assert_eq!(line(&single(0.0), &single(0.0)), "memory: 0 bytes: the same");
}

#[test]
fn what_comes_from_nothing_has_no_ratio_but_is_more_than_noise() {
    let share = |value| [run("Xeon", [entry("loss", "share", &[value; 6])])];
    let judged = compare(&share(0.0), &share(0.25));
    assert_eq!((judged[0].verdict, judged[0].ratio), (Verdict::Worse, None));
    assert!(judged[0].line().contains("more, more than noise"), "{}", judged[0].line());
    assert_eq!(judged[0].worse_by(), Some(f64::INFINITY));
}

#[test]
fn of_what_may_lie_below_nothing_no_way_is_better() {
    // The frame that came most early after the one before it: that it comes ever earlier is no gain.
    let apart = |least: f64| {
        let samples = [0.0, 1.0, 2.0, 3.0, 4.0].map(|more| least + more);
        [run("Xeon", [entry("inter packet delay variation, least", "ns", &samples)])]
    };
    let judged = compare(&apart(-500.0), &apart(-900.0));
    assert_eq!(judged[0].verdict, Verdict::Different);
    let said = judged[0].line();
    assert!(said.contains(": less, more than noise; whether that is better"), "{said}");
    assert_eq!(judged[0].worse_by(), None);
    assert_eq!(compare(&apart(500.0), &apart(900.0))[0].verdict, Verdict::Worse);
}

#[test]
fn four_runs_on_each_side_are_judged_run_by_run() {
    // Each run has its own luck, far more than its samples tell: pooled, they would seem to differ.
    let runs = |means: [f64; 4]| {
        means.map(|mean| run("Xeon", [entry("it", "ns", &about(mean, mean.to_bits()))]))
    };
    let (a, b) = (runs([100.0, 110.0, 120.0, 131.0]), runs([104.0, 113.0, 124.0, 136.0]));
    let judged = &compare(&a, &b)[0];
    assert_eq!(judged.verdict, Verdict::Noise);
    // Of the sixteen pairs of runs, not of the samples' pairs.
    assert!(judged.u.unwrap() <= 16.0, "{judged:?}");
    let (a, b) = (runs([100.0, 101.0, 102.0, 103.0]), runs([110.0, 111.0, 112.0, 113.0]));
    let judged = &compare(&a, &b)[0];
    assert_eq!(judged.verdict, Verdict::Worse);
    let side = judged.after.as_ref().unwrap();
    assert_eq!((side.runs, side.samples), (4, 80));
}

#[test]
fn differences_of_few_runs_are_pointed_at() {
    let few = |a: &[Run], b: &[Run]| summary(&compare(a, b)).contains("fewer than 4 runs");
    let runs = |mean: f64, count: u64| -> Vec<Run> {
        (0..count).map(|seed| run("Xeon", [entry("it", "ns", &about(mean, seed))])).collect()
    };
    assert!(few(&runs(50.0, 1), &runs(60.0, 1)) && few(&runs(50.0, 4), &runs(60.0, 3)));
    assert!(!few(&runs(50.0, 4), &runs(60.0, 4)));
    // A folder with many files may still have one run of each case.
    let others = (0..5).map(|_| run("Xeon", [entry("other", "ns", &[1.0])]));
    let with = |mean| runs(mean, 1).into_iter().chain(others.clone()).collect::<Vec<_>>();
    assert!(few(&with(50.0), &with(60.0)));
    assert!(!few(&runs(50.0, 1), &runs(50.0, 1)), "nothing differs");
}

#[test]
fn what_differs_no_more_than_runs_of_one_side_do_is_noise() {
    let runs = |means: [f64; 2]| {
        means.map(|mean| run("Xeon", [entry("it", "ns", &about(mean, mean.to_bits()))]))
    };
    let judged = &compare(&runs([100.0, 110.0]), &runs([104.0, 114.0]))[0];
    assert!(judged.p.unwrap() < 0.01, "the samples differ: {judged:?}");
    assert_eq!(judged.verdict, Verdict::Noise, "{judged:?}");
}

#[test]
fn machines_are_compared_by_their_yardsticks() {
    let on = |cpu, mean: f64, its| {
        let samples = about(mean, 5);
        [run(cpu, [entry("it", "cycles", &samples).beside("testpmd io", its)])]
    };
    let said = line(&on("Xeon", 50.0, 40.0), &on("EPYC", 30.0, 30.0));
    assert!(said.contains("other machine: Xeon against EPYC; not comparable"), "{said}");
    assert!(said.contains("the ratios to testpmd io are: 0."), "{said}");
    assert!(said.contains("too few trials"), "{said}");
    let repeated = |cpu, mean: f64, its: f64| -> Vec<Run> {
        (0..5).flat_map(|n| on(cpu, mean + f64::from(n) / 10.0, its)).collect()
    };
    let said = line(&repeated("Xeon", 50.0, 40.0), &repeated("EPYC", 30.0, 30.0));
    assert!(said.contains("better by 2") && said.contains("more than noise"), "{said}");
    let bare = line(&on("Xeon", 50.0, 40.0), &[run("EPYC", [entry("it", "cycles", &[3.0])])]);
    assert!(bare.contains("no yardstick was measured in both"), "{bare}");
}

#[test]
fn only_runs_of_one_machine_are_put_together() {
    let a = [one("ns", 50.0, 1), [run("EPYC", one("ns", 20.0, 2)[0].results.clone())]].concat();
    let judged = compare(&a, &a);
    assert_eq!(judged.len(), 2);
    for judged in judged {
        assert_eq!(judged.verdict, Verdict::Noise);
        assert_eq!(judged.before.unwrap().runs, 1);
    }
}

#[test]
fn a_yardstick_that_moved_as_well_is_mentioned() {
    let beside = |mean, its| [run("Xeon", [entry("it", "ns", &about(mean, 1)).beside("its", its)])];
    let said = line(&beside(50.0, 40.0), &beside(60.0, 48.0));
    assert!(said.contains("the yardstick was slower by 20 % as well"), "{said}");
    assert!(!line(&beside(50.0, 40.0), &beside(60.0, 40.0)).contains("yardstick"));
    assert!(!line(&beside(50.0, 40.0), &beside(60.0, 30.0)).contains("yardstick"));
}

#[test]
fn what_one_side_lacks_is_named_and_the_worst_comes_first() {
    let a = [run("Xeon", [entry("old", "ns", &[1.0]), entry("it", "ns", &about(50.0, 1))])];
    let b = [run("Xeon", [entry("it", "ns", &about(60.0, 2)), entry("new", "ns", &[1.0])])];
    let judged = compare(&a, &b);
    let verdicts: Vec<_> = judged.iter().map(|judged| judged.verdict).collect();
    assert_eq!(verdicts, [Verdict::Worse, Verdict::OnlyBefore, Verdict::OnlyAfter]);
    assert_eq!(judged[1].line(), "old: only in A (Xeon)");
    assert_eq!(judged[2].line(), "new: only in B (Xeon)");
    let said = summary(&judged);
    let expected = "1 compared: 0 better, 1 worse, 0 within noise, 1 only in A, 1 only in B\n";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn only_what_got_worse_by_more_than_the_limit_fails() {
    let limit = |a: &[Run], b: &[Run], percent| refuse(&compare(a, b), percent).is_err();
    let (fast, slow) = (one("ns", 50.0, 1), one("ns", 60.0, 2));
    assert!(limit(&fast, &slow, Some(10.0)));
    assert!(!limit(&fast, &slow, Some(30.0)) && !limit(&fast, &slow, None));
    assert!(!limit(&slow, &fast, Some(0.0)), "better");
    assert!(!limit(&fast, &one("ns", 50.0, 2), Some(0.0)), "noise");
    assert!(!limit(&one("x", 50.0, 1), &one("x", 60.0, 2), Some(0.0)), "no direction");
}

#[test]
fn what_a_side_could_not_measure_has_not_changed() {
    let none = [run("Xeon", [entry("it", "packets/s", &[])])];
    let some = [run("Xeon", [entry("it", "packets/s", &[1.0, 2.0])])];
    assert!(compare(&none, &none).is_empty());
    assert_eq!(compare(&none, &some)[0].verdict, Verdict::OnlyAfter);
    assert_eq!(compare(&some, &none)[0].verdict, Verdict::OnlyBefore);
}
