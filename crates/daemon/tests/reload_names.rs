//! What names an interface stays with that interface's name, whatever a reload takes away and brings.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod instance;

use std::collections::BTreeMap;

use instance::{Instance, SMALL};
use serde_json::{Value, json};

const FIXED: &str = "02:00:00:00:00:99";

fn port(name: &str, net: u8) -> String {
    format!(
        "[[port]]\nname = \"{name}\"\ndevice = \"null,no-rx=1\"\naddresses = [\"10.0.{net}.1/24\"]\n"
    )
}

fn vlan(id: u8) -> String {
    format!(
        "[[vlan]]\nname = \"vlan{id}\"\nport = \"left\"\nid = {id}\naddresses = [\"10.1.{id}.1/24\"]\n"
    )
}

fn config(parts: &[String]) -> String {
    format!("{SMALL}flows4 = 100\n{}{}", port("left", 1), parts.concat())
}

fn reload(daemon: &Instance, parts: &[String]) -> Value {
    daemon.write_config(&config(parts));
    let done = daemon.request("POST", "/v1/reload", "{}");
    assert_eq!(done.status, 200, "{}", done.text());
    done.json()["changes"].clone()
}

fn post(daemon: &Instance, path: &str, body: &Value) {
    let done = daemon.request("POST", path, &body.to_string());
    assert_eq!(done.status, 200, "{}", done.text());
}

/// Interface of the next hop that packets to an address get, and its kind.
fn leaves_by(daemon: &Instance, address: &str) -> Option<(String, String)> {
    let found = daemon.get(&format!("/v1/routes/lookup?address={address}")).json();
    let hop = found["next_hops"].get(0)?;
    let word = |key: &str| hop[key].as_str().unwrap().to_owned();
    Some((word("interface"), word("kind")))
}

fn by(interface: &str, kind: &str) -> Option<(String, String)> {
    Some((interface.to_owned(), kind.to_owned()))
}

/// Routes of the API: prefix, where they lead, whether they are parked.
fn routes(daemon: &Instance) -> Vec<(String, String, bool)> {
    let list = daemon.get("/v1/routes").json();
    let asked = list["routes"].as_array().unwrap().iter().filter(|route| route["origin"] == "api");
    let shown = asked.map(|route| {
        let to = route["port"].as_str().or(route["via"][0]["interface"].as_str()).unwrap();
        let parked = route["parked"].as_bool().unwrap_or(false);
        (route["prefix"].as_str().unwrap().to_owned(), to.to_owned(), parked)
    });
    shown.collect()
}

#[test]
fn what_names_an_interface_never_comes_to_mean_another() {
    let daemon = Instance::start(&config(&[port("right", 2), vlan(5)]));
    // A look-up says vlan5's number in each of these ways.
    let list = json!([
        {"prefix": "172.16.1.0/24", "via": [{"address": "10.1.5.7", "interface": "vlan5"}]},
        {"prefix": "172.16.2.0/24", "port": "vlan5"},
    ]);
    post(&daemon, "/v1/routes", &list);
    let neighbor = json!([{"interface": "vlan5", "address": "10.1.5.7", "mac": FIXED}]);
    post(&daemon, "/v1/neighbors", &neighbor);
    let flow = json!([{"source": "10.0.1.2", "destination": "10.9.9.9", "protocol": 17,
        "source_port": 1, "destination_port": 2, "egress_port": "right", "destination_mac": FIXED}]);
    post(&daemon, "/v1/flows", &flow);
    assert_eq!(leaves_by(&daemon, "172.16.1.1"), by("vlan5", "forward"));
    assert_eq!(leaves_by(&daemon, "172.16.2.1"), by("vlan5", "glean"));

    let changes = reload(&daemon, &[]);
    for name in ["right", "vlan5"] {
        let told = format!("what names interface {name} waits until it is back");
        assert!(changes.as_array().unwrap().contains(&json!(told)), "{changes}");
    }
    // Others have come, as many as there are numbers to be had.
    let others = [port("front", 3), vlan(9), vlan(8), vlan(7)];
    for _ in 0..2 {
        reload(&daemon, &others);
        let parked = |prefix: &str| (prefix.to_owned(), "vlan5".to_owned(), true);
        assert_eq!(routes(&daemon), [parked("172.16.1.0/24"), parked("172.16.2.0/24")]);
        assert_eq!(leaves_by(&daemon, "172.16.1.1"), None);
        assert_eq!(leaves_by(&daemon, "172.16.2.1"), None);
        assert_eq!(daemon.get("/v1/flows").json()["flows"][0]["egress_port"], "right");
        let neighbors = daemon.get("/v1/neighbors").json();
        let waits = json!({"interface": "vlan5", "address": "10.1.5.7", "mac": FIXED, "state": "static",
            "queued": 0, "parked": true});
        assert_eq!(neighbors, json!([waits]));
    }

    let back = [&others[..], &[vlan(5)]].concat();
    let changes = reload(&daemon, &back);
    assert!(!changes.to_string().contains("waits"), "{changes}");
    assert_eq!(leaves_by(&daemon, "172.16.1.1"), by("vlan5", "forward"), "with its neighbour");
    assert_eq!(leaves_by(&daemon, "172.16.2.1"), by("vlan5", "glean"));
    assert!(routes(&daemon).iter().all(|(_, _, parked)| !parked));

    // What waits can be taken back too.
    reload(&daemon, &others);
    let gone = daemon.request("DELETE", "/v1/routes", "[\"172.16.1.0/24\", \"172.16.2.0/24\"]");
    assert_eq!(gone.status, 200, "{}", gone.text());
    let neighbor = json!({"interface": "vlan5", "address": "10.1.5.7"}).to_string();
    let gone = daemon.request("DELETE", "/v1/neighbors", &neighbor);
    assert_eq!(gone.status, 200, "{}", gone.text());
    reload(&daemon, &back);
    let neighbors = daemon.get("/v1/neighbors").json();
    assert!(!neighbors.to_string().contains(FIXED), "{neighbors}");
}

#[test]
fn a_neighbour_of_the_configuration_goes_with_its_interface() {
    let fixed = "[[neighbor]]\ninterface = \"vlan5\"\naddress = \"10.1.5.7\"\nmac = \"02:00:00:00:00:99\"\n";
    let daemon = Instance::start(&config(&[vlan(5), fixed.to_owned()]));
    assert!(daemon.get("/v1/neighbors").text().contains(FIXED));
    let changes = reload(&daemon, &[]);
    assert!(!changes.to_string().contains("waits"), "{changes}");
    for others in [&[vlan(9)][..], &[vlan(9), vlan(8)], &[vlan(9), vlan(8), vlan(5)]] {
        reload(&daemon, others);
        let neighbors = daemon.get("/v1/neighbors").text();
        assert!(!neighbors.contains(FIXED), "{neighbors}");
    }
}

#[test]
fn a_refused_reload_gives_flows_back_whose_port_it_had_taken_away() {
    let flow = |port: u16| {
        // Those that the file has too share nothing with the others.
        let mac = if port < 1000 { "02:00:00:00:00:98" } else { FIXED };
        json!({"source": "10.0.1.2", "destination": "10.9.9.9", "protocol": 17, "source_port": port,
            "destination_port": 2, "egress_port": "right", "destination_mac": mac})
    };
    let daemon = Instance::start(&config(&[port("right", 2)]));
    let own: Vec<Value> = [1, 2].into_iter().chain(1000..1090).map(flow).collect();
    post(&daemon, "/v1/flows", &json!(own));
    let flows = || {
        let list = daemon.get("/v1/flows").json();
        let flows = list["flows"].as_array().unwrap().iter();
        flows.map(|flow| (flow["source_port"].to_string(), flow.to_string())).collect()
    };
    let before: BTreeMap<String, String> = flows();
    assert_eq!(before.len(), own.len());
    // Two of them by another port, and more than fit beside the others.
    let line = |port: u16| format!("10.0.1.2,10.9.9.9,udp,{port},2,front,{FIXED}\n");
    let columns =
        "source,destination,protocol,source_port,destination_port,egress_port,destination_mac\n";
    let lines: String = (1..=90).map(line).collect();
    std::fs::write(daemon.path("flows.csv"), format!("{columns}{lines}")).unwrap();
    let files = "[flows]\nfiles = [\"flows.csv\"]\n".to_owned();
    daemon.write_config(&config(&[port("front", 3), files]));
    let refused = daemon.request("POST", "/v1/reload", "{}");
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert!(refused.text().contains("flows4"), "{}", refused.text());
    assert_eq!(flows(), before);
}

fn in_vrf(vrf: &str, more: &str) -> String {
    format!(
        "[[vrf]]\nname = \"{vrf}\"\n[[port]]\nname = \"p-{vrf}\"\ndevice = \"null,no-rx=1\"\n\
         vrf = \"{vrf}\"\naddresses = [\"10.0.1.1/24\"]\n{more}"
    )
}

/// Where packets of a VRF to an address go in the end.
fn ends_at(daemon: &Instance, vrf: &str, address: &str) -> Option<String> {
    let query = format!("/v1/routes/lookup?vrf={vrf}&address={address}");
    let hop = daemon.get(&query).json()["next_hops"][0]["interface"].clone();
    hop.as_str().map(str::to_owned)
}

/// Routes of the API in a VRF, and whether they are parked.
fn routes_in(daemon: &Instance, vrf: &str) -> Vec<(String, bool)> {
    let list = daemon.get(&format!("/v1/routes?vrf={vrf}")).json();
    let Some(list) = list["routes"].as_array().cloned() else { return Vec::new() };
    let asked = list.iter().filter(|route| route["origin"] == "api");
    let parked = |route: &Value| route["parked"].as_bool().unwrap_or(false);
    asked.map(|route| (route["prefix"].as_str().unwrap().to_owned(), parked(route))).collect()
}

#[test]
fn routes_wait_for_their_vrf_and_never_come_to_mean_another() {
    let own = "[[route]]\nvrf = \"red\"\nprefix = \"10.7.0.0/16\"\nkind = \"blackhole\"\n";
    let red = || in_vrf("red", own);
    let daemon = Instance::start(&config(&[red()]));
    let list = json!([
        {"vrf": "red", "prefix": "172.16.0.0/16", "via": [{"address": "10.0.1.2"}]},
        {"prefix": "172.17.0.0/16", "lookup": "red"},
        {"vrf": "red", "prefix": "172.17.0.0/16", "port": "p-red"},
    ]);
    post(&daemon, "/v1/routes", &list);
    assert_eq!(ends_at(&daemon, "default", "172.17.0.1").as_deref(), Some("p-red"));

    let changes = reload(&daemon, &[]);
    let told = json!("routes of VRF red and to it wait until it is back");
    assert!(changes.as_array().unwrap().contains(&told), "{changes}");
    let waiting = |prefix: &str| (prefix.to_owned(), true);
    let vrfs = daemon.get("/v1/vrfs").json();
    let gone = json!({"name": "red", "interfaces": [], "routes4": 2, "routes6": 0, "parked": true});
    assert_eq!(vrfs[1], gone, "what the configuration had is gone");
    // Others have come, as many as there are numbers to be had.
    for others in [vec![in_vrf("blue", "")], vec![in_vrf("blue", ""), in_vrf("green", "")]] {
        reload(&daemon, &others);
        assert_eq!(routes_in(&daemon, "red"), [waiting("172.16.0.0/16"), waiting("172.17.0.0/16")]);
        assert_eq!(routes_in(&daemon, "default"), [waiting("172.17.0.0/16")]);
        assert!(routes_in(&daemon, "blue").is_empty());
        assert_eq!(ends_at(&daemon, "default", "172.17.0.1"), None);
        assert_eq!(ends_at(&daemon, "blue", "172.16.0.1"), None);
        assert_eq!(ends_at(&daemon, "blue", "10.0.1.9").as_deref(), Some("p-blue"));
    }
    let refused = json!([{"vrf": "red", "prefix": "172.18.0.0/16", "kind": "blackhole"}]);
    let refused = daemon.request("POST", "/v1/routes", &refused.to_string());
    assert_eq!(refused.status, 400, "{}", refused.text());

    reload(&daemon, &[in_vrf("blue", ""), red()]);
    assert_eq!(ends_at(&daemon, "default", "172.17.0.1").as_deref(), Some("p-red"));
    assert_eq!(ends_at(&daemon, "red", "172.16.0.1").as_deref(), Some("p-red"));
    assert!(routes_in(&daemon, "red").iter().all(|(_, parked)| !parked));

    // What waits can be taken back, and then nothing of the VRF is left.
    reload(&daemon, &[]);
    for (scope, list) in
        [("?vrf=red", r#"["172.16.0.0/16", "172.17.0.0/16"]"#), ("", r#"["172.17.0.0/16"]"#)]
    {
        let gone = daemon.request("DELETE", &format!("/v1/routes{scope}"), list);
        assert_eq!(gone.status, 200, "{}", gone.text());
    }
    reload(&daemon, &[]);
    assert_eq!(daemon.get("/v1/routes?vrf=red").status, 404);
    assert_eq!(daemon.get("/v1/vrfs").json().as_array().unwrap().len(), 1);
}

#[test]
fn a_refused_reload_gives_vrfs_back() {
    let own = "[[route]]\nvrf = \"red\"\nprefix = \"10.7.0.0/16\"\nport = \"p-red\"\n";
    let daemon = Instance::start(&config(&[in_vrf("red", own)]));
    post(&daemon, "/v1/routes", &json!([{"prefix": "10.7.0.0/16", "lookup": "red"}]));
    let columns =
        "source,destination,protocol,source_port,destination_port,egress_port,destination_mac\n";
    let line = |port: u16| format!("10.0.1.2,10.9.9.9,udp,{port},2,left,{FIXED}\n");
    // More flows than fit beside those of the API.
    let flow = |port: u16| {
        json!({"source": "10.0.1.2", "destination": "10.9.9.9", "protocol": 17, "source_port": port,
            "destination_port": 2, "egress_port": "left", "destination_mac": FIXED})
    };
    post(&daemon, "/v1/flows", &json!((1000..1090).map(flow).collect::<Vec<_>>()));
    let lines: String = (1..=90).map(line).collect();
    std::fs::write(daemon.path("flows.csv"), format!("{columns}{lines}")).unwrap();
    let files = "[flows]\nfiles = [\"flows.csv\"]\n".to_owned();
    daemon.write_config(&config(&[in_vrf("blue", ""), files]));
    let refused = daemon.request("POST", "/v1/reload", "{}");
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert_eq!(ends_at(&daemon, "default", "10.7.0.1").as_deref(), Some("p-red"));
    assert_eq!(ends_at(&daemon, "red", "10.0.1.9").as_deref(), Some("p-red"));
    assert_eq!(daemon.get("/v1/routes?vrf=blue").status, 404);
}
