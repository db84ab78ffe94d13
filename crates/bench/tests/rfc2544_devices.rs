//! `millrace-bench rfc2544` on devices of every kind that this machine can make: what it needs of them, and what it says when one
//! goes away.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use control::client::Client;
use serde_json::Value;

/// Slow enough for a busy machine.
const TRIALS: &str =
    "[trials]\nseconds = 0.5\nsettle = 1.0\nline-rate = 0.005\nresolution = 0.5\nloss = 0.4\n";
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// One after the other: each has the last core to itself.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The daemon; a test of the whole workspace builds it.
fn daemon() -> Option<PathBuf> {
    let daemon = Path::new(env!("CARGO_BIN_EXE_millrace-bench")).with_file_name("millraced");
    let there = daemon.exists();
    if !there {
        eprintln!("skipped: no {}", daemon.display());
    }
    there.then_some(daemon)
}

fn bench(folder: &Path, scenario: &str) -> Command {
    let file = folder.join("scenario.toml");
    std::fs::write(&file, scenario).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace-bench"));
    command.arg("rfc2544").arg(&file).args(["--no-huge", "--json"]).arg(folder.join("out.json"));
    command
}

fn report(folder: &Path) -> Option<Value> {
    let bytes = std::fs::read(folder.join("out.json")).ok()?;
    Some(serde_json::from_slice(&bytes).unwrap())
}

fn said(output: &Output) -> String {
    let texts = [&output.stderr, &output.stdout].map(|text| String::from_utf8_lossy(text));
    format!("{}: {}", output.status, texts.join("\n"))
}

/// All results of a scenario that can be measured.
fn results(scenario: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let output = bench(folder.path(), scenario).output().unwrap();
    assert!(output.status.success(), "{scenario}\n{}", said(&output));
    report(folder.path()).unwrap()["results"].as_array().unwrap().clone()
}

fn named<'a>(all: &'a [Value], name: &str) -> Vec<&'a Value> {
    all.iter().filter(|result| result["name"] == name).collect()
}

/// Everything that the device can do is measured, and frames come back as they were.
fn passes(device: &str, frames: &str) -> Vec<Value> {
    let all = results(&format!(
        "title = \"x\"\n{device}\nframes = {{ {frames} }}\nflows = {{ count = 100, order = \"scattered\" }}\n{TRIALS}\
         tests = [\"throughput\", \"latency\"]\nlatency-seconds = 0.5\nlatency-trials = 2\nsearches = 2\n"
    ));
    for found in named(&all, "throughput") {
        let counts = &found["observed"]["counts"];
        let is = |name: &str| counts[name].as_u64().unwrap();
        assert!(is("delivered") > 0 && found["value"].as_f64() > Some(0.0), "{device}: {found}");
        assert_eq!(
            (is("corrupted"), is("duplicated"), is("reordered")),
            (0, 0, 0),
            "{device}: {counts}"
        );
        assert_eq!(found["samples"].as_array().map(Vec::len), Some(2));
    }
    assert!(!named(&all, "throughput").is_empty());
    let variation = named(&all, "inter packet delay variation, median");
    assert_eq!(variation[0]["samples"].as_array().map(Vec::len), Some(2), "{variation:?}");
    all
}

#[test]
fn a_daemon_changes_routes_behind_an_access_list_with_several_next_hops() {
    let _alone = alone();
    if daemon().is_none() {
        return;
    }
    let device =
        "[device]\nkind = \"millraced\"\nroutes = 4\nnext-hops = 3\nacl = 100\nupdates = 500\n";
    let all = results(&format!(
        "title = \"x\"\nframes = {{ sizes = [128], ipv6-share = 0.5 }}\nflows = {{ count = 100 }}\n{device}{TRIALS}tests = [\"throughput\"]\n"
    ));
    let [found] = named(&all, "throughput")[..] else { panic!("{all:?}") };
    assert!(found["observed"]["counts"]["delivered"].as_u64() > Some(0), "{found}");
    assert_eq!(found["observed"]["counts"]["reordered"], 0);
    assert!(found["observed"]["route_changes"].as_f64() > Some(0.0), "{found}");
}

#[test]
fn long_frames_and_both_versions_pass() {
    let _alone = alone();
    if daemon().is_none() {
        return;
    }
    let device = "device = { kind = \"millraced\" }";
    let all = passes(device, "sizes = [1519, 9216], ipv6-share = 0.3, tcp = true");
    assert_eq!(named(&all, "throughput").len(), 2);
    passes("device = { kind = \"none\" }", "sizes = [9216], vlan = 7, ipv6 = true");
}

#[test]
fn containers_and_guests_are_reached() {
    let _alone = alone();
    if daemon().is_none() {
        return;
    }
    passes("device = { kind = \"millraced\", attach = \"vhost-user\" }", "sizes = [128]");
    let mut testpmd = Command::new("dpdk-testpmd");
    if testpmd.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        eprintln!("skipped: no dpdk-testpmd");
        return;
    }
    passes("device = { kind = \"millraced\", forwarding = \"guest\" }", "sizes = [128]");
}

/// A daemon that somebody else has configured: without neighbours, or a bridge.
struct Router {
    child: Child,
    api: PathBuf,
}

impl Router {
    fn start(daemon: &Path, folder: &Path) -> Self {
        let port = |name: &str, addresses: [&str; 2]| {
            let socket = folder.join(name);
            format!(
                "[[port]]\nname = \"{name}\"\ndevice = \"memif:{},role=server\"\naddresses = {addresses:?}\n",
                socket.display()
            )
        };
        let route = |prefix: &str, via: &str| {
            format!("[[route]]\nprefix = \"{prefix}\"\nvia = \"{via}\"\n")
        };
        let text = [
            port("one", ["192.0.2.1/25", "2001:db8:1::1/64"]),
            port("other", ["192.0.2.129/25", "2001:db8:2::1/64"]),
            route("198.19.0.0/16", "192.0.2.130"),
            route("198.18.0.0/16", "192.0.2.2"),
            route("2001:2:0:8000::/64", "2001:db8:2::2"),
            route("2001:2::/64", "2001:db8:1::2"),
        ];
        Self::of(daemon, folder, &text.concat())
    }

    fn bridge(daemon: &Path, folder: &Path) -> Self {
        let port = |name: &str| {
            let socket = folder.join(name);
            format!(
                "[[port]]\nname = \"{name}\"\ndevice = \"memif:{},role=server\"\n",
                socket.display()
            )
        };
        let bridge = "[[bridge]]\nname = \"switch\"\nmembers = [\"one\", \"other\"]\n";
        Self::of(daemon, folder, &[port("one"), port("other"), bridge.to_owned()].concat())
    }

    fn of(daemon: &Path, folder: &Path, text: &str) -> Self {
        let (config, api) = (folder.join("router.toml"), folder.join("api"));
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(daemon);
        command.arg("--config").arg(config).arg("--socket").arg(&api);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begin = Instant::now();
        while !["api", "one", "other"].iter().all(|name| folder.join(name).exists()) {
            assert!(begin.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, api }
    }

    /// As a scenario has it.
    fn device(folder: &Path) -> String {
        let port = |name| format!("memif:{},role=client", folder.join(name).display());
        let ports = ["one", "other"].map(port);
        format!("device = {{ kind = \"external\", ports = {ports:?} }}")
    }

    /// What its API says.
    fn told(&self, path: &str) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let asked = Client::new(&self.api);
        let told: Value = runtime.block_on(asked.get(path)).unwrap();
        told.to_string()
    }

    /// Packets that its ports have received.
    fn received(&self) -> u64 {
        let text = self.told("/v1/ports");
        let mut words = text.split("\"rx_packets\":").skip(1);
        let number = |word: &str| {
            let digits: String = word.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u64>().unwrap()
        };
        words.by_ref().map(number).sum()
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_device_finds_the_tester_and_the_tester_the_device() {
    let _alone = alone();
    let Some(daemon) = daemon() else { return };
    let folder = tempfile::tempdir().unwrap();
    let _router = Router::start(&daemon, folder.path());
    passes(&Router::device(folder.path()), "sizes = [128], ipv6-share = 0.5");
}

#[test]
fn a_bridge_learns_where_frames_of_one_way_belong() {
    let _alone = alone();
    let Some(daemon) = daemon() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bridge = Router::bridge(&daemon, folder.path());
    let device = Router::device(folder.path())
        .replace(" }", ", macs = [\"02:00:00:00:02:02\", \"02:00:00:00:02:01\"] }");
    let trials = TRIALS.replace("seconds = 0.5", "seconds = 3600.0\nboth-ways = false");
    let scenario = format!(
        "title = \"x\"\n{device}\nframes = {{ sizes = [128] }}\n{trials}tests = [\"throughput\"]\n"
    );
    let mut command = bench(folder.path(), &scenario);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while bridge.received() < 1000 {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(50));
    }
    let told = bridge.told("/v1/bridges");
    child.kill().unwrap();
    child.wait().unwrap();
    for tester in ["02:00:00:00:02:01", "02:00:00:00:02:02"] {
        assert!(told.contains(tester), "{tester}: {told}");
    }
}

#[test]
fn a_device_that_goes_away_ends_the_trial_with_what_was_measured() {
    let _alone = alone();
    let Some(daemon) = daemon() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut router = Router::start(&daemon, folder.path());
    let device = Router::device(folder.path());
    let trials = TRIALS.replace("seconds = 0.5", "seconds = 3600.0");
    let scenario = format!(
        "title = \"x\"\n{device}\nframes = {{ sizes = [128] }}\n{trials}tests = [\"throughput\"]\n"
    );
    let mut command = bench(folder.path(), &scenario);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while router.received() < 1000 {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(50));
    }
    router.child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = said(&output);
    assert!(begin.elapsed() < PATIENCE && !output.status.success(), "{said}");
    assert!(said.contains("went down") && said.contains("came back"), "{said}");
    let report = report(folder.path()).unwrap();
    assert!(!named(report["results"].as_array().unwrap(), "tester alone").is_empty());
}

#[test]
fn trials_before_a_device_goes_away_are_kept() {
    let _alone = alone();
    let Some(daemon) = daemon() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut router = Router::start(&daemon, folder.path());
    let device = Router::device(folder.path());
    let scenario = format!(
        "title = \"x\"\n{device}\nframes = {{ sizes = [128] }}\n{TRIALS}tests = [\"throughput\", \"latency\"]\n\
         latency-seconds = 0.5\nlatency-trials = 1000\n"
    );
    let mut command = bench(folder.path(), &scenario);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    // A trial has some 4,000 frames of both ways: many more than the search takes.
    while router.received() < 60_000 {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(50));
    }
    router.child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = said(&output);
    assert!(!output.status.success() && said.contains("went down"), "{said}");
    let report = report(folder.path()).unwrap();
    let results = report["results"].as_array().unwrap();
    assert_eq!(named(results, "throughput")[0]["observed"]["cut_short"], false);
    let trials = named(results, "latency p50")[0]["samples"].as_array().unwrap().len();
    assert!((1..1000).contains(&trials), "{trials}");
}
