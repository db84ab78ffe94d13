//! Each VRF has routes of its own.

use serde_json::{Value, json};

use crate::instance::{Instance, SMALL};
use crate::{code, routes};

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
