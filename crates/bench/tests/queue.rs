//! `millrace-bench queue` measures something between two processes, and says so.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::process::Command;

use serde_json::Value;

#[test]
fn a_short_run_without_yardsticks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queue.json");
    let output = Command::new(env!("CARGO_BIN_EXE_millrace-bench"))
        .args(["queue", "--quick", "--no-yardstick", "--no-huge", "--json"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let results = report["results"].as_array().unwrap();
    let found = |name: &str, frame: u64, unit: &str| {
        results.iter().any(|result| {
            result["name"] == name
                && (frame == 0 || result["parameters"]["frame"] == frame)
                && result["unit"] == unit
                && result["value"].as_f64().is_some_and(|value| value > 0.0)
        })
    };
    for frame in [64, 9000] {
        for way in ["one way", "one way, in place", "round trip"] {
            assert!(found(way, frame, "packets/s") && found(way, frame, "TSC cycles/packet"));
        }
        assert!(found("round trip of one packet, p99", frame, "ns"));
    }
    assert!(found("wake-up by doorbell", 0, "ns") && found("wake-up by doorbell, p99", 0, "ns"));
}

#[test]
fn the_other_process_ends_when_nobody_hands_it_queues() {
    let output = Command::new(env!("CARGO_BIN_EXE_millrace-bench"))
        .args(["queue-peer", "0", "/nowhere/attach.sock"])
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere/attach.sock"));
}
