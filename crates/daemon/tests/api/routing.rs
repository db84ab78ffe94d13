//! Routes come and go, up to their limit.

use serde_json::{Value, json};

use crate::instance::Instance;
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
