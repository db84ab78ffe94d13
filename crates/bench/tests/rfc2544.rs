//! `millrace-bench rfc2544` reports exactly what a device with known faults has done, and says so when it cannot measure.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// Slow enough for a busy machine: 4,222 frames/s of 128 bytes, of which a ring holds 242 ms.
const TRIALS: &str = "settle = 1.0\nline-rate = 0.005\nresolution = 0.5\nloss = 0.4";

/// Rings that hold almost four seconds of these, and a tester that may be a second late.
const PATIENT: &str = "\nrings = 16384";

/// One after the other: each has the last core to itself.
static ALONE: Mutex<()> = Mutex::new(());

fn bench(scenario: &str, more: &[&str]) -> (Output, Option<Value>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let (file, json) = (folder.path().join("scenario.toml"), folder.path().join("out.json"));
    std::fs::write(&file, scenario).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_millrace-bench"))
        .arg("rfc2544")
        .arg(&file)
        .args(["--no-huge", "--json"])
        .arg(&json)
        .args(more)
        .output()
        .unwrap();
    let report = std::fs::read(&json).ok();
    (output, report.map(|bytes| serde_json::from_slice(&bytes).unwrap()))
}

fn results(scenario: &str) -> Vec<Value> {
    let (output, report) = bench(scenario, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stdout));
    report.unwrap()["results"].as_array().unwrap().clone()
}

fn impaired(faults: &str, tests: &str) -> String {
    format!(
        "title = \"known faults\"\n[device]\nkind = \"impaired\"\nfaults = {{ {faults} }}\n[frames]\nsizes = [128]\n\
         [trials]\nseconds = 1.0\nlatency-seconds = 0.5\nlatency-trials = 1\ntests = [{tests}]\n{TRIALS}\n"
    )
}

/// The counts of the highest load.
fn counts(faults: &str) -> impl Fn(&str) -> u64 {
    let all = results(&impaired(faults, "\"frame-loss\""));
    let point = all.into_iter().find(|result| result["name"] == "frame loss rate").unwrap();
    let counts = point["observed"]["counts"].clone();
    move |name| counts[name].as_u64().unwrap()
}

#[test]
fn drops_are_counted_as_lost() {
    let counts = counts("drop = 100");
    // What the link to the device has refused never reached it. The device counts each way for itself.
    let reached = counts("offered") - counts("refused");
    assert!(reached > 5000);
    let dropped = counts("lost") - counts("refused");
    assert!(dropped.abs_diff(reached / 100) <= 2, "{dropped} of {reached}");
    assert_eq!(counts("delivered") + counts("lost"), counts("offered"));
    for name in ["corrupted", "duplicated", "reordered", "untraceable", "stray", "foreign"] {
        assert_eq!(counts(name), 0, "{name}");
    }
}

#[test]
fn copies_damage_and_disorder_are_told_apart() {
    let counts = counts("duplicate = 50, reorder = 70, corrupt = 110");
    let reached = counts("offered") - counts("refused");
    let near = |name: &str, expected: u64, tolerated: u64| {
        assert!(
            counts(name).abs_diff(expected) <= tolerated,
            "{name}: {} {expected}",
            counts(name)
        );
    };
    assert_eq!(counts("lost"), counts("refused"));
    // A damaged frame's copy is damaged too, and counts as such: every 550th frame is both.
    near("corrupted", reached / 110 + reached / 550, 4);
    near("duplicated", reached / 50 - reached / 550, 6);
    // Of a frame that is late and comes twice the copy is in time; one that is late and damaged has no order.
    near("reordered", reached / 70 - reached / 350 - reached / 770, 6);
    assert_eq!(counts("reordering_extent"), 1);
}

#[test]
fn a_delay_is_measured() {
    let all = results(&impaired("delay = 20000", "\"throughput\", \"latency\""));
    let value = |name: &str| {
        let found = all.iter().find(|result| result["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}"))["value"].as_f64().unwrap()
    };
    assert!(value("throughput") > 0.0);
    let least = value("latency least");
    // The histogram has three digits.
    assert!((19.9e6..60e6).contains(&least), "{least}");
    assert!(value("latency p50") >= least && value("latency most") >= value("latency p99"));
}

/// The throughput of a device with known faults, and whether all of its frames came back: frames/s.
fn throughput(faults: &str, more: &str) -> (f64, Value) {
    let scenario = impaired(faults, "\"throughput\"").replace("\nloss = 0.4", more);
    let all = results(&scenario);
    let found = all.into_iter().find(|result| result["name"] == "throughput").unwrap();
    (found["value"].as_f64().unwrap(), found["observed"].clone())
}

#[test]
fn a_search_goes_down_until_nothing_is_lost() {
    // 4,222 and 2,111 frames, all loads of the grid, always meet one that is dropped; of two trials of 527 frames, one meets none.
    let (rate, observed) = throughput("drop = 1900", &format!("{PATIENT}\nrepeats = 1"));
    assert!((500.0..1100.0).contains(&rate), "{rate} {observed}");
    assert_eq!(observed["counts"]["lost"], 0, "{observed}");
    assert!(observed["tried"].as_array().unwrap().len() > 3, "{observed}");
    // Where every load loses frames there is none.
    assert_eq!(throughput("drop = 100", PATIENT).0, 0.0);
}

#[test]
fn a_loss_that_does_not_come_back_is_no_limit() {
    // The first two trials lose frames, and the second may be the repetition of a disturbed one.
    let (rate, observed) = throughput("lapse = 2000", &format!("{PATIENT}\nrepeats = 2"));
    assert!((4000.0..4300.0).contains(&rate), "{rate} {observed}");
    let tried = observed["tried"].as_array().unwrap();
    assert!(tried[0]["missing"].as_u64() > Some(2000) && tried[0]["rate"] == tried[1]["rate"]);
}

#[test]
fn large_rings_bear_a_pause() {
    let first = |more: &str| throughput("pause = 1000", more).1["tried"][0].clone();
    let small = first("");
    assert!(small["missing"].as_u64() > Some(500), "{small}");
    let large = first(PATIENT);
    assert_eq!(large["missing"], 0, "{large}");
}

#[test]
fn a_daemon_between_the_ports_forwards_everything() {
    let daemon = Path::new(env!("CARGO_BIN_EXE_millrace-bench")).with_file_name("millraced");
    if !daemon.exists() {
        // A test of the whole workspace builds it.
        eprintln!("skipped: no {}", daemon.display());
        return;
    }
    let scenario = format!(
        "title = \"millraced\"\ndevice = {{ kind = \"millraced\" }}\nframes = {{ sizes = [64, \"imix\"] }}\n\
         flows = {{ count = 1000, order = \"scattered\" }}\n[trials]\nseconds = 0.5\ntests = [\"throughput\", \"back-to-back\"]\n\
         burst-seconds = 0.01\nburst-searches = 2\n{TRIALS}\n"
    );
    let all = results(&scenario);
    let named = |name: &str| all.iter().filter(|result| result["name"] == name).collect::<Vec<_>>();
    assert_eq!(named("throughput").len(), 2);
    for found in named("throughput") {
        let counts = &found["observed"]["counts"];
        assert!(counts["delivered"].as_u64() > Some(0), "{counts}");
        assert_eq!((&counts["corrupted"], &counts["foreign"]), (&Value::from(0), &Value::from(0)));
    }
    assert_eq!(named("back-to-back frames").len(), 2);
}

#[test]
fn what_cannot_be_measured_is_refused_with_a_reason() {
    let wrong = "title = \"x\"\ndevice = { kind = \"none\" }\nframes = { sizes = [60] }\n";
    let (output, report) = bench(wrong, &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && report.is_none());
    assert!(said.contains("scenario.toml") && said.contains("use 64 or more"), "{said}");
    let gone = "title = \"x\"\ndevice = { kind = \"external\", ports = [\"null\", \"modem:1\"], \
                macs = [\"02:00:00:00:00:01\", \"02:00:00:00:00:02\"] }\n";
    let (output, _) = bench(gone, &[]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("modem"), "{output:?}");
}

#[test]
fn a_check_says_what_would_be_measured() {
    let (output, _) = bench("title = \"only me\"\ndevice = { kind = \"none\" }\n", &["--check"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("only me") && said.contains("1518"), "{said}");
    assert!(said.contains("takes up to 8.2 h"), "{said}");
    // What a run would refuse, a check does as well.
    let daemon = "title = \"x\"\ndevice = { kind = \"millraced\" }\n";
    let nowhere = ["--programs", "/nowhere", "--check"];
    let ((check, _), (run, _)) = (bench(daemon, &nowhere), bench(daemon, &nowhere[..2]));
    let said = String::from_utf8_lossy(&check.stderr);
    assert!(!check.status.success() && said.contains("there is no /nowhere/millraced"), "{said}");
    assert_eq!(check.stderr, run.stderr);
    let nowhere = "title = \"x\"\ndevice = { kind = \"millraced\", cores = [5000] }\n";
    let (output, _) = bench(nowhere, &["--check"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("core 5000") && said.contains("use one of 0"),
        "{said}"
    );
}
