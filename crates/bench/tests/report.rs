//! `millrace-bench report` makes a page of what runs have written, or tables for a README.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

fn write(path: &Path, cpu: &str) {
    let result = |size: u64| {
        json!({"name": "one way", "unit": "packets/s", "value": size, "parameters": {"frame": size},
            "samples": [size, size + 1, size + 2]})
    };
    let results = [result(64), result(512), result(1518)];
    let run = json!({"environment": {"cpu": cpu, "command": "queue --quick"}, "results": results});
    std::fs::write(path, run.to_string()).unwrap();
}

fn report(folder: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace-bench"));
    command.arg("report").arg(folder).args(more).output().unwrap()
}

#[test]
fn a_folder_of_results_becomes_a_page_and_plots() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a.json"), "Xeon <8370>");
    write(&folder.path().join("b.json"), "EPYC");
    let [page, plots] = ["new/page.html", "plots"].map(|name| folder.path().join(name));
    let (page_name, plots_name) = (page.to_str().unwrap(), plots.to_str().unwrap());
    let before = folder.path().join("a.json");
    let more = ["--output", page_name, "--plots", plots_name, "--before", before.to_str().unwrap()];
    let output = report(folder.path(), &more);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("page.html: runs: 2, plots: 2"), "{said}");
    let html = std::fs::read_to_string(&page).unwrap();
    for part in
        ["Xeon &lt;8370&gt;", "EPYC", "millrace-bench queue", "one way by frame", "What changed"]
    {
        assert!(html.contains(part), "{part}");
    }
    let svg = std::fs::read_to_string(plots.join("queue-one-way-packets-s-frame.svg")).unwrap();
    assert!(html.contains(&svg));
    let changes = std::fs::read_to_string(plots.join("changes.svg")).unwrap();
    assert!(html.contains(&changes) && changes.contains("one way (frame 64)"), "{changes}");
}

#[test]
fn markdown_has_the_name_of_the_processor() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a.json"), "Xeon");
    let output = report(folder.path(), &["--markdown", "--only", "way"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("| what | Xeon | least to most |"), "{said}");
    assert!(said.contains("| one way (frame 64) | 65.00 packets/s | 64.00 to 66.00 |"), "{said}");
    assert!(!report(folder.path(), &["--markdown", "--output", "x"]).status.success());
}

#[test]
fn marked_tables_of_a_readme_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a.json"), "Xeon");
    let readme = folder.path().join("README.md");
    let marked = "<!-- millrace-bench queue: way -->\nold\n<!-- /millrace-bench -->\n";
    std::fs::write(&readme, marked).unwrap();
    let output = report(folder.path(), &["--readme", readme.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("table of queue: replaced"), "{said}");
    let text = std::fs::read_to_string(&readme).unwrap();
    assert!(text.contains("| one way (frame 64) | 65.00 packets/s |"), "{text}");
    assert!(!text.contains("old") && text.starts_with("<!-- millrace-bench queue: way -->\n"));
    std::fs::write(&readme, "no table").unwrap();
    let output = report(folder.path(), &["--readme", readme.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("README.md: no table is marked"), "{said}");
}
