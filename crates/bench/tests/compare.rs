//! `millrace-bench compare` reads what runs have written, and fails when asked to.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

fn write(path: &Path, base: f64) {
    let samples: Vec<f64> = (0..20).map(|n| base + f64::from(n) / 100.0).collect();
    let result = json!({
        "name": "forward", "parameters": {"flows": 1}, "value": base + 0.1, "unit": "cycles/packet",
        "samples": samples, "yardstick": null, "yardstick_value": null, "ratio": null,
    });
    let run = json!({"environment": {"cpu": "Xeon", "cores": 2}, "results": [result]});
    std::fs::write(path, run.to_string()).unwrap();
}

fn compare(arguments: &[&Path], more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace-bench"));
    command.arg("compare").args(arguments).args(more).output().unwrap()
}

#[test]
fn what_got_worse_is_told_and_fails_when_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, json] = ["a.json", "b.json", "changes"].map(|name| folder.path().join(name));
    write(&a, 50.0);
    write(&b, 60.0);
    let output = compare(&[&a, &b], &["--json", json.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("forward (flows 1): 50.09 -> 60.09 cycles/packet: slower by 20 %"),
        "{said}"
    );
    assert!(said.contains("1 compared: 0 better, 1 worse"), "{said}");
    let changes: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(changes[0]["verdict"], "worse");
    let strict = compare(&[&a, &b], &["--fail-on-worse", "10"]);
    assert_eq!(strict.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&strict.stderr).contains("1 of the results"));
    assert!(compare(&[&a, &b], &["--fail-on-worse", "30"]).status.success());
    assert!(compare(&[&b, &a], &["--fail-on-worse", "0"]).status.success());
}

#[test]
fn what_it_cannot_read_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("good.json");
    write(&good, 1.0);
    let bad = folder.path().join("bad.json");
    std::fs::write(&bad, "{}").unwrap();
    let output = compare(&[&good, &bad], &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("bad.json") && said.contains("no results of millrace-bench"), "{said}");
    assert!(!compare(&[folder.path(), &good], &[]).status.success(), "the folder holds both");
}
