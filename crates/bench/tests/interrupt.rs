//! Ctrl-C: what was measured is kept, unless it comes twice.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A run that would take half an hour, and its output. When its first line is there, it measures.
fn start(folder: &Path, more: &[&str]) -> (Child, BufReader<ChildStdout>, BufReader<ChildStderr>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_millrace-bench"))
        .args(["session", "--rounds", "1000"])
        .args(more)
        .env("MILLRACE_BENCH_RESULTS", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let errors = BufReader::new(child.stderr.take().unwrap());
    line(&mut output);
    (child, output, errors)
}

fn line(from: &mut impl std::io::BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    line
}

fn interrupt(child: &Child) {
    let id = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, output, mut errors) = start(folder.path(), &[]);
    interrupt(&child);
    assert!(line(&mut errors).contains("again to end at once"));
    let said: Vec<String> = output.lines().map(Result::unwrap).collect();
    assert!(child.wait().unwrap().success(), "{said:?}");
    assert!(said.iter().any(|line| line.contains("session found by descriptor")), "{said:?}");
    let json = said.last().unwrap().strip_prefix("results: ").unwrap();
    assert!(Path::new(json).starts_with(folder.path()), "{json}");
    let report: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(report["environment"]["interrupted"], true);
    let results = report["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        let samples = result["samples"].as_array().unwrap().len();
        assert!((1..1000).contains(&samples), "{result}");
    }
}

#[test]
fn a_second_interrupt_ends_it_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("session.json");
    let ends_at_once = || {
        let (mut child, _output, mut errors) =
            start(folder.path(), &["--json", json.to_str().unwrap()]);
        interrupt(&child);
        line(&mut errors);
        interrupt(&child);
        let code = child.wait().unwrap().code();
        let is_written = std::fs::remove_file(&json).is_ok();
        assert!(code == Some(130) || code == Some(0) && is_written, "{code:?}");
        !is_written
    };
    // One that was about to end when the second came has written everything: then once more.
    assert!((0..10).any(|_| ends_at_once()));
}
