//! The API of a running daemon: routes, neighbours, flows, ports, refusals.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod instance;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use instance::{Instance, SMALL};
use serde_json::{Value, json};

/// Two ports that swallow what is sent and receive nothing.
fn two_ports() -> String {
    format!(
        r#"{SMALL}
flows4 = 10
[[port]]
name = "left"
device = "null,no-rx=1"
addresses = ["10.0.1.1/24", "2001:db8:1::1/64"]
[[port]]
name = "right"
device = "null,no-rx=1"
addresses = ["10.0.2.1/24"]
next-hop-mac = "02:00:00:00:00:99"
tcp-mss = 1400
[[route]]
prefix = "10.9.0.0/16"
via = "10.0.2.2"
"#
    )
}

fn routes(daemon: &Instance, query: &str) -> Vec<Value> {
    let answer = daemon.get(&format!("/v1/routes{query}"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["routes"].as_array().unwrap().clone()
}

fn code(answer: &instance::Answer) -> String {
    let body = answer.json();
    assert!(!body["error"]["message"].as_str().unwrap().is_empty(), "{body}");
    assert!(!body["error"]["remedy"].as_str().unwrap().is_empty(), "{body}");
    body["error"]["code"].as_str().unwrap().to_owned()
}

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

#[test]
fn hostile_requests_are_refused_in_one_form_and_nothing_breaks() {
    let daemon = Instance::start(&two_ports());
    let bodies: [(&str, &str, &str, u16); 14] = [
        ("GET", "/v1/nothing", "", 404),
        ("PUT", "/v1/routes", "[]", 405),
        ("POST", "/v1/routes", "", 400),
        ("POST", "/v1/routes", "[{", 400),
        ("POST", "/v1/routes", "{\"prefix\": 7}", 422),
        ("POST", "/v1/routes", r#"[{"prefix": "10.0.0.1/8", "kind": "local"}]"#, 422),
        ("POST", "/v1/routes", "\u{0}\u{1}", 400),
        ("GET", "/v1/routes?limit=0", "", 400),
        ("GET", "/v1/routes?family=5", "", 400),
        ("GET", "/v1/routes?colour=red", "", 400),
        ("PATCH", "/v1/ports/nobody", "{}", 404),
        ("PATCH", "/v1/ports/left", r#"{"mtu": 10}"#, 400),
        ("POST", "/v1/trace", r#"{"protocol": "smoke"}"#, 400),
        ("POST", "/v1/capture", r#"{"snaplen": 1}"#, 400),
    ];
    for (method, path, body, status) in bodies {
        let answer = daemon.request(method, path, body);
        assert_eq!(answer.status, status, "{method} {path} {body}: {}", answer.text());
        code(&answer);
    }
    let deep = "[".repeat(100_000);
    assert_eq!(daemon.request("POST", "/v1/routes", &deep).status, 422);
    let answer = daemon.request("POST", "/v1/reload", r#"{"config": "relative.toml"}"#);
    assert_eq!((answer.status, code(&answer).as_str()), (400, "invalid"));
    assert_eq!(daemon.get("/v1/version").status, 200);
}

#[test]
fn a_port_keeps_the_mtu_that_its_bridge_has_for_its_own_addresses() {
    let daemon = Instance::start(&format!(
        "{SMALL}[[port]]\nname = \"left\"\ndevice = \"null,no-rx=1\"\n\
         [[bridge]]\nname = \"lan\"\nmembers = [\"left\"]\naddresses = [\"10.0.9.1/24\"]\n"
    ));
    let small = daemon.request("PATCH", "/v1/ports/left", r#"{"mtu": 1400}"#);
    assert!(small.status == 502 && small.text().contains("bridge lan"), "{}", small.text());
}

/// Who may use the API may not read files as root.
#[test]
fn a_reload_opens_nothing_but_regular_files_of_its_folders() {
    let more = tempfile::tempdir().unwrap();
    let config = |routes: &str| {
        let folders = format!("[daemon]\nfolders = [\"{}\"]\n", more.path().display());
        format!("{folders}{}[routes]\nfiles = [{routes}]\n", two_ports())
    };
    let daemon = Instance::start(&config(""));
    let secret = tempfile::tempdir().unwrap();
    let secret = secret.path().join("shadow");
    std::fs::create_dir_all(secret.parent().unwrap()).unwrap();
    std::fs::write(&secret, "root:$6$hunter2:19000::::::\n").unwrap();
    let write = |path: &std::path::Path, text: &str| std::fs::write(path, text).unwrap();
    std::os::unix::fs::symlink(&secret, daemon.path("link")).unwrap();
    let fifo = daemon.path("fifo");
    let read = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, read, 0).unwrap();
    write(&daemon.path("garbage"), "root:$6$hunter2:19000::::::\n");
    write(&daemon.path("names.toml"), &config(&format!("\"{}\"", secret.display())));
    write(&daemon.path("waits.toml"), &config("\"fifo\""));
    write(&daemon.path("quotes.toml"), &config("\"garbage\""));
    let reload = |path: &std::path::Path| {
        let body = json!({"config": path.to_str().unwrap()}).to_string();
        let answer = daemon.request("POST", "/v1/reload", &body);
        assert!(!answer.text().contains("hunter2"), "{}", answer.text());
        (answer.status, answer.text())
    };
    let outside = "it lies outside";
    for (path, why) in [
        (secret.clone(), outside),
        ("/nowhere/at/all".into(), outside),
        (daemon.path("../shadow"), outside),
        (daemon.path("link"), outside),
        (daemon.path("names.toml"), outside),
        (fifo, "not a regular file"),
        (daemon.path("waits.toml"), "not a regular file"),
        ("/dev/zero".into(), outside),
        (daemon.path("garbage"), "is not TOML"),
        (daemon.path("quotes.toml"), "is not a route"),
    ] {
        let (status, text) = reload(&path);
        assert!(status == 422 && text.contains(why), "{path:?}: {status} {text}");
    }
    let other = more.path().join("other.toml");
    write(&other, &config(""));
    assert_eq!(reload(&other).0, 200);
    assert_eq!(reload(&daemon.path("millrace.toml")).0, 200);
}

#[test]
fn neighbors_flows_and_ports_are_shown_and_changed() {
    let daemon = Instance::start(&two_ports());
    let fixed = json!([{"interface": "right", "address": "10.0.2.9", "mac": "02:00:00:00:00:09"}]);
    let answer = daemon.request("POST", "/v1/neighbors", &fixed.to_string());
    assert_eq!(answer.json()["added"], 1, "{}", answer.text());
    let neighbors = daemon.get("/v1/neighbors").json();
    assert_eq!(neighbors[0]["state"], "static");
    assert_eq!(neighbors[0]["mac"], "02:00:00:00:00:09");
    for (address, kind, next) in
        [("10.0.2.9", "forward", json!("output-features")), ("10.9.0.1", "unresolved", json!(null))]
    {
        let found = daemon.get(&format!("/v1/routes/lookup?address={address}")).json();
        let hop = &found["next_hops"][0];
        assert_eq!((&hop["kind"], &hop["next"]), (&json!(kind), &next), "{found}");
    }
    let found = daemon.get("/v1/routes/lookup?address=10.0.2.9").json();
    assert_eq!(found["route"]["origin"], "neighbor", "{found}");
    assert_eq!(found["route"]["prefix"], "10.0.2.9/32", "{found}");
    let listed = daemon.get("/v1/routes?prefix=10.0.2.9/32").json();
    assert_eq!(listed["routes"], json!([]), "neighbours have a list of their own");
    let gone = daemon.request("DELETE", "/v1/neighbors", r#"{"address": "10.0.2.9"}"#);
    assert_eq!(gone.json()["removed"], 1);

    let flow = |port: u16| {
        json!({"source": "10.0.1.2", "destination": "10.0.2.2", "protocol": 17,
               "source_port": port, "destination_port": 53, "egress_port": "right"})
    };
    let ten: Vec<Value> = (1..=10).map(flow).collect();
    let answer = daemon.request("POST", "/v1/flows", &Value::from(ten).to_string());
    assert_eq!(answer.json()["added"], 10, "{}", answer.text());
    let answer = daemon.request("POST", "/v1/flows", &json!([flow(11)]).to_string());
    assert_eq!((answer.status, code(&answer).as_str()), (507, "full"));
    let page = daemon.get("/v1/flows?limit=4").json();
    assert_eq!((page["flows"].as_array().unwrap().len(), &page["total"]), (4, &json!(10)));
    assert_eq!(page["flows"][0]["destination_mac"], "02:00:00:00:00:99");
    let answer = daemon.request("DELETE", "/v1/flows", r#"{"all": true}"#);
    assert_eq!(answer.json()["removed"], 10, "{}", answer.text());

    let down = daemon.request("PATCH", "/v1/ports/left", r#"{"up": false}"#);
    assert_eq!(down.json()["state"], "admin-down", "{}", down.text());
    let up = daemon.request("PATCH", "/v1/ports/left", r#"{"up": true}"#);
    assert_eq!(up.json()["state"], "up", "{}", up.text());
    let small = daemon.request("PATCH", "/v1/ports/left", r#"{"mtu": 1279}"#);
    assert!(small.status == 502 && small.text().contains("at least 1280"), "{}", small.text());
    let queues = daemon.get("/v1/queues").json();
    assert_eq!(queues.as_array().unwrap().len(), 2);
    let interfaces = daemon.get("/v1/interfaces").json();
    let addresses = interfaces[0]["addresses"].to_string();
    assert!(addresses.contains("fe80::"), "{addresses}");
    assert_eq!(interfaces[0].get("input_features"), None);
    assert_eq!(interfaces[1]["input_features"], json!(["tcp-mss-input"]));
    assert_eq!(interfaces[1]["output_features"], json!(["tcp-mss-output"]));
    let metrics = daemon.get("/metrics").text();
    assert!(metrics.contains("millrace_port_up{port=\"left\"} 1"), "{metrics}");
    assert!(metrics.contains("\nmillrace_icmp_errors_limited_total{core="), "{metrics}");
    for path in [
        "/v1/workers",
        "/v1/nodes",
        "/v1/drops",
        "/v1/bridges",
        "/v1/config",
        "/v1/next-hops",
        "/openapi.json",
    ] {
        let answer = daemon.get(path);
        assert_eq!(answer.status, 200, "{path}");
        answer.json();
    }
}

#[test]
fn a_body_that_comes_late_costs_nobody_the_answer() {
    let daemon = Instance::start(&two_ports());
    for (method, path, status) in
        [("POST", "/v1/save", "409"), ("DELETE", "/v1/functions/7", "404")]
    {
        let mut stream = UnixStream::connect(daemon.socket()).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: m\r\nConnection: close\r\nContent-Length: 4\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        // Long enough for an answer that does not wait for it.
        std::thread::sleep(Duration::from_millis(50));
        stream.write_all(b"null").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer.split(' ').nth(1), Some(status), "{answer}");
    }
}

/// Ports in the default VRF, in red and in blue, all with one network.
fn vrfs(names: &[&str]) -> String {
    let port = |(name, vrf): (&str, Option<&str>)| {
        let vrf = vrf.map(|vrf| format!("vrf = \"{vrf}\"\n")).unwrap_or_default();
        format!(
            "[[port]]\nname = \"{name}\"\ndevice = \"null,no-rx=1\"\n{vrf}\
             addresses = [\"10.0.0.1/24\"]\nnext-hop-mac = \"02:00:00:00:00:99\"\n"
        )
    };
    let vrf = |name: &&str| format!("[[vrf]]\nname = \"{name}\"\n");
    let ports: String = names.iter().map(|name| port((name, Some(name)))).collect();
    let vrfs: String = names.iter().map(vrf).collect();
    format!("{SMALL}flows4 = 10\n{vrfs}{}{ports}", port(("left", None)))
}

#[test]
fn each_vrf_has_routes_of_its_own() {
    let daemon = Instance::start(&vrfs(&["red", "blue"]));
    let list = json!([
        {"prefix": "10.9.0.0/16", "via": [{"address": "10.0.0.2"}]},
        {"vrf": "red", "prefix": "10.9.0.0/16", "via": [{"address": "10.0.0.2"}]},
        {"vrf": "red", "prefix": "10.8.0.0/16", "lookup": "blue"},
        {"vrf": "blue", "prefix": "10.8.0.0/15", "lookup": "default"},
        {"vrf": "default", "prefix": "10.7.0.0/16", "kind": "blackhole"},
        {"prefix": "10.8.0.0/16", "port": "left"},
    ]);
    let answer = daemon.request("POST", "/v1/routes", &list.to_string());
    assert_eq!(answer.json(), json!({"added": 6, "replaced": 0, "removed": 0}));
    let made = |vrf: &str| -> Vec<Value> {
        let list = routes(&daemon, &format!("?vrf={vrf}"));
        list.into_iter().filter(|route| route["origin"] == "api").collect()
    };
    assert_eq!(made("default").len(), 3);
    assert_eq!(routes(&daemon, ""), routes(&daemon, "?vrf=default"));
    assert_eq!(made("red").len(), 2);
    let leak =
        json!({"vrf": "blue", "prefix": "10.8.0.0/15", "lookup": "default", "origin": "api"});
    assert_eq!(made("blue"), std::slice::from_ref(&leak));
    // Own addresses and networks are in each.
    for vrf in ["default", "red", "blue"] {
        let own = routes(&daemon, &format!("?vrf={vrf}&prefix=10.0.0.0/24"));
        assert!(own.iter().any(|route| route["origin"] == "connected"), "{vrf}: {own:?}");
    }
    let by = |vrf: &str, address: &str| {
        let query = format!("/v1/routes/lookup?vrf={vrf}&address={address}");
        let found = daemon.get(&query).json();
        (found["next_hops"][0]["interface"].clone(), found["then"].clone())
    };
    assert_eq!(by("default", "10.9.1.1").0, "left");
    assert_eq!(by("red", "10.9.1.1"), (json!("red"), Value::Null));
    let (interface, then) = by("red", "10.8.1.1");
    assert_eq!((interface, &then[0]), (json!("left"), &leak), "over blue to the default VRF");
    assert_eq!(then[1]["port"], "left");

    let shown = daemon.get("/v1/vrfs").json();
    assert_eq!(
        shown,
        json!([
            {"name": "default", "interfaces": ["left"], "routes4": 3, "routes6": 0},
            {"name": "red", "interfaces": ["red"], "routes4": 2, "routes6": 0},
            {"name": "blue", "interfaces": ["blue"], "routes4": 1, "routes6": 0},
        ])
    );
    let interfaces = daemon.get("/v1/interfaces").json();
    let of = interfaces.as_array().unwrap().iter().map(|one| (&one["name"], &one["vrf"]));
    let of: Vec<_> = of.collect();
    assert!(of.contains(&(&json!("red"), &json!("red"))), "{of:?}");
    assert!(of.contains(&(&json!("left"), &Value::Null)), "{of:?}");
    let metrics = daemon.get("/metrics").text();
    assert!(metrics.contains("millrace_vrf_routes{vrf=\"red\",family=\"ipv4\"} 2"), "{metrics}");
    assert!(metrics.contains("millrace_routes{family=\"ipv4\"} 6"), "{metrics}");

    let gone = daemon.request("DELETE", "/v1/routes?vrf=red", "[\"10.9.0.0/16\"]");
    assert_eq!(gone.json()["removed"], 1, "{}", gone.text());
    let gone = daemon.request("DELETE", "/v1/routes?vrf=red", "[\"10.9.0.0/16\"]");
    assert_eq!((gone.status, code(&gone).as_str()), (404, "not-found"));
    assert_eq!(by("default", "10.9.1.1").0, "left", "the default VRF's stays");
}

#[test]
fn what_does_not_fit_a_vrf_is_refused_with_the_reason() {
    let daemon = Instance::start(&vrfs(&["red", "blue"]));
    let refused = |body: Value, part: &str| {
        let answer = daemon.request("POST", "/v1/routes", &body.to_string());
        assert_eq!((answer.status, code(&answer).as_str()), (400, "invalid"), "{body}");
        assert!(answer.text().contains(part), "{}", answer.text());
    };
    refused(json!([{"vrf": "green", "prefix": "10.9.0.0/16", "kind": "local"}]), "green");
    refused(json!([{"prefix": "10.9.0.0/16", "lookup": "green"}]), "green");
    refused(json!([{"vrf": "red", "prefix": "10.9.0.0/16", "lookup": "red"}]), "its own VRF");
    refused(json!([{"vrf": "red", "prefix": "10.0.0.0/24", "kind": "local"}]), "network of 'red'");
    for path in ["/v1/routes?vrf=green", "/v1/routes/lookup?address=10.0.0.1&vrf=green"] {
        let answer = daemon.get(path);
        assert_eq!((answer.status, code(&answer).as_str()), (404, "not-found"), "{path}");
    }
    let flow = json!([{"source": "10.0.0.2", "destination": "10.9.9.9", "protocol": 17,
        "source_port": 1, "destination_port": 2, "egress_port": "red"}]);
    let answer = daemon.request("POST", "/v1/flows", &flow.to_string());
    assert_eq!((answer.status, code(&answer).as_str()), (400, "invalid"), "{}", answer.text());
    assert!(answer.text().contains("VRF 'red'"), "{}", answer.text());
}
