//! `millrace-bench placement` as a user runs it.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace-bench"));
    command.args(arguments).output().unwrap()
}

#[test]
fn every_placement_is_measured_or_has_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("placement.json");
    let words = [
        "placement",
        "--quick",
        "--rounds",
        "1",
        "--no-huge",
        "--vary",
        "cores,channels",
        "--json",
    ];
    let output = bench(&[words.as_slice(), &[file.to_str().unwrap()]].concat());
    let (said, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{errors}");
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let results = report["results"].as_array().unwrap();
    let named = |name: &'static str| results.iter().filter(move |result| result["name"] == name);
    assert_eq!(named("forwarding by cores").count(), 35);
    let mut cores = named("forwarding by cores").filter(|result| result["value"].is_f64());
    let one = cores.next().unwrap();
    assert_eq!(one["parameters"]["receive_worker"], "same core");
    assert!(one["value"].as_f64().unwrap() > 0.0);
    assert_eq!(one["observed"]["lost"], 0.0, "one thread has nobody to hand over to");
    for other in cores {
        assert!(other["value"].as_f64().unwrap() > 0.0 && other["ratio"].as_f64().unwrap() > 0.0);
        let on: Vec<u64> = other["observed"]["cores"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_u64)
            .collect();
        assert!(on.iter().any(|core| *core != on[0]), "{other}");
    }
    for result in named("forwarding by cores").filter(|result| result["value"].is_null()) {
        let why = result["observed"]["cannot_run"].as_str().unwrap();
        assert!(!why.is_empty() && said.contains(why), "{why}: {said}");
    }
    let channels: Vec<&Value> = named("forwarding by channels").collect();
    assert_eq!(channels.len(), 4);
    for result in channels {
        assert!(result["value"].as_f64().is_some_and(|rate| rate > 0.0), "{result}");
        assert!(result["observed"]["buffers_apart"].as_u64().unwrap() > 2048, "{result}");
    }
}

#[test]
fn a_check_measures_nothing() {
    let output = bench(&["placement", "--check", "--no-huge"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    for words in ["all on one core", "2048 MB in pages of", "-n 4", "--no-huge forbids hugepages"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let missing = |what| bench(&["placement", what, "--no-huge", "--prefixes", "/nowhere/routes"]);
    let [check, run] = ["--check", "--quick"].map(missing);
    assert!(!check.status.success() && check.stderr == run.stderr, "{check:?} {run:?}");
}

#[test]
fn what_goes_wrong_in_the_process_of_a_turn_is_said() {
    // More memory than DPDK can address; routes that are not there.
    let cores = ["placement-stage", "0", "0", "0", "--frame=64", "--samples=1"];
    for (megabytes, words) in
        [("--megabytes=4000000", "4000000 MB"), ("--megabytes=128", "/nowhere")]
    {
        let output =
            bench(&[cores.as_slice(), &[megabytes, "--prefixes=/nowhere/routes"]].concat());
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let said: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
        assert!(said["Err"].as_str().unwrap().contains(words), "{said}");
    }
}
