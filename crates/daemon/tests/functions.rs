//! Packet functions from shared objects whose own code takes its time.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod instance;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use instance::{Instance, SMALL};

/// How long the shared object takes to be unloaded.
const SLOW: Duration = Duration::from_secs(4);

/// With it, there is a worker that gets an instance.
const PORT: &str = r#"
[[port]]
name = "one"
device = "null,no-rx=1"
"#;

const SOURCE: &str = r"
#include <millrace_function.h>
#include <unistd.h>

static int state;

static void *create(const char *argument, char *error, uint32_t room) { return &state; }

static void process(void *instance, struct millrace_function_packet *packets, uint32_t count) {}

static void destroy(void *instance) {}

__attribute__((destructor)) static void unload(void) { sleep(SLOW); }

static const struct millrace_function_table table = {
  MILLRACE_FUNCTION_VERSION, create, process, destroy,
};

const struct millrace_function_table *millrace_function(void) { return &table; }
";

fn compile(folder: &Path) {
    let source = folder.join("slow.c");
    fs::write(&source, SOURCE).unwrap();
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../function/include");
    let compiler = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wall", "-Werror", "-I", include])
        .arg(format!("-DSLOW={}", SLOW.as_secs()))
        .arg("-o")
        .args([folder.join("slow.so"), source])
        .output()
        .unwrap();
    assert!(compiler.status.success(), "{}", String::from_utf8_lossy(&compiler.stderr));
}

#[test]
fn one_that_is_slow_to_be_unloaded_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    compile(folder.path());
    let functions = format!("[functions]\nfolder = {:?}\n", folder.path());
    let daemon = Instance::start(&format!("{SMALL}{functions}{PORT}"));
    let added = daemon.request("POST", "/v1/functions", r#"{"file": "slow.so"}"#);
    assert_eq!(added.status, 200, "{}", added.text());
    let path = format!("/v1/functions/{}", added.json()["id"]);
    let begun = Instant::now();
    scope(|scope| {
        let removal = scope.spawn(|| daemon.request("DELETE", &path, ""));
        let mut slowest = Duration::ZERO;
        while !removal.is_finished() {
            let asked = Instant::now();
            assert_eq!(daemon.get("/v1/workers").status, 200);
            slowest = slowest.max(asked.elapsed());
            sleep(Duration::from_millis(20));
        }
        assert_eq!(removal.join().unwrap().status, 200);
        assert!(slowest < SLOW / 2, "{slowest:?}");
    });
    assert!(begun.elapsed() >= SLOW, "it was not unloaded");
}
