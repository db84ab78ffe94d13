//! A reload that is refused in its last step: every step before it is taken back.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod instance;

use std::fmt::Write as _;
use std::fs;

use instance::{Instance, SMALL};
use serde_json::{Value, json};

/// Flows that fit.
const FLOWS: usize = 2500;
/// Flows of the API. Beside them the first 2,048 of a file fit, which are entered in one step, and no 2,400.
const OWN: usize = 200;

/// What a daemon has, without what counts.
fn snapshot(daemon: &Instance) -> Value {
    let mut ports = daemon.get("/v1/ports").json();
    for port in ports.as_array_mut().unwrap() {
        // The number is another whenever the device was opened anew.
        for key in ["counters", "number"] {
            port.as_object_mut().unwrap().remove(key);
        }
    }
    let mut interfaces = daemon.get("/v1/interfaces").json();
    for interface in interfaces.as_array_mut().unwrap() {
        interface.as_object_mut().unwrap().remove("counters");
    }
    let mut flows = daemon.get("/v1/flows").json();
    let by_port = |flow: &Value| flow["destination_port"].as_u64();
    flows["flows"].as_array_mut().unwrap().sort_by_key(by_port);
    json!({
        "config": daemon.get("/v1/config").json(),
        "ports": ports,
        "interfaces": interfaces,
        "routes": daemon.get("/v1/routes").json(),
        "flows": flows,
    })
}

/// Flows to one address from as many ports, in the form of a file.
fn flow_file(count: usize) -> String {
    let mut text =
        "source,destination,protocol,source_port,destination_port,egress_port,destination_mac\n"
            .to_owned();
    for port in 1..=count {
        writeln!(text, "10.0.1.2,10.9.9.9,udp,{port},2,p1,02:00:00:00:00:11").unwrap();
    }
    text
}

#[test]
fn all_of_it_is_taken_back_when_the_last_step_is_refused() {
    let config = |wire: &str, more: &str| {
        format!(
            "{SMALL}flows4 = {FLOWS}\n\
             [[port]]\nname = \"p1\"\ndevice = \"null,no-rx=1\"\naddresses = [\"10.0.1.1/24\"]\n\
             [[port]]\nname = \"p2\"\ndevice = \"memif:wire.sock,role=server\"\n\
             addresses = [\"10.0.2.1/24\"]\n{wire}{more}"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let at = |text: String| text.replace("memif:", &format!("memif:{}/", folder.path().display()));
    let first = at(config("", "[routes]\nfiles = [\"one.txt\"]\n"));
    let daemon = Instance::start(&at(config("", "")));
    fs::write(daemon.path("one.txt"), "10.6.0.0/16 via 10.0.1.3\n").unwrap();
    fs::write(daemon.path("two.txt"), "10.7.0.0/16 via 10.0.2.3\n").unwrap();
    fs::write(daemon.path("flows.csv"), flow_file(2400)).unwrap();
    daemon.write_config(&first);
    let done = daemon.request("POST", "/v1/reload", "{}");
    assert_eq!(done.status, 200, "{}", done.text());
    // The first is the file's too, with another egress MAC.
    let own: Vec<Value> = (0..OWN).map(|n| {
        json!({"source": "10.0.1.2", "destination": "10.9.9.9", "protocol": 17, "source_port": 1,
               "destination_port": 2 + n, "egress_port": "p1", "destination_mac": "02:00:00:00:00:99"})
    }).collect();
    assert_eq!(daemon.request("POST", "/v1/flows", &json!(own).to_string()).status, 200);
    let route = json!([{"prefix": "10.8.0.0/16", "kind": "blackhole"}]).to_string();
    assert_eq!(daemon.request("POST", "/v1/routes", &route).status, 200);
    let before = snapshot(&daemon);
    assert_eq!(before["flows"]["total"], OWN);

    // A port that is opened anew, one that is new, other addresses, routes, files; and flows that do not all fit.
    let more = "[[port]]\nname = \"p3\"\ndevice = \"memif:new.sock,role=server\"\n\
                addresses = [\"10.0.3.1/24\"]\n\
                [[route]]\nprefix = \"10.8.0.0/16\"\nvia = \"10.0.3.9\"\n\
                [routes]\nfiles = [\"two.txt\"]\n[flows]\nfiles = [\"flows.csv\"]\n";
    for wire in ["rx-descriptors = 512\n", ""] {
        let second = at(config(wire, more));
        daemon.write_config(&second.replace("10.0.1.1/24", "10.0.1.7/24"));
        let refused = daemon.request("POST", "/v1/reload", "{}");
        assert_eq!(refused.status, 409, "{}", refused.text());
        assert!(refused.text().contains("flows4"), "{}", refused.text());
        let after = snapshot(&daemon);
        for part in ["config", "ports", "interfaces", "routes", "flows"] {
            assert_eq!(after[part], before[part], "{part}");
        }
    }
    assert!(folder.path().join("wire.sock").exists());
    assert!(!folder.path().join("new.sock").exists(), "its device is closed");

    // What is left of it keeps nobody from trying again.
    fs::write(daemon.path("flows.csv"), flow_file(1500)).unwrap();
    let done = daemon.request("POST", "/v1/reload", "{}");
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(daemon.get("/v1/flows").json()["total"], 1500);
}

#[test]
fn neighbors_that_find_no_room_refuse_all_of_it() {
    let neighbor = |host: u8, mac: u8| {
        format!(
            "[[neighbor]]\ninterface = \"p1\"\naddress = \"10.0.1.{host}\"\n\
             mac = \"02:00:00:00:00:{mac:02x}\"\n"
        )
    };
    let config = |neighbors: &[String]| {
        format!(
            "{SMALL}neighbors = 2\n\
             [[port]]\nname = \"p1\"\ndevice = \"null,no-rx=1\"\naddresses = [\"10.0.1.1/24\"]\n{}",
            neighbors.concat()
        )
    };
    let daemon = Instance::start(&config(&[neighbor(7, 7), neighbor(8, 8)]));
    let macs = || {
        let all = daemon.get("/v1/neighbors").json();
        let mac = |one: &Value| one["mac"].as_str().unwrap_or_default().to_owned();
        let mut macs: Vec<String> = all.as_array().unwrap().iter().map(mac).collect();
        macs.sort();
        macs
    };
    let before = ["02:00:00:00:00:07", "02:00:00:00:00:08"];
    assert_eq!(macs(), before);
    // One is gone, one is different, and of two that are new one is too many.
    daemon.write_config(&config(&[neighbor(8, 9), neighbor(9, 1), neighbor(10, 2)]));
    let refused = daemon.request("POST", "/v1/reload", "{}");
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert!(refused.text().contains("neighbour 10.0.1.10"), "{}", refused.text());
    assert_eq!(macs(), before);
    daemon.write_config(&config(&[neighbor(8, 9), neighbor(9, 1)]));
    let done = daemon.request("POST", "/v1/reload", "{}");
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(macs(), ["02:00:00:00:00:01", "02:00:00:00:00:09"]);
}
