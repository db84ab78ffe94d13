//! Routes from several sources to one prefix, by the API and over a reload.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod instance;

use instance::{Instance, SMALL};
use serde_json::{Value, json};

fn config(more: &str) -> String {
    format!(
        r#"{SMALL}
[[port]]
name = "left"
device = "null,no-rx=1"
addresses = ["10.0.1.1/24"]

[[port]]
name = "right"
device = "null,no-rx=1"
addresses = ["10.0.2.1/24"]

[[vrf]]
name = "red"
{more}"#
    )
}

const FLOATING: &str = r#"
[[route]]
prefix = "10.9.0.0/16"
via = "10.0.1.2"

[[route]]
prefix = "10.9.0.0/16"
via = "10.0.2.2"
distance = 200
"#;

fn post(daemon: &Instance, list: &Value) -> Value {
    let answer = daemon.request("POST", "/v1/routes", &list.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// Source, distance and state of the routes to 10.9.0.0/16.
fn order(daemon: &Instance) -> Vec<String> {
    let page = daemon.get("/v1/routes?prefix=10.9.0.0/16").json();
    let word = |route: &Value| {
        let source = route["source"].as_str().unwrap_or("static");
        let standby = if route["standby"] == true { " standby" } else { "" };
        format!("{source} {}{standby}", route["distance"].as_u64().unwrap_or_default())
    };
    page["routes"].as_array().unwrap().iter().map(word).collect()
}

/// Interface that packets to 10.9.0.1 leave by.
fn leaves_by(daemon: &Instance) -> Value {
    let found = daemon.get("/v1/routes/lookup?address=10.9.0.1").json();
    found["next_hops"][0]["interface"].clone()
}

#[test]
fn the_best_of_several_sources_is_followed_and_a_source_goes_as_a_whole() {
    let daemon = Instance::start(&config(FLOATING));
    assert_eq!(order(&daemon), ["static 0", "static 200 standby"], "0: the usual one");
    assert_eq!(leaves_by(&daemon), "left");
    let given = post(
        &daemon,
        &json!([
            {"prefix": "10.9.0.0/16", "source": "mine", "distance": 0, "port": "right"},
            {"prefix": "10.9.0.0/16", "source": "ospf", "metric": 20, "kind": "blackhole"},
            {"prefix": "10.8.0.0/16", "source": "ospf", "kind": "blackhole", "vrf": "red"},
            // What is connected is no mistake of a protocol's.
            {"prefix": "10.0.1.0/24", "source": "ospf", "port": "right"},
        ]),
    );
    assert_eq!(given, json!({"added": 4, "replaced": 0, "removed": 0}));
    let metric =
        json!([{"prefix": "10.9.0.0/16", "source": "ospf", "metric": 30, "kind": "blackhole"}]);
    assert_eq!(post(&daemon, &metric)["replaced"], 1, "a metric is no place");
    let all = ["mine 0", "static 0 standby", "ospf 0 standby", "static 200 standby"];
    assert_eq!(order(&daemon), all);
    assert_eq!(leaves_by(&daemon), "right");
    let sources = daemon.get("/v1/route-sources").json();
    let source =
        |name: &str, routes4: u64| json!({"source": name, "routes4": routes4, "routes6": 0});
    let mut red = source("ospf", 1);
    red["vrf"] = json!("red");
    assert_eq!(sources, json!([source("mine", 1), source("ospf", 2), source("static", 2), red]));
    let page = daemon.get("/v1/routes?source=ospf&limit=1").json();
    assert_eq!((page["total"].clone(), page["next"].clone()), (json!(2), json!("10.0.1.0/24")));
    let page = daemon.get("/v1/routes?source=ospf&limit=1&after=10.0.1.0/24").json();
    assert_eq!(page["routes"][0]["prefix"], "10.9.0.0/16");

    let gone = daemon.request("DELETE", "/v1/routes?source=mine", r#"["10.9.0.0/16"]"#);
    assert_eq!(gone.json()["removed"], 1);
    assert_eq!(leaves_by(&daemon), "left");
    let gone = daemon.request("DELETE", "/v1/routes?distance=1", r#"["10.9.0.0/16"]"#);
    assert_eq!(gone.json()["removed"], 1);
    let absent = daemon.request("DELETE", "/v1/routes?distance=7", r#"["10.9.0.0/16"]"#);
    assert_eq!(absent.status, 404);
    assert_eq!(order(&daemon), ["ospf 0", "static 200 standby"]);
    let gone = daemon.request("DELETE", "/v1/route-sources/ospf", "");
    assert_eq!(gone.json(), json!({"added": 0, "replaced": 0, "removed": 3}));
    assert_eq!(leaves_by(&daemon), "right");
    assert_eq!(
        daemon.get("/v1/routes?source=connected").json()["routes"].as_array().unwrap().len(),
        2
    );
}

#[test]
fn a_reload_changes_the_routes_of_the_configuration_alone() {
    let daemon = Instance::start(&config(FLOATING));
    post(
        &daemon,
        &json!([{"prefix": "10.9.0.0/16", "source": "bgp", "distance": 1, "kind": "blackhole"}]),
    );
    assert_eq!(order(&daemon), ["bgp 1", "static 0 standby", "static 200 standby"]);
    let second = FLOATING.replace("distance = 200", "distance = 250\nmetric = 4");
    daemon.write_config(&config(&second));
    let reloaded = daemon.request("POST", "/v1/reload", "{}");
    assert_eq!(reloaded.status, 200, "{}", reloaded.text());
    assert_eq!(order(&daemon), ["bgp 1", "static 0 standby", "static 250 standby"]);
    daemon.write_config(&config(""));
    assert_eq!(daemon.request("POST", "/v1/reload", "{}").status, 200);
    assert_eq!(order(&daemon), ["bgp 1"]);
}

#[test]
fn what_nobody_can_give_or_take_is_refused() {
    let daemon = Instance::start(&config(""));
    let refused = |method: &str, path: &str, body: &str, part: &str| {
        let answer = daemon.request(method, path, body);
        assert!([400, 422].contains(&answer.status), "{}", answer.text());
        assert!(answer.text().contains(part), "{}", answer.text());
    };
    let add = |more: &str| format!(r#"[{{"prefix":"10.0.0.0/8","kind":"blackhole",{more}}}]"#);
    refused("POST", "/v1/routes", &add(r#""source":"connected""#), "follow from interfaces");
    refused("POST", "/v1/routes", &add(r#""distance":255"#), "use 0 to 254");
    refused("POST", "/v1/routes", &add(r#""source":"a b""#), "1 to 15 letters");
    refused("DELETE", "/v1/route-sources/local", "", "follow from interfaces");
    refused("DELETE", "/v1/route-sources/a%20b", "", "1 to 15 letters");
    let network = r#"[{"prefix":"10.0.1.0/24","kind":"blackhole"}]"#;
    refused("POST", "/v1/routes", network, "is the network of 'left' already");
    let removed = daemon.request("DELETE", "/v1/routes?source=connected", r#"["10.0.1.0/24"]"#);
    assert_eq!(removed.status, 404, "{}", removed.text());
}
