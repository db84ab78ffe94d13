//! Start, reload, a second daemon, and stop.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod instance;

use std::fs;

use instance::{Instance, SMALL, command};
use rustix::process::Signal;
use serde_json::json;

fn one_port(more: &str) -> String {
    format!(
        "{SMALL}[[port]]\nname = \"left\"\ndevice = \"null,no-rx=1\"\n\
         addresses = [\"10.0.1.1/24\"]\n{more}"
    )
}

#[test]
fn sigterm_ends_with_0_and_leaves_nothing() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut daemon = Instance::start(&one_port(""));
        daemon.signal(signal);
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
        assert!(!daemon.socket().exists());
        assert!(!daemon.path("api.sock.lock").exists());
    }
}

#[test]
fn a_second_daemon_is_refused_and_told_who_is_there() {
    let daemon = Instance::start(&one_port(""));
    let second = daemon.second();
    assert_eq!(second.status.code(), Some(3));
    let words = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(words.contains(&format!("process id {}", daemon.pid())), "{words}");
    assert!(words.contains("--socket"), "{words}");
    assert_eq!(daemon.get("/v1/version").json()["pid"], daemon.pid());
}

#[test]
fn a_stale_socket_is_taken_over() {
    let mut daemon = Instance::start(&one_port(""));
    daemon.signal(Signal::KILL);
    daemon.wait();
    assert!(daemon.socket().exists());
    let folder = daemon.path("");
    let mut next = command(&folder).stderr(std::process::Stdio::null()).spawn().unwrap();
    let start = std::time::Instant::now();
    while daemon.try_request("GET", "/v1/version", "").is_none() {
        assert!(next.try_wait().unwrap().is_none(), "the next daemon ended");
        assert!(start.elapsed() < instance::PATIENCE);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    next.kill().unwrap();
    next.wait().unwrap();
}

#[test]
fn a_bad_configuration_is_refused_with_its_place_and_changes_nothing() {
    let daemon =
        Instance::start(&one_port("[[route]]\nprefix = \"10.9.0.0/16\"\nvia = \"10.0.1.2\"\n"));
    let before = daemon.get("/v1/routes").json();
    daemon.write_config(&one_port(
        "mtu = 9\n[[route]]\nprefix = \"10.8.0.0/16\"\nport = \"nobody\"\n",
    ));
    let answer = daemon.request("POST", "/v1/reload", "{}");
    assert_eq!(answer.status, 422, "{}", answer.text());
    let body = answer.json();
    assert_eq!(body["error"]["code"], "config");
    let details = body["error"]["details"].as_array().unwrap();
    assert!(details.len() >= 2, "{body}");
    let mtu = details.iter().find(|one| one["key"].as_str().unwrap().contains("mtu")).unwrap();
    assert!(mtu["line"].as_u64().unwrap() > 0 && !mtu["remedy"].as_str().unwrap().is_empty());
    assert_eq!(daemon.get("/v1/routes").json(), before);

    // A port that cannot be opened is found out only when it is tried.
    daemon.write_config(&one_port("[[port]]\nname = \"x\"\ndevice = \"afpacket:no-such-if\"\n"));
    let answer = daemon.request("POST", "/v1/reload", "{}");
    assert_eq!(answer.status, 409, "{}", answer.text());
    assert!(answer.text().contains("no-such-if"), "{}", answer.text());
    assert_eq!(daemon.get("/v1/ports").json().as_array().unwrap().len(), 1);
    assert_eq!(daemon.get("/v1/routes").json(), before);
}

#[test]
fn a_reload_applies_the_difference() {
    let daemon =
        Instance::start(&one_port("[[route]]\nprefix = \"10.9.0.0/16\"\nvia = \"10.0.1.2\"\n"));
    let by_hand = json!([{"prefix": "10.7.0.0/16", "kind": "blackhole"}]).to_string();
    assert_eq!(daemon.request("POST", "/v1/routes", &by_hand).status, 200);
    fs::write(daemon.path("routes.txt"), "10.6.0.0/16 via 10.0.1.3\n10.5.0.0/16 blackhole\n")
        .unwrap();
    daemon.write_config(&one_port(
        "[[port]]\nname = \"right\"\ndevice = \"null,no-rx=1\"\naddresses = [\"10.0.2.1/24\"]\n\
         [[route]]\nprefix = \"10.8.0.0/16\"\nvia = \"10.0.2.2\"\n[routes]\nfiles = [\"routes.txt\"]\n",
    ));
    daemon.signal(Signal::HUP);
    let origins = || {
        let page = daemon.get("/v1/routes?family=4").json();
        let mut list: Vec<String> = page["routes"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|r| r["origin"] != "connected" && r["origin"] != "local")
            .map(|r| (r["prefix"].as_str().unwrap(), r["origin"].as_str().unwrap()))
            .map(|(prefix, origin)| format!("{prefix} {origin}"))
            .collect();
        list.sort();
        list
    };
    let after = ["10.5.0.0/16 file", "10.6.0.0/16 file", "10.7.0.0/16 api", "10.8.0.0/16 config"];
    // Nobody answers a signal. New routes are there before the old ones have gone.
    let start = std::time::Instant::now();
    while origins() != after && start.elapsed() < instance::PATIENCE {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(origins(), after);
    assert_eq!(daemon.get("/v1/ports").json().as_array().unwrap().len(), 2);

    // A line that is gone takes its route along; the port too.
    fs::write(daemon.path("routes.txt"), "10.5.0.0/16 blackhole\n").unwrap();
    daemon.write_config(&one_port("[routes]\nfiles = [\"routes.txt\"]\n"));
    let answer = daemon.request("POST", "/v1/reload", "{}");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.text().contains("port right closed"), "{}", answer.text());
    assert_eq!(origins(), ["10.5.0.0/16 file", "10.7.0.0/16 api"]);
    assert_eq!(daemon.get("/v1/ports").json().as_array().unwrap().len(), 1);
    let same = daemon.request("POST", "/v1/reload", "{}").json();
    assert_eq!(same, json!({"changes": [], "at_restart": []}));
}

#[test]
fn check_says_what_is_wrong_and_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("millrace.toml"), one_port("")).unwrap();
    let good = command(folder.path()).arg("--check").output().unwrap();
    assert_eq!(good.status.code(), Some(0));
    fs::write(folder.path().join("millrace.toml"), one_port("mtuu = 1500\n")).unwrap();
    let bad = command(folder.path()).arg("--check").output().unwrap();
    assert_eq!(bad.status.code(), Some(2));
    let words = String::from_utf8_lossy(&bad.stderr).into_owned();
    assert!(words.contains("millrace.toml:") && words.contains("mtu"), "{words}");
    assert!(!folder.path().join("api.sock").exists());
}
