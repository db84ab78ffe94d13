//! Reloads are all or nothing: against a model, in random sequences with ports that go and daemons that are killed.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod instance;
mod namespace;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Command;
use std::time::{Duration, Instant};

use instance::{Instance, PATIENCE, SMALL};
use namespace::{inside, ip};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseResult, TestRunner};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Names that a model's ports and routes are drawn from: few, so that they meet again.
const NAMES: u8 = 4;
/// A port whose device goes and comes back, and its interface.
const LOSER: &str = "loser";

/// A configuration, as far as the model knows it.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    /// Ports by name: MTU, third byte of the address, descriptors (another number opens the device anew).
    ports: BTreeMap<u8, (u16, u8, u16)>,
    /// Blackhole routes 10.N.0.0/16.
    routes: BTreeSet<u8>,
    /// Blackhole routes 172.16.N.0/24 of a file.
    file: BTreeSet<u8>,
    /// Whether there is a port whose device goes.
    loses: bool,
}

impl Model {
    fn text(&self, more: &str) -> String {
        let mut text = SMALL.to_owned();
        for (name, (mtu, net, descriptors)) in &self.ports {
            let _ = write!(
                text,
                "[[port]]\nname = \"p{name}\"\ndevice = \"null,no-rx=1\"\nmtu = {mtu}\n\
                 rx-descriptors = {descriptors}\naddresses = [\"192.168.{net}.{name}/32\"]\n"
            );
        }
        if self.loses {
            let _ = write!(text, "[[port]]\nname = \"{LOSER}\"\ndevice = \"afpacket:{LOSER}\"\n");
        }
        for route in &self.routes {
            let _ =
                write!(text, "[[route]]\nprefix = \"10.{route}.0.0/16\"\nkind = \"blackhole\"\n");
        }
        text + "[routes]\nfiles = [\"routes.txt\"]\n" + more
    }

    fn write(&self, daemon: &Instance, more: &str, lines: &str) {
        let file: String =
            self.file.iter().map(|n| format!("blackhole 172.16.{n}.0/24\n")).collect();
        fs::write(daemon.path("routes.txt"), file + lines).unwrap();
        daemon.write_config(&self.text(more));
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Another configuration, by the API or by SIGHUP.
    Reload(Model, bool),
    /// The same with something in it that is found out only while it is applied.
    Refused(Model, Fault),
    /// The client goes away while its reload goes on.
    Abandoned(Model),
    /// A port is set down, and maybe up again.
    Port(u8, bool),
    /// A port's device goes, or is there again.
    Device(bool),
    /// A route of the API.
    Route(u8),
    /// The daemon is killed and starts anew.
    Kill,
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// A device that is not there.
    Device,
    /// More routes in the file than the tables have room for: limits change at a start only.
    Full,
    /// A line that is no route.
    Line,
}

fn model(loses: bool) -> impl Strategy<Value = Model> {
    let port =
        (prop::sample::select(vec![1400, 1500]), 0..3_u8, prop::sample::select(vec![256, 512]));
    let set = || prop::collection::btree_set(0..NAMES, 0..4);
    (prop::collection::btree_map(0..NAMES, port, 1..4), set(), set())
        .prop_map(move |(ports, routes, file)| Model { ports, routes, file, loses })
}

fn step(loses: bool) -> impl Strategy<Value = Step> {
    let fault = prop::sample::select(vec![Fault::Device, Fault::Full, Fault::Line]);
    let model = || model(loses);
    prop_oneof![
        4 => (model(), any::<bool>()).prop_map(|(model, hup)| Step::Reload(model, hup)),
        4 => (model(), fault).prop_map(|(model, fault)| Step::Refused(model, fault)),
        1 => model().prop_map(Step::Abandoned),
        2 => (0..NAMES, any::<bool>()).prop_map(|(port, up)| Step::Port(port, up)),
        2 => (0..NAMES).prop_map(Step::Route),
        1 => Just(Step::Kill),
    ]
}

/// What the daemon says it has.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// By name: MTU, state, address.
    ports: BTreeMap<String, (u64, String, String)>,
    /// Static routes with their origin.
    routes: BTreeSet<String>,
}

fn seen(daemon: &Instance) -> Seen {
    let mut seen = Seen::default();
    let interfaces = daemon.get("/v1/interfaces").json();
    for port in daemon.get("/v1/ports").json().as_array().unwrap() {
        let name = port["name"].as_str().unwrap().to_owned();
        let is_it = |interface: &&Value| interface["name"] == port["name"];
        // A reload that goes on may have opened it since: what comes out is no model's, and is looked at again.
        let interface = interfaces.as_array().unwrap().iter().find(is_it);
        // That port has no addresses: without its device, it is no interface.
        let interface = interface.filter(|_| name != LOSER);
        let address = interface.and_then(|interface| interface["addresses"][0].as_str());
        let address = address.unwrap_or_default().to_owned();
        let state = port["state"].as_str().unwrap().to_owned();
        seen.ports.insert(name, (port["mtu"].as_u64().unwrap(), state, address));
    }
    for route in daemon.get("/v1/routes?family=4&limit=100000").json()["routes"].as_array().unwrap()
    {
        let origin = route["origin"].as_str().unwrap();
        if ["config", "file", "api"].contains(&origin) {
            seen.routes.insert(format!("{} {origin}", route["prefix"].as_str().unwrap()));
        }
    }
    seen
}

/// What it must say. `lost`: the device that goes has gone.
fn expected(model: &Model, (down, lost): (&BTreeSet<u8>, bool), api: &BTreeSet<u8>) -> Seen {
    let port = |(name, (mtu, net, _)): (&u8, &(u16, u8, u16))| {
        let state = if down.contains(name) { "admin-down" } else { "up" };
        let address = format!("192.168.{net}.{name}/32");
        (format!("p{name}"), (u64::from(*mtu), state.to_owned(), address))
    };
    let config = model.routes.iter().map(|n| format!("10.{n}.0.0/16 config"));
    let file = model.file.iter().map(|n| format!("172.16.{n}.0/24 file"));
    let api = api.iter().map(|n| format!("198.18.{n}.0/24 api"));
    let state = if lost { "gone" } else { "up" };
    let loser = (LOSER.to_owned(), (1500, state.to_owned(), String::new()));
    let loser = model.loses.then_some(loser);
    Seen {
        ports: model.ports.iter().map(port).chain(loser).collect(),
        routes: config.chain(file).chain(api).collect(),
    }
}

/// Waits until the daemon says what it must, for as long as anything may take.
fn must_become(daemon: &Instance, wanted: &Seen) -> TestCaseResult {
    let start = Instant::now();
    let mut now = seen(daemon);
    while now != *wanted && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
        now = seen(daemon);
    }
    prop_assert_eq!(&now, wanted, "log:\n{}", daemon.log());
    Ok(())
}

/// Makes the interface of the port whose device goes, both ends of a cable.
fn plug_in() {
    ip(&format!("link add {LOSER} type veth peer name far"));
    ip(&format!("link set {LOSER} up"));
    ip("link set far up");
}

fn reload(daemon: &Instance) -> u16 {
    daemon.request("POST", "/v1/reload", "{}").status
}

fn run(first: &Model, steps: Vec<Step>) -> TestCaseResult {
    let mut daemon = Instance::start(&SMALL.replace("routes4 = 5000", "routes4 = 64"));
    // The model's limits are those of the start.
    first.write(&daemon, "", "");
    prop_assert_eq!(reload(&daemon), 200);
    let (mut model, mut down, mut api) = (first.clone(), BTreeSet::new(), BTreeSet::new());
    let mut lost = false;
    for step in steps {
        match step {
            Step::Reload(next, hup) => {
                next.write(&daemon, "", "");
                if hup {
                    daemon.signal(Signal::HUP);
                } else {
                    prop_assert_eq!(reload(&daemon), 200, "{}", daemon.log());
                }
                down.retain(|port| stays_open(*port, &model, &next));
                model = next;
            }
            Step::Refused(next, fault) => {
                let full: String =
                    (0..200).map(|n| format!("blackhole 172.17.{n}.0/24\n")).collect();
                let (more, lines) = match fault {
                    Fault::Device => {
                        ("[[port]]\nname = \"x\"\ndevice = \"afpacket:no-such-if\"\n", "")
                    }
                    Fault::Full => ("", full.as_str()),
                    Fault::Line => ("", "no route\n"),
                };
                next.write(&daemon, more, lines);
                let status = reload(&daemon);
                prop_assert!(status == 409 || status == 422, "{}: {}", status, daemon.log());
                // The same is in force, and the file again what it was.
                let wanted = expected(&model, (&down, lost), &api);
                prop_assert_eq!(seen(&daemon), wanted, "{}", daemon.log());
                model.write(&daemon, "", "");
            }
            Step::Abandoned(next) => {
                next.write(&daemon, "", "");
                let mut stream = UnixStream::connect(daemon.socket()).unwrap();
                let head = "POST /v1/reload HTTP/1.1\r\nHost: m\r\nContent-Type: application/json\r\n\
                            Content-Length: 2\r\n\r\n{}";
                stream.write_all(head.as_bytes()).unwrap();
                // Long enough for the request to be read, not for an answer to be waited for.
                std::thread::sleep(Duration::from_millis(5));
                drop(stream);
                // One after the other: this one begins when that one is over, whether it was begun or not.
                prop_assert_eq!(reload(&daemon), 200, "{}", daemon.log());
                down.retain(|port| stays_open(*port, &model, &next));
                model = next;
            }
            Step::Port(port, up) => {
                if model.ports.contains_key(&port) {
                    let path = format!("/v1/ports/p{port}");
                    let body = json!({ "up": up }).to_string();
                    prop_assert_eq!(daemon.request("PATCH", &path, &body).status, 200);
                    if up {
                        down.remove(&port)
                    } else {
                        down.insert(port)
                    };
                }
            }
            Step::Route(route) => {
                let body = json!([{"prefix": format!("198.18.{route}.0/24"), "kind": "blackhole"}]);
                prop_assert_eq!(
                    daemon.request("POST", "/v1/routes", &body.to_string()).status,
                    200
                );
                api.insert(route);
            }
            Step::Device(there) if there == lost => {
                lost = !there;
                if there { plug_in() } else { ip(&format!("link delete {LOSER}")) }
            }
            Step::Device(_) => {}
            Step::Kill => {
                daemon.signal(Signal::KILL);
                daemon.wait();
                // A daemon does not start without one of its devices.
                if std::mem::take(&mut lost) {
                    plug_in();
                }
                let text = model.text("").replace("routes4 = 5000", "routes4 = 64");
                daemon = daemon.again(&text);
                daemon.write_config(&model.text(""));
                (down, api) = (BTreeSet::new(), BTreeSet::new());
            }
        }
        must_become(&daemon, &expected(&model, (&down, lost), &api))?;
    }
    daemon.signal(Signal::TERM);
    prop_assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    Ok(())
}

/// Whether a port keeps its device: one that is opened anew is up.
fn stays_open(port: u8, before: &Model, after: &Model) -> bool {
    let descriptors =
        |model: &Model| model.ports.get(&port).map(|(_, _, descriptors)| *descriptors);
    descriptors(after).is_some() && descriptors(before) == descriptors(after)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_leaves_what_the_model_has(
        first in model(false),
        steps in prop::collection::vec(step(false), 1..12),
    ) {
        run(&first, steps)?;
    }
}

#[test]
fn any_sequence_does_so_without_a_device_too() {
    if !inside("any_sequence_does_so_without_a_device_too") {
        return;
    }
    let step = prop_oneof![3 => step(true), 1 => any::<bool>().prop_map(Step::Device)];
    let sequence = (model(true), prop::collection::vec(step, 1..8));
    let config = ProptestConfig { cases: 4, max_shrink_iters: 10, ..ProptestConfig::default() };
    let checked = TestRunner::new(config).run(&sequence, |(first, mut steps)| {
        // An earlier case may have left it.
        let _ = Command::new("ip").args(["link", "delete", LOSER]).status();
        plug_in();
        steps.insert(0, Step::Device(false));
        run(&first, steps)
    });
    checked.unwrap();
}

/// The next state that the service manager is told.
fn told(manager: &UnixDatagram) -> String {
    let mut bytes = [0; 4096];
    loop {
        let length = manager.recv(&mut bytes).unwrap();
        let message = String::from_utf8_lossy(&bytes[..length]);
        let mut lines = message.lines();
        if let Some(state) =
            lines.find(|line| ["READY=1", "RELOADING=1", "STOPPING=1"].contains(line))
        {
            return state.to_owned();
        }
    }
}

#[test]
fn a_stop_waits_for_a_reload_that_has_begun() {
    let text = SMALL.replace("routes4 = 5000", "routes4 = 200000");
    // On a fast machine the smaller ones may be over before the signal is heard.
    let is_heard_meanwhile = |routes: u32| {
        let (mut daemon, manager) = Instance::start_notifying(&text);
        assert_eq!(told(&manager), "READY=1");
        let route = |n: u32| format!("blackhole 10.{}.{}.{}/32\n", n >> 16, n >> 8 & 255, n & 255);
        fs::write(daemon.path("routes.txt"), (0..routes).map(route).collect::<String>()).unwrap();
        daemon.write_config(&format!("{text}[routes]\nfiles = [\"routes.txt\"]\n"));
        daemon.signal(Signal::HUP);
        assert_eq!(told(&manager), "RELOADING=1");
        daemon.signal(Signal::TERM);
        assert_eq!(told(&manager), "READY=1", "{}", daemon.log());
        assert_eq!(told(&manager), "STOPPING=1", "{}", daemon.log());
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
        let log = daemon.log();
        let at = |line: &str| log.find(line).unwrap_or_else(|| panic!("no '{line}':\n{log}"));
        at("SIGTERM: stopping") < at("new configuration: ")
    };
    assert!([20_000, 60_000, 180_000].into_iter().any(is_heard_meanwhile));
}
