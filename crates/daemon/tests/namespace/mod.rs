//! A test in a network namespace of its own, which needs root, `unshare` and `ip`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use rustix::process::geteuid;

/// Says that the test runs in its namespace.
const INSIDE: &str = "MILLRACE_TEST_NAMESPACE";

/// Whether the test is to go on here; else it was run in a namespace of its own.
pub(crate) fn inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    if !geteuid().is_root() {
        eprintln!("skipped: only root makes network namespaces");
        return false;
    }
    let program = std::env::current_exe().unwrap();
    let status = Command::new("unshare")
        .arg("--net")
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{test}");
    false
}

pub(crate) fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}
