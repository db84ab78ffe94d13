use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A run on a machine.
pub(super) fn run(cpu: &str, results: Value) -> Run {
    let run = json!({"environment": {"cpu": cpu}, "results": results});
    Run { path: "forward.json".into(), ..serde_json::from_value(run).unwrap() }
}

fn forward(mpps: f64) -> Value {
    json!([
        {"name": "forward rate", "unit": "packets/s", "value": mpps * 1e6, "parameters": {"flows": 1},
            "samples": [(mpps - 1.0) * 1e6, mpps * 1e6, (mpps + 1.0) * 1e6], "yardstick": "testpmd io",
            "yardstick_value": 100e6, "ratio": mpps / 100.0, "goal": {"value": 40e6, "better": "more"}},
        {"name": "memory", "unit": "bytes", "value": 5.0},
    ])
}

#[test]
fn machines_stand_side_by_side_with_their_names() {
    let runs = [run("Xeon", forward(50.0)), run("EPYC", forward(30.0))];
    let machines = machines::machines(&runs);
    let sheet = figures::sheet("forward", &runs, &machines);
    let header =
        ["what", "Xeon", "least to most (Xeon)", "beside (Xeon)", "ratio (Xeon)", "goal (Xeon)"];
    assert_eq!(sheet.header[..6], header);
    assert_eq!(sheet.header[6], "EPYC");
    let expected = [
        "forward rate (flows 1)",
        "50.000 M packets/s",
        "49.000 M to 51.000 M",
        "testpmd io 100.000 M",
        "0.50",
        "at least 40.000 M: met",
        "30.000 M packets/s",
    ];
    assert_eq!(sheet.rows[0][..7], expected);
    assert!(sheet.rows[0].last().unwrap().ends_with("not met"));
    assert_eq!(sheet.rows[1][..2], ["memory", "5.00 bytes"]);
}

#[test]
fn one_machine_is_named_once_and_runs_are_put_together() {
    let runs = [run("Xeon", forward(50.0)), run("Xeon", forward(54.0))];
    let sheet = figures::sheet("forward", &runs, &machines::machines(&runs));
    assert_eq!(sheet.header, ["what", "Xeon", "least to most", "beside", "ratio", "goal"]);
    assert_eq!(sheet.rows[0][1..3], ["52.000 M packets/s", "49.000 M to 55.000 M"]);
    assert!(sheet.markdown().contains("| what | Xeon | least to most |"));
}

#[test]
fn a_page_has_everything_and_needs_nothing_else() {
    let result = |n: u64| json!({"name": "rate", "unit": "packets/s", "value": n, "parameters": {"frame": n}, "samples": [n, n + 1]});
    let runs = [run("Xeon", json!([result(64), result(128), result(256)]))];
    let (html, plots) = page(&runs, Some(&[run("Xeon", json!([result(64)]))])).unwrap();
    assert_eq!(plots.len(), 2, "rates, and what changed");
    assert!(plots.iter().all(|plot| html.contains(&plot.svg)));
    for part in [
        "What was measured on",
        "What changed",
        "millrace-bench forward",
        "<svg",
        "rate by frame",
        "0 compared: 0 better",
        "33.3 % less",
        "after to before",
    ] {
        assert!(html.contains(part), "{part}");
    }
    for foreign in ["<script", "src=", "href=", "@import", "url("] {
        assert!(!html.contains(foreign), "{foreign}");
    }
}

#[test]
fn a_disturbed_run_is_marked() {
    let mut disturbed = run("Xeon", forward(50.0));
    let words = json!(["the host took 3.0 % of the machine's time"]);
    disturbed.environment.insert("disturbed".into(), words);
    let calm = run("Xeon", forward(50.0));
    let (html, _) = page(&[calm.clone(), disturbed.clone()], None).unwrap();
    let mark = "<p class=\"worse\">* forward.json was disturbed: the host took 3.0 % of the machine&#39;s time</p>";
    assert_eq!(html.matches(mark).count(), 1, "{html}");
    // Each of its figures is, also where several runs come to one.
    let table =
        |runs: &[Run]| figures::sheet("forward", runs, &machines::machines(runs)).markdown_table();
    for runs in [vec![calm.clone(), disturbed.clone()], vec![disturbed]] {
        let table = table(&runs);
        assert!(table.contains("| 50.000 M packets/s \\* |"), "{table}");
        assert!(table.contains("| memory | 5.00 bytes \\* |"), "{table}");
        assert!(
            table.contains("\n\n\\* forward.json was disturbed: the host took 3.0 %"),
            "{table}"
        );
    }
    assert!(!table(&[calm]).contains('*'));
}

#[test]
fn what_the_tester_has_limited_is_no_figure_of_the_device() {
    let cell = |observed: Value| {
        let result =
            json!({"name": "throughput", "unit": "frames/s", "value": 5.0, "observed": observed});
        let runs = [run("Xeon", json!([result]))];
        figures::sheet("rfc2544", &runs, &machines::machines(&runs)).rows[0][1].clone()
    };
    let device = json!({"share_of_top": 0.8, "by_tester": false, "cut_short": false});
    assert_eq!(cell(device), "5.00 frames/s");
    for least in
        [json!({"by_tester": true}), json!({"cut_short": true}), json!({"share_of_top": 1.0})]
    {
        assert_eq!(cell(least), "at least 5.00 frames/s");
    }
    assert_eq!(cell(json!({"by_tester": "x", "share_of_top": []})), "5.00 frames/s");
}

#[test]
fn only_the_named_results_are_reported() {
    let mut runs = vec![run("Xeon", forward(50.0))];
    choose(&mut runs, &["mem".into()]);
    assert_eq!(by_command(&runs)[0].1[0].results.len(), 1);
    let mut others = vec![run("Xeon", forward(50.0))];
    choose(&mut others, &["rate (flows 1".into()]);
    assert_eq!(by_command(&others)[0].1[0].results[0].name, "forward rate");
    choose(&mut runs, &["none".into()]);
    assert!(by_command(&runs).is_empty());
}

/// Texts that would do harm where they are not escaped, and numbers that are hard to draw.
fn any_run() -> impl Strategy<Value = Run> {
    let text = prop_oneof!["<img src=x>", "\"><script>", "[|`*\n]{0,5}", "[a-z]{1,3}"];
    let number =
        prop_oneof![any::<f64>(), 0.0..100.0, Just(0.0), Just(f64::MAX), Just(f64::MIN_POSITIVE)];
    let parameters = prop::collection::vec(
        (
            "[a-b]",
            prop_oneof![number.clone().prop_map(Value::from), text.clone().prop_map(Value::from)],
        ),
        0..3,
    );
    let result = (
        text.clone(),
        parameters,
        number.clone(),
        text.clone(),
        prop::collection::vec(number, 0..3),
    );
    let result = result.prop_map(|(name, parameters, value, unit, samples)| {
        let parameters: serde_json::Map<String, Value> = parameters.into_iter().collect();
        json!({"name": name, "parameters": parameters, "value": value, "unit": unit, "samples": samples,
            "yardstick": name, "yardstick_value": value, "ratio": value})
    });
    (text, prop::collection::vec(result, 0..12))
        .prop_map(|(cpu, results)| run(&cpu, results.into()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_results_break_the_page(runs in prop::collection::vec(any_run(), 0..4)) {
        let (html, _) = page(&runs, Some(&runs)).unwrap();
        prop_assert!(!html.contains("<script") && !html.contains("<img"));
        for (command, runs) in by_command(&runs) {
            let sheet = figures::sheet(&command, &runs, &machines::machines(&runs));
            prop_assert_eq!(sheet.markdown().lines().count(), 4 + sheet.rows.len());
        }
    }
}
