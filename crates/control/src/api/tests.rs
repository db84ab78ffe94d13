//! The JSON that the API promises.

use serde_json::{Value, json};

use super::{ErrorBody, RouteEntry, RouteOrigin};
use crate::config::{ConfigError, Flow, FlowKey, NextHop, Route, RouteTarget};

#[test]
fn a_route_is_flat_and_has_one_target() {
    let via = vec![NextHop { weight: 2, ..NextHop::new([192, 0, 2, 2].into()) }];
    let prefix = "10.0.0.0/8".parse().unwrap();
    let route = Route::new(prefix, RouteTarget::Via(via));
    let entry = RouteEntry { route, origin: RouteOrigin::Api, parked: false, standby: false };
    let text = json!({
        "prefix": "10.0.0.0/8", "via": [{"address": "192.0.2.2", "weight": 2}], "origin": "api"
    });
    assert_eq!(serde_json::to_value(&entry).unwrap(), text);
    assert_eq!(serde_json::from_value::<RouteEntry>(text).unwrap(), entry);
    let refused = |body: Value| serde_json::from_value::<Route>(body).unwrap_err().to_string();
    let both = json!({"prefix": "10.0.0.0/8", "port": "a", "kind": "local"});
    assert_eq!(
        refused(both),
        "a route has exactly one of via, port, lookup and kind; give one of them"
    );
    let leak = json!({"vrf": "red", "prefix": "10.0.0.0/8", "lookup": "default"});
    let route: Route = serde_json::from_value(leak.clone()).unwrap();
    assert_eq!(serde_json::to_value(&route).unwrap(), leak);
    let learned = json!({"source": "ospf", "prefix": "10.0.0.0/8", "metric": 20, "port": "a"});
    let route: Route = serde_json::from_value(learned.clone()).unwrap();
    assert_eq!((route.source.name(), route.distance, route.metric), ("ospf", 110, 20));
    assert_eq!(serde_json::to_value(&route).unwrap(), learned);
    let floating = json!({"prefix": "10.0.0.0/8", "distance": 200, "port": "a"});
    let route: Route = serde_json::from_value(floating.clone()).unwrap();
    assert_eq!((route.source.name(), route.distance, route.metric), ("static", 200, 0));
    assert_eq!(serde_json::to_value(&route).unwrap(), floating);
    let named = json!({"prefix": "10.0.0.0/8", "source": "a b", "port": "a"});
    assert!(refused(named).starts_with("a source's name is not 1 to 15 letters"));
    let unnamed = json!({"vrf": "default", "prefix": "10.0.0.0/8", "port": "a"});
    assert_eq!(serde_json::from_value::<Route>(unnamed).unwrap().vrf, None);
    let typo = json!({"prefix": "10.0.0.0/8", "prot": "a"});
    assert!(refused(typo).starts_with("unknown field `prot`"));
    let host_bits = json!({"prefix": "10.0.0.1/8", "port": "a"});
    assert!(refused(host_bits).contains("the network is 10.0.0.0/8"));
}

#[test]
fn a_flow_refuses_unknown_keys() {
    let body = json!({
        "source": "192.0.2.1", "destination": "198.51.100.1", "protocol": 6,
        "source_port": 1000, "destination_port": 80, "egress_port": "right",
        "destination_mac": "02:00:00:00:00:01"
    });
    let flow: Flow = serde_json::from_value(body.clone()).unwrap();
    assert_eq!((flow.key().source_port, flow.source_mac), (1000, None));
    assert_eq!(serde_json::to_value(&flow).unwrap(), body);
    let mut typo = body;
    typo["new_sorce"] = json!("192.0.2.7");
    assert!(serde_json::from_value::<Flow>(typo.clone()).is_err());
    assert!(serde_json::from_value::<FlowKey>(typo).is_err());
}

#[test]
fn refusals_of_a_configuration_list_every_error() {
    let error = ConfigError {
        file: "m.toml".into(),
        line: 3,
        key: "port.a.mtu".into(),
        problem: "9 is out of bounds".into(),
        remedy: "use 68 to 9216 bytes".into(),
    };
    let body = serde_json::to_value(ErrorBody::of_config(vec![error])).unwrap();
    assert_eq!(body["error"]["code"], "config");
    assert_eq!(body["error"]["details"][0]["line"], 3);
    let plain = serde_json::to_value(ErrorBody::new("invalid", "m", "r")).unwrap();
    assert_eq!(plain, json!({"error": {"code": "invalid", "message": "m", "remedy": "r"}}));
}
