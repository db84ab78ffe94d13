//! `millrace-bench capacity`: more work, fewer packets; and how much work fits at a rate.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::process::Command;

use serde_json::Value;

/// All results for frames of 64 B at a rate on the wire.
fn results(gigabits: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("capacity.json");
    let output = Command::new(env!("CARGO_BIN_EXE_millrace-bench"))
        .args(["capacity", "--quick", "--no-huge", "--frames", "64", "--memory", "64"])
        .args(["--gigabits", gigabits, "--json"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    report["results"].as_array().unwrap().clone()
}

/// Values of results of a name, of each place with each kind of work.
fn values(all: &[Value], name: &str) -> Vec<Vec<Option<f64>>> {
    let cases = [
        ("worker", "md5"),
        ("worker", "uncached read"),
        ("client", "md5"),
        ("client", "uncached read"),
    ];
    let of = |(place, work): (&str, &str)| {
        let is_it = |result: &&Value| {
            let parameters = &result["parameters"];
            result["name"] == name && parameters["place"] == place && parameters["work"] == work
        };
        all.iter().filter(is_it).map(|result| result["value"].as_f64()).collect()
    };
    cases.map(of).into()
}

#[test]
fn work_costs_packets_wherever_it_is_done() {
    // 1,000 Gbit/s are more than any core forwards, 0.01 leave it 67 us for each packet.
    let all = results("1000");
    for rates in values(&all, "capacity rate") {
        let rates: Vec<f64> = rates.into_iter().flatten().collect();
        assert!(rates.len() == 3 && rates[0] > rates[2] && rates[2] > 0.0, "{rates:?}");
    }
    assert_eq!(values(&all, "capacity"), vec![vec![None]; 4]);
    // Who stands still forwards less than it could, and never more.
    let mut most = [None; 4];
    for _ in 0..5 {
        for (most, least) in most.iter_mut().zip(values(&results("0.01"), "capacity")) {
            assert_eq!(least.len(), 1, "{least:?}");
            if least[0] > *most {
                *most = least[0];
            }
        }
        if most.iter().all(|most| *most >= Some(1.0)) {
            break;
        }
    }
    assert!(most.iter().all(|most| *most >= Some(1.0)), "{most:?}");
}
