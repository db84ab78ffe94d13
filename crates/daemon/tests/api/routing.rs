//! Routes come and go, up to their limit, whatever else goes on.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::instance::{Instance, PATIENCE};
use crate::{code, routes, two_ports};

#[test]
fn routes_come_and_go_and_a_list_is_taken_whole_or_not_at_all() {
    let daemon = Instance::start(&two_ports());
    let configured = routes(&daemon, "?prefix=10.9.0.0/16");
    assert_eq!(configured[0]["origin"], "config");
    let list = json!([
        {"prefix": "10.1.0.0/16", "via": [{"address": "10.0.2.2"}]},
        {"prefix": "2001:db8:5::/48", "via": [{"address": "2001:db8:1::2"}]},
        {"prefix": "10.2.0.0/16", "kind": "blackhole"},
    ]);
    let answer = daemon.request("POST", "/v1/routes", &list.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json(), json!({"added": 3, "replaced": 0, "removed": 0}));
    let again = daemon.request("POST", "/v1/routes", &list.to_string());
    assert_eq!(again.json()["replaced"], 3);
    let found = daemon.get("/v1/routes/lookup?address=10.1.2.3").json();
    assert_eq!(found["route"]["prefix"], "10.1.0.0/16");
    assert_eq!(found["next_hops"][0]["interface"], "right");

    let half = json!([
        {"prefix": "10.3.0.0/16", "kind": "blackhole"},
        {"prefix": "10.4.0.0/16", "via": [{"address": "192.0.2.77"}]},
    ]);
    let answer = daemon.request("POST", "/v1/routes", &half.to_string());
    assert_eq!((answer.status, code(&answer).as_str()), (400, "invalid"));
    assert!(answer.text().contains("192.0.2.77"), "{}", answer.text());
    assert!(routes(&daemon, "?prefix=10.3.0.0/16").is_empty());

    let absent = r#"["10.1.0.0/16", "10.77.0.0/16"]"#;
    let answer = daemon.request("DELETE", "/v1/routes", absent);
    assert_eq!((answer.status, code(&answer).as_str()), (404, "not-found"));
    assert_eq!(routes(&daemon, "?prefix=10.1.0.0/16").len(), 1);
    let answer = daemon.request("DELETE", "/v1/routes", r#"["10.1.0.0/16"]"#);
    assert_eq!(answer.json()["removed"], 1);
    assert!(routes(&daemon, "?prefix=10.1.0.0/16").is_empty());
}

#[test]
fn the_limit_of_routes_refuses_clearly_and_keeps_what_is_there() {
    let daemon = Instance::start(&two_ports());
    let many = |from: u32, count: u32| {
        let list: Vec<Value> = (from..from + count)
            .map(|n| {
                let prefix = format!("20.{}.{}.0/24", n / 256, n % 256);
                json!({"prefix": prefix, "kind": "unreachable"})
            })
            .collect();
        Value::from(list).to_string()
    };
    // One of 5000 is in the configuration.
    let answer = daemon.request("POST", "/v1/routes", &many(0, 4999));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = daemon.request("POST", "/v1/routes", &many(10_000, 1));
    assert_eq!((answer.status, code(&answer).as_str()), (507, "full"));
    assert!(answer.text().contains("routes4"), "{}", answer.text());
    let summary = daemon.get("/v1/summary").json();
    assert_eq!(summary["routes4"], json!({"used": 5000, "capacity": 5000}));
    // Pages cover everything once.
    let (mut seen, mut after) = (std::collections::BTreeSet::new(), String::new());
    loop {
        let page = daemon.get(&format!("/v1/routes?family=4&limit=700{after}")).json();
        for route in page["routes"].as_array().unwrap() {
            let key = format!("{} {}", route["prefix"], route["origin"]);
            assert!(seen.insert(key), "{route}");
        }
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(seen.iter().filter(|key| key.contains("\"20.")).count(), 4999);
}

/// Whether the daemon has a file open.
fn has_open(daemon: &Instance, file: &Path) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap();
    let is_it = |link: &Path| fs::read_link(link).is_ok_and(|target| target == file);
    descriptors.flatten().any(|descriptor| is_it(&descriptor.path()))
}

#[test]
fn tables_change_while_a_reload_waits_for_a_device() {
    let daemon = Instance::start(&two_ports());
    let fifo = fs::canonicalize(daemon.path("")).unwrap().join("slow.pcap");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    // The driver waits for what nobody has written yet.
    let mut writer = fs::File::options().read(true).write(true).open(&fifo).unwrap();
    let slow = format!("[[port]]\nname = \"slow\"\ndevice = \"pcap:{}\"\n", fifo.display());
    daemon.write_config(&format!("{}{slow}", two_ports()));
    let route = json!([{"prefix": "10.1.0.0/16", "kind": "blackhole"}]);
    let fixed = json!([{"interface": "left", "address": "10.0.1.9", "mac": "02:00:00:00:00:09"}]);
    let flow = json!([{"source": "10.0.1.2", "destination": "10.9.9.9", "protocol": 17, "source_port": 1,
                       "destination_port": 2, "egress_port": "left", "destination_mac": "02:00:00:00:00:99"}]);
    thread::scope(|scope| {
        let reload = scope.spawn(|| daemon.request("POST", "/v1/reload", "{}"));
        let start = Instant::now();
        while !has_open(&daemon, &fifo) {
            assert!(start.elapsed() < PATIENCE, "{}", daemon.log());
            thread::sleep(Duration::from_millis(5));
        }
        for (what, list) in [("routes", &route), ("neighbors", &fixed), ("flows", &flow)] {
            let answer = daemon.request("POST", &format!("/v1/{what}"), &list.to_string());
            assert_eq!(answer.status, 200, "{what}: {}", answer.text());
            assert_eq!(answer.json()["added"], 1, "{what}");
        }
        assert!(!reload.is_finished(), "the device is still being opened");
        // This is no capture, so the reload is refused.
        writer.write_all(&[0; 24]).unwrap();
        let refused = reload.join().unwrap();
        assert_eq!(refused.status, 409, "{}", refused.text());
    });
    assert_eq!(routes(&daemon, "?prefix=10.1.0.0/16")[0]["origin"], "api");
    assert_eq!(daemon.get("/v1/flows").json()["flows"].as_array().unwrap().len(), 1);
    let neighbors = daemon.get("/v1/neighbors").json();
    assert!(neighbors.to_string().contains("02:00:00:00:00:09"), "{neighbors}");
}
