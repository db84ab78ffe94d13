//! The API of a running daemon: routes, neighbours, flows, ports, refusals.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hostile;
#[path = "../instance/mod.rs"]
mod instance;
mod routing;
mod vrfs;

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
fn a_port_keeps_the_mtu_that_its_bridge_has_for_its_own_addresses() {
    let daemon = Instance::start(&format!(
        "{SMALL}[[port]]\nname = \"left\"\ndevice = \"null,no-rx=1\"\n\
         [[bridge]]\nname = \"lan\"\nmembers = [\"left\"]\naddresses = [\"10.0.9.1/24\"]\n"
    ));
    let small = daemon.request("PATCH", "/v1/ports/left", r#"{"mtu": 1400}"#);
    assert!(small.status == 502 && small.text().contains("bridge lan"), "{}", small.text());
}

#[test]
fn a_list_of_flows_in_several_steps_is_taken_whole_or_not_at_all() {
    let daemon = Instance::start(&two_ports().replace("flows4 = 10", "flows4 = 3000"));
    let key = |port: u16| {
        json!({"source": "10.0.1.2", "destination": "10.0.2.2", "protocol": 17,
               "source_port": port, "destination_port": 53})
    };
    let flow = |port: u16, egress: &str| {
        let mut flow = key(port);
        flow["egress_port"] = json!(egress);
        flow
    };
    let post = |list: &[Value]| daemon.request("POST", "/v1/flows", &json!(list).to_string());
    let total = || daemon.get("/v1/flows?limit=1").json()["total"].clone();
    let mut list: Vec<Value> = (1..=2100).map(|port| flow(port, "right")).collect();
    list.push(flow(2101, "nowhere"));
    let refused = post(&list);
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("flow 2101:"), "{}", refused.text());
    assert_eq!(total(), 0);
    list.pop();
    assert_eq!(post(&list).json()["added"], 2100);

    let delete = |keys: &[Value]| {
        daemon.request("DELETE", "/v1/flows", &json!({ "flows": keys }).to_string())
    };
    let mut keys: Vec<Value> = (1..=2101).map(key).collect();
    let refused = delete(&keys);
    assert_eq!(refused.status, 404, "{}", refused.text());
    assert!(refused.text().contains("flow 2101 is not there"), "{}", refused.text());
    assert_eq!(total(), 2100);
    keys.pop();
    assert_eq!(delete(&keys).json()["removed"], 2100);
}

#[test]
fn a_list_of_neighbors_is_taken_whole_or_not_at_all() {
    let daemon = Instance::start(&two_ports().replace("flows4 = 10", "flows4 = 10\nneighbors = 2"));
    let neighbor = |host: u8, mac: u8| {
        json!({"interface": "right", "address": format!("10.0.2.{host}"),
               "mac": format!("02:00:00:00:00:{mac:02x}")})
    };
    let post = |list: Value| daemon.request("POST", "/v1/neighbors", &list.to_string());
    let first = post(json!([neighbor(9, 9)]));
    assert_eq!(first.json()["added"], 1, "{}", first.text());
    let refused = post(json!([neighbor(9, 1), neighbor(10, 2), neighbor(11, 3)]));
    assert_eq!((refused.status, code(&refused).as_str()), (507, "full"), "{}", refused.text());
    let there = daemon.get("/v1/neighbors").json();
    assert_eq!(there.as_array().unwrap().len(), 1, "{there}");
    assert_eq!(there[0]["mac"], "02:00:00:00:00:09", "as before");
    let both = post(json!([neighbor(9, 1), neighbor(10, 2)])).json();
    assert_eq!((&both["replaced"], &both["added"]), (&json!(1), &json!(1)), "{both}");
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
