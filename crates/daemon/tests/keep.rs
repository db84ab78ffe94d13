//! What came by the API over restarts and kills, and files of kept state that cannot be used.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod instance;

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use instance::{Instance, PATIENCE, SMALL};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Ports by number, each on a network of its own.
fn ports(folder: &str, numbers: &[u8], more: &str) -> String {
    let port = |n: &u8| {
        format!(
            "[[port]]\nname = \"p{n}\"\ndevice = \"null,no-rx=1\"\naddresses = [\"10.0.{n}.1/24\"]\n"
        )
    };
    let ports: String = numbers.iter().map(port).collect();
    format!("[daemon]\nkeep = \"{folder}\"\n{SMALL}flows4 = 16\n{ports}{more}")
}

fn until(what: &str, daemon: &Instance, mut is: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < PATIENCE, "{what}\n{}", daemon.log());
        sleep(Duration::from_millis(20));
    }
}

/// Prefix and origin of all routes that people made.
fn routes(daemon: &Instance) -> Vec<String> {
    let page = daemon.get("/v1/routes").json();
    let list = page["routes"].as_array().unwrap().iter();
    let made = list.filter(|route| route["origin"] != "connected" && route["origin"] != "local");
    made.map(|route| format!("{} {}", route["prefix"], route["origin"]).replace('"', "")).collect()
}

fn post(daemon: &Instance, path: &str, body: &Value) {
    let answer = daemon.request("POST", path, &body.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
}

fn flow(n: u8) -> Value {
    json!({"source": format!("10.0.{n}.2"), "destination": "10.9.9.9", "protocol": 17,
           "source_port": 1, "destination_port": 2, "egress_port": format!("p{n}"),
           "destination_mac": "02:00:00:00:00:99"})
}

#[test]
fn killed_it_comes_back_with_what_fits_and_the_configuration_wins() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let with = |numbers: &[u8], more: &str| ports(kept.to_str().unwrap(), numbers, more);
    let mut daemon = Instance::start(&with(&[1, 2], ""));
    let via = |n: u8| json!({"prefix": format!("10.{n}0.0.0/16"), "via": [{"address": format!("10.0.{n}.9")}]});
    post(
        &daemon,
        "/v1/routes",
        &json!([via(1), via(2), {"prefix": "10.5.0.0/16", "kind": "blackhole"},
                {"prefix": "10.5.0.0/16", "kind": "local", "source": "bgp", "distance": 200, "metric": 7}]),
    );
    let neighbor = |n: u8| {
        json!({"interface": format!("p{n}"), "address": format!("10.0.{n}.9"),
                                  "mac": format!("02:00:00:00:00:0{n}")})
    };
    post(&daemon, "/v1/neighbors", &json!([neighbor(1), neighbor(2)]));
    post(&daemon, "/v1/flows", &json!([flow(1), flow(2)]));
    let file = kept.join("state");
    let written = |part: &str| fs::read_to_string(&file).is_ok_and(|text| text.contains(part));
    until("it is not kept", &daemon, || written("10.0.2.2") && written("\"end\""));
    daemon.signal(Signal::KILL);
    daemon.wait();

    // p2 is gone, and the configuration has a route of its own.
    let more = "[[route]]\nprefix = \"10.5.0.0/16\"\nkind = \"unreachable\"\n\
                [[neighbor]]\ninterface = \"p1\"\naddress = \"10.0.1.9\"\nmac = \"02:00:00:00:00:0f\"\n";
    let mut daemon = daemon.again(&with(&[1], more));
    until("nothing is recalled", &daemon, || daemon.log().contains("back in force"));
    assert_eq!(routes(&daemon), ["10.5.0.0/16 config", "10.5.0.0/16 api", "10.10.0.0/16 api"]);
    let learned = daemon.get("/v1/routes?source=bgp").json();
    let expected = json!({"source": "bgp", "prefix": "10.5.0.0/16", "distance": 200, "metric": 7,
                          "kind": "local", "origin": "api", "standby": true});
    assert_eq!(learned["routes"], json!([expected]));
    let neighbors = daemon.get("/v1/neighbors").json();
    assert_eq!(neighbors.as_array().unwrap().len(), 1, "{neighbors}");
    assert_eq!(neighbors[0]["mac"], "02:00:00:00:00:0f");
    let flows = daemon.get("/v1/flows").json();
    assert_eq!((&flows["total"], &flows["flows"][0]["egress_port"]), (&json!(1), &json!("p1")));
    assert!(daemon.log().contains("left_out=3 beside=2"), "{}", daemon.log());
    let before = fs::read_to_string(kept.join("state.before")).unwrap();
    assert!(before.contains("10.20.0.0/16"), "what was left out is still somewhere: {before}");

    // An orderly end keeps what is there now, without waiting for a second to pass.
    let answer = daemon.request("DELETE", "/v1/routes", "[\"10.10.0.0/16\"]");
    assert_eq!(answer.status, 200);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(!written("10.10.0.0/16") && written("10.0.1.2"));
}

#[test]
fn a_restart_in_place_keeps_everything_with_and_without_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let with = ports(kept.to_str().unwrap(), &[1], "");
    let without = with.lines().skip(2).map(|line| format!("{line}\n")).collect::<String>();
    for config in [with, without] {
        let daemon = Instance::start(&config);
        let pid = daemon.pid();
        post(&daemon, "/v1/routes", &json!([{"prefix": "10.7.0.0/16", "kind": "blackhole"}]));
        for restarts in 1..=2 {
            let answer = daemon.request("POST", "/v1/restart", "null");
            assert_eq!(answer.json(), json!({"restarts": restarts}), "{}", daemon.log());
            let version = || Some(daemon.try_request("GET", "/v1/version", "")?.json());
            let back =
                || version().is_some_and(|v| v["restarts"] == restarts && v["standstill"].is_u64());
            until("it is not back", &daemon, back);
            assert_eq!(version().unwrap()["pid"], pid);
            assert_eq!(routes(&daemon), ["10.7.0.0/16 api"]);
        }
        assert!(!daemon.path("api.sock.state").exists());
        daemon.write_config(&config.replace("10.0.1.1/24", "10.0.1.1/240"));
        let answer = daemon.request("POST", "/v1/restart", "null");
        assert_eq!(answer.status, 422, "{}", answer.text());
        assert_eq!(daemon.get("/v1/version").json()["restarts"], 2);
    }
}

#[test]
fn a_file_that_makes_no_sense_is_put_aside_and_nothing_of_it_used() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    fs::create_dir(&kept).unwrap();
    let route = r#"{"route":{"prefix":"10.7.0.0/16","kind":"blackhole"}}"#;
    fs::write(kept.join("state"), format!("{{\"millrace-state\":1}}\n{route}\n{{\"end\":2}}\n"))
        .unwrap();
    let daemon = Instance::start(&ports(kept.to_str().unwrap(), &[1], ""));
    until("it is not refused", &daemon, || daemon.log().contains("it has 1 records"));
    assert_eq!(routes(&daemon), [] as [&str; 0]);
    assert!(kept.join("state.refused").exists());
    let saved = daemon.request("POST", "/v1/save", "null").json();
    assert_eq!((&saved["routes"], &saved["learned"]), (&json!(0), &json!(0)));
    assert!(kept.join("state").exists());
}

#[test]
fn routes_are_kept_with_their_vrf() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let vrf = "[[vrf]]\nname = \"red\"\n[[port]]\nname = \"red\"\ndevice = \"null,no-rx=1\"\nvrf = \"red\"\n\
               addresses = [\"10.0.1.1/24\"]\n";
    let with = |more: &str| ports(kept.to_str().unwrap(), &[1], more);
    let mut daemon = Instance::start(&with(vrf));
    let list = json!([
        {"vrf": "red", "prefix": "10.9.0.0/16", "via": [{"address": "10.0.1.9"}]},
        {"vrf": "red", "prefix": "10.8.0.0/16", "lookup": "default"},
        {"prefix": "10.8.0.0/16", "via": [{"address": "10.0.1.9"}]},
    ]);
    post(&daemon, "/v1/routes", &list);
    let file = kept.join("state");
    let written = |part: &str| fs::read_to_string(&file).is_ok_and(|text| text.contains(part));
    until("it is not kept", &daemon, || written("\"vrf\":\"red\"") && written("\"end\""));
    daemon.signal(Signal::KILL);
    daemon.wait();
    let mut daemon = daemon.again(&with(vrf));
    until("nothing is recalled", &daemon, || daemon.log().contains("back in force"));
    assert_eq!(routes(&daemon), ["10.8.0.0/16 api"]);
    let red = daemon.get("/v1/routes?vrf=red").json();
    let made = red["routes"].as_array().unwrap().iter().filter(|route| route["origin"] == "api");
    let made: Vec<_> = made.map(|route| (&route["prefix"], &route["lookup"])).collect();
    assert_eq!(
        made,
        [(&json!("10.8.0.0/16"), &json!("default")), (&json!("10.9.0.0/16"), &Value::Null)]
    );

    // Without the VRF they are left out, and the others are there.
    daemon.signal(Signal::KILL);
    daemon.wait();
    let daemon = daemon.again(&with(""));
    until("nothing is recalled", &daemon, || daemon.log().contains("back in force"));
    assert_eq!(routes(&daemon), ["10.8.0.0/16 api"]);
    assert!(daemon.log().contains("left_out=2"), "{}", daemon.log());
}

/// Becomes a daemon that keeps its state in a file system that never answers when a file is to be made there.
const HUNG_DISK: &str = r#"
import sys
FOLDER = sys.argv[1]
try:
    fuse = mounted(0)
    if os.fork() == 0:
        serve(fuse, 40, has_file=False)
except OSError:
    print("no file systems of programs", file=sys.stderr, flush=True)
os.execv(sys.argv[2], sys.argv[2:])
"#;

#[test]
fn a_disk_that_hangs_keeps_nobody_from_changing_anything() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().to_str().unwrap();
    let program = [include_str!("../../../lab/client/endless.py"), HUNG_DISK].concat();
    let daemon = Instance::start_through(&["-c", &program, kept], &ports(kept, &[1], ""));
    if daemon.log().contains("no file systems of programs") {
        eprintln!("skipped: no file systems of programs (/dev/fuse)");
        return;
    }
    let save = || loop {
        let answer = daemon.request("POST", "/v1/save", "null");
        // What was kept before is still being put in force.
        if answer.status != 409 {
            break answer;
        }
        sleep(Duration::from_millis(20));
    };
    let saved = std::thread::scope(|scope| {
        let saves = scope.spawn(save);
        for n in (0..=u8::MAX).cycle() {
            if saves.is_finished() {
                break;
            }
            let route = json!([{"prefix": format!("10.9.{n}.0/24"), "kind": "blackhole"}]);
            post(&daemon, "/v1/routes", &route);
            sleep(Duration::from_millis(100));
        }
        saves.join().unwrap()
    });
    assert!(saved.text().contains("not written within 10 s"), "{}", saved.text());
    until("it is not said", &daemon, || daemon.log().contains("state is not kept: "));
    // The file system ends, which would keep the daemon from its end.
    let children = format!("/proc/{0}/task/{0}/children", daemon.pid());
    for child in fs::read_to_string(children).unwrap_or_default().split_whitespace() {
        let child = Pid::from_raw(child.parse().unwrap()).unwrap();
        kill_process(child, Signal::KILL).unwrap();
    }
}
