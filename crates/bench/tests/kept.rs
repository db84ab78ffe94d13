//! A run of `millrace-bench` without `--json` is kept, and `compare` and `report` find it.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn bench(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace-bench"));
    command.args(arguments).env("MILLRACE_BENCH_RESULTS", folder).output().unwrap()
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The file that the last line names.
fn measured(folder: &Path) -> PathBuf {
    let text = said(&bench(folder, &["dma", "--quick"]));
    PathBuf::from(text.lines().last().unwrap().strip_prefix("results: ").unwrap())
}

#[test]
fn two_runs_are_kept_compared_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let missing = bench(&results, &["compare"]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("no results are kept there"));
    let [first, second] = [measured(&results), measured(&results)];
    assert!(first != second && first.parent() == Some(results.as_path()), "{first:?}");
    let run: Value = serde_json::from_slice(&std::fs::read(&first).unwrap()).unwrap();
    assert_eq!(run["environment"]["command"], "dma --quick");
    assert!(!run["results"].as_array().unwrap().is_empty());
    let compared = said(&bench(&results, &["compare"]));
    for (side, path) in [("A", &first), ("B", &second)] {
        let origin = format!("{side}: {} (1 run; ", path.display());
        assert!(compared.contains(&origin), "{origin}: {compared}");
    }
    let page = folder.path().join("page.html");
    let reported = said(&bench(&results, &["report", "--output", page.to_str().unwrap()]));
    assert!(reported.contains("page.html: runs: 2, "), "{reported}");
}

#[test]
fn what_cannot_be_kept_was_measured_all_the_same() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = bench(&file.path().join("folder"), &["dma", "--quick"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace-bench"));
    for name in ["MILLRACE_BENCH_RESULTS", "XDG_STATE_HOME", "HOME"] {
        command.env_remove(name);
    }
    let nowhere = command.args(["dma", "--quick"]).output().unwrap();
    for (output, why) in [(below, file.path().to_str().unwrap()), (nowhere, "neither HOME nor")] {
        assert!(said(&output).contains("receive 64 B"));
        let warned = String::from_utf8_lossy(&output.stderr);
        assert!(warned.lines().count() == 1 && warned.contains(why), "{warned}");
    }
}
