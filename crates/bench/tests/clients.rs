//! `millrace-bench clients`: whatever a client does, everybody else's packets are forwarded.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::process::Command;

use serde_json::Value;

#[test]
fn no_packet_of_others_is_lost_and_each_client_did_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clients.json");
    let output = Command::new(env!("CARGO_BIN_EXE_millrace-bench"))
        .args(["clients", "--quick", "--no-huge", "--channels", "1,3", "--json"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let results = report["results"].as_array().unwrap();
    // Eight have channels of their own number; the others are measured with one and with three.
    assert_eq!(results.len(), 8 + 2 * 11);
    let names = ["delivered", "full", "sent", "refused", "no buffer", "malformed"];
    for result in results {
        let parameters = &result["parameters"];
        let observed = &result["observed"];
        let client = parameters["client"].as_str().unwrap();
        let cycles = result["value"].as_f64();
        assert!(cycles.is_some_and(|cycles| cycles > 0.0), "{client}: {cycles:?}");
        assert_eq!(observed["lost"], 0, "{client}");
        let counted: Vec<&str> =
            names.into_iter().filter(|name| observed[*name].as_u64().unwrap() > 0).collect();
        let done = observed["done"].as_u64().unwrap() > 0;
        let expected = match client {
            "no client"
            | "has a filter that nothing matches"
            | "has 8 filters that nothing matches"
            | "256 filters, which it is refused"
            | "has 256 stacks, which send nothing" => counted.is_empty() && !done,
            "reads copies of all packets"
            | "says all the time that it sleeps"
            | "16 requests for copies, read and asleep"
            | "64 connections, of which 16 are granted" => counted.contains(&"delivered"),
            "gets copies and never reads" => counted.contains(&"delivered") && !done,
            "rings the bell all the time"
            | "sends descriptors over the bell all the time"
            | "writes garbage over its memory" => counted.contains(&"delivered") && done,
            "tries to take pages out of its memory" => done,
            "sends 60 B to no port"
            | "sends 1,514 B to no port"
            | "sends 65,535 B in slots of 60 B"
            | "has 256 stacks, which send what they may not"
            | "has 256 stacks, which send 1,500 B that they may not" => {
                done && counted == ["refused"]
            }
            other => panic!("{other}?"),
        };
        assert!(expected, "{client}: {counted:?}, done: {done}");
        let (alone, goal) = (&result["yardstick_value"], &result["goal"]["value"]);
        let goal = goal.as_f64().map(|goal| goal / alone.as_f64().unwrap());
        // Nobody needs no goal.
        assert_eq!(goal.is_some(), client != "no client");
        assert!(goal.is_none_or(|times| (times - 1.5).abs() < 1e-6), "{client}: {goal:?}");
    }
    // Whether it is met, depends on the machine; that it is said, does not.
    let clients = results.iter().filter(|result| result["parameters"]["client"] != "no client");
    let least = clients.map(|result| result["ratio"].as_f64().unwrap_or(0.0)).fold(1e9, f64::min);
    let verdict = if 1.0 / least <= 1.5 { "met" } else { "not met" };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains(&format!("goal: at most 1.5 times: {verdict}\n")), "{least}: {said}");
}

#[test]
fn a_client_has_as_many_channels_as_the_daemon_gives() {
    for wrong in ["0", "65"] {
        let output = Command::new(env!("CARGO_BIN_EXE_millrace-bench"))
            .args(["clients", "--channels", wrong])
            .output()
            .unwrap();
        assert!(!output.status.success(), "{wrong}");
    }
}
