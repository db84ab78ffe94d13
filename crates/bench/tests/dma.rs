//! `millrace-bench dma` as a user runs it.

use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> std::io::Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace-bench"));
    command.arg("dma").args(arguments).output()
}

#[test]
fn shows_the_document_s_figures_and_what_was_counted() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("dma.json");
    let output = bench(&["--quick", "--json", json.to_str().unwrap()]).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for words in ["receive 64 B", "192.0           128.0  33.3 %", "generation 3 x8", "equal"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let results = report["results"].as_array().unwrap();
    let soft: Vec<_> = results.iter().filter(|one| one["name"] == "soft device").collect();
    assert_eq!(soft.len(), 4);
    for one in soft {
        assert_eq!((&one["value"], &one["ratio"]), (&one["yardstick_value"], &1.0.into()));
    }
}

#[test]
fn ends_quietly_when_nobody_reads_on() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("dma.json");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace-bench"));
    command.args(["dma", "--quick", "--json"]).arg(&json).stdout(writer);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    assert!(json.exists(), "what was measured is written all the same");
}

#[test]
fn refuses_what_no_link_has() {
    for wrong in [["--fetch", "3"], ["--sizes", "63"], ["--payload", "64"], ["--generations", "6"]]
    {
        assert!(!bench(&wrong).unwrap().status.success(), "{wrong:?}");
    }
}
