//! `millrace doctor` on machines that are trees of files.

#[cfg(test)]
mod daemon;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use daemon::{Daemon, Done, done};

/// A server of one socket: four cores of two threads, a card; each file with what it holds.
const SERVER: &[(&str, &str)] = &[
    (
        "proc/cpuinfo",
        "vendor_id : GenuineIntel\nmodel name : Xeon\nflags : fpu constant_tsc nonstop_tsc",
    ),
    ("proc/cmdline", "quiet"),
    ("proc/sys/kernel/osrelease", "6.1.0"),
    ("sys/devices/system/cpu/online", "0-7"),
    ("sys/devices/system/cpu/isolated", ""),
    ("sys/devices/system/node/node0/cpulist", "0-7"),
    ("sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "512"),
    ("sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", "512"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never"),
    ("sys/kernel/mm/ksm/run", "1"),
    ("sys/bus/pci/devices/0000:18:00.0/class", "0x020000"),
    ("sys/bus/pci/devices/0000:18:00.0/numa_node", "0"),
    ("sys/bus/pci/devices/0000:18:00.0/net/east/speed", "20000"),
    ("sys/class/net/east/speed", "20000"),
];

#[cfg(test)]
fn server() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let place = folder.path().join("root").join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, format!("{text}\n")).unwrap();
    };
    SERVER.iter().for_each(|(path, text)| put(path, text));
    for core in 0..8 {
        let path = format!("sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
        put(&path, &format!("{},{}", core % 4, core % 4 + 4));
    }
    folder
}

#[cfg(test)]
fn millrace(folder: &Path, words: &[&str]) -> Done {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
    command.args(["--socket", "none.sock", "doctor", "--root", "root"]).args(words);
    done(command.current_dir(folder).stdin(Stdio::null()).output().unwrap())
}

#[cfg(test)]
fn json(done: &Done) -> serde_json::Value {
    serde_json::from_str(&done.output).unwrap()
}

#[test]
fn findings_say_what_why_and_how() {
    let folder = server();
    let shown = millrace(folder.path(), &[]);
    assert_eq!(shown.status, 3, "{}", shown.errors);
    let text = &shown.output;
    assert!(
        text.starts_with("Machine     Xeon, 8 cores, 1 NUMA node, bare metal, Linux 6.1.0\n"),
        "{text}"
    );
    let ksm = "  KSM: could be better\n    is      runs\n    better  stopped\n    why     Kernel same-page";
    assert!(text.contains(ksm), "{text}");
    assert!(text.contains("    run: echo 0 > /sys/kernel/mm/ksm/run\n"), "{text}");
    assert!(text.contains("\nAll of them on the kernel's command line:\n  isolcpus="), "{text}");
    assert!(
        text.lines().all(|line| line.len() <= 80 || !line.starts_with("            ")),
        "{text}"
    );
    // What is good is said in short, unless asked.
    let reason = "Services that move interrupts";
    assert!(!text.contains(reason) && text.contains("service, all: good"), "{text}");
    assert!(millrace(folder.path(), &["--verbose"]).output.contains(reason));
}

#[test]
fn json_has_everything() {
    let folder = server();
    let report = json(&millrace(folder.path(), &["--json"]));
    assert_eq!(report["machine"]["cores"], 8);
    assert_eq!(report["setup"]["workers"], serde_json::json!([1, 2, 3, 4, 5, 6, 7]));
    let findings = report["findings"].as_array().unwrap();
    let ksm = findings.iter().find(|finding| finding["name"] == "KSM").unwrap();
    assert_eq!(ksm["state"], "could-be-better");
    assert_eq!(ksm["remedies"][0]["kind"], "command");
    assert_eq!(ksm["changes"][0]["path"], "/sys/kernel/mm/ksm/run");
    let siblings = findings.iter().find(|finding| finding["name"] == "SMT siblings").unwrap();
    assert_eq!(siblings["state"], "bad");
}

/// The names in an object, in order.
#[cfg(test)]
fn keys(value: &serde_json::Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn json_has_the_names_that_scripts_rely_on() {
    let folder = server();
    let report = json(&millrace(folder.path(), &["--json"]));
    assert_eq!(keys(&report), ["findings", "kernel_parameters", "machine", "setup"]);
    assert_eq!(keys(&report["machine"]), ["cores", "kernel", "nodes", "processor", "virtual"]);
    let setup = ["buffer_size", "buffers", "busy", "hugepages", "origin", "ports", "workers"];
    assert_eq!(keys(&report["setup"]), setup);
    let findings = report["findings"].as_array().unwrap();
    let ksm = findings.iter().find(|finding| finding["name"] == "KSM").unwrap();
    let finding =
        ["better", "changes", "group", "is", "name", "remedies", "source", "state", "why"];
    assert_eq!(keys(ksm), finding);
    assert_eq!(keys(&ksm["remedies"][0]), ["kind", "text"]);
    assert_eq!(keys(&ksm["changes"][0]), ["before", "kind", "path", "value"]);
    let states = ["good", "could-be-better", "bad", "choice", "cannot-be-told", "does-not-apply"];
    assert!(findings.iter().all(|finding| states.contains(&finding["state"].as_str().unwrap())));
    let plan = json(&millrace(folder.path(), &["--json", "plan"]));
    assert_eq!(keys(&plan), ["notes", "ports", "workers"]);
    assert_eq!(keys(&plan["workers"][0]), ["core", "node", "why"]);
    let port = ["device", "port", "queues", "software_rss", "why"];
    assert_eq!(keys(&plan["ports"][0]), port);
    let made = json(&millrace(folder.path(), &["--json", "--apply", "--yes"]));
    assert_eq!(keys(&made), ["changes", "undo_script"]);
    assert_eq!(keys(&made["changes"][0]), ["before", "command", "kind", "path", "value"]);
}

#[test]
fn a_configuration_says_what_is_judged() {
    let folder = server();
    let text = "[workers]\ncores = [2, 3]\n[[port]]\nname = \"east\"\ndevice = \"pci:0000:18:00.0\"\nrx-descriptors = 256\n";
    fs::write(folder.path().join("m.toml"), text).unwrap();
    let report = json(&millrace(folder.path(), &["--json", "--config", "m.toml"]));
    assert_eq!(report["setup"]["workers"], serde_json::json!([2, 3]));
    let findings = report["findings"].as_array().unwrap();
    let rings = findings.iter().find(|finding| finding["name"] == "ring sizes").unwrap();
    assert_eq!(
        (&rings["state"], &rings["subject"]),
        (&"could-be-better".into(), &"port east".into())
    );
    fs::write(folder.path().join("m.toml"), "[workers]\ncores = [99]\n").unwrap();
    let refused = millrace(folder.path(), &["--config", "m.toml"]);
    assert_eq!(refused.status, 1);
    assert!(refused.errors.contains("workers.cores"), "{}", refused.errors);
}

#[test]
fn a_running_daemon_says_what_is_judged() {
    let config = r#"{"workers":{"cores":[0],"poll":"busy"},"forwarding":{"ecmp-seed":null},"port":[{"name":"left","device":"null","rx-descriptors":512}]}"#;
    let version = r#"{"version":"0.1.0","api":1,"dpdk":"DPDK","pid":1}"#;
    let answers = [
        ("GET /v1/config", 200, config),
        ("GET /v1/version", 200, version),
        ("GET /v1/ports", 200, "[]"),
    ];
    let daemon = Daemon::new(&answers);
    let report = json(&daemon.run(&["--json", "doctor"]));
    assert_eq!(daemon.asked().len(), answers.len());
    assert_eq!(report["setup"]["origin"], "the running daemon");
    assert_eq!(report["setup"]["workers"], serde_json::json!([0]));
    assert_eq!(report["setup"]["process"], 1);
    assert_eq!(report["setup"]["busy"], true);
}

#[test]
fn without_a_terminal_nothing_is_changed() {
    let folder = server();
    let shown = millrace(folder.path(), &["--apply"]);
    assert_eq!(shown.status, 1);
    assert!(shown.output.contains("  echo 0 > /sys/kernel/mm/ksm/run\n"), "{}", shown.output);
    assert!(shown.errors.contains("say --yes"), "{}", shown.errors);
    assert!(!folder.path().join("millrace-undo.sh").exists());
    let ksm = folder.path().join("root/sys/kernel/mm/ksm/run");
    assert_eq!(fs::read_to_string(ksm).unwrap(), "1\n");
}

#[test]
fn changes_are_made_and_undone() {
    let folder = server();
    // A service of that machine, which is not stopped here.
    let process = folder.path().join("root/proc/900");
    fs::create_dir_all(&process).unwrap();
    fs::write(process.join("comm"), "irqbalance\n").unwrap();
    fs::write(process.join("cgroup"), "0::/system.slice/irqbalance.service\n").unwrap();
    assert!(
        millrace(folder.path(), &[])
            .output
            .contains("service, irqbalance.service: could be better")
    );
    let ksm = folder.path().join("root/sys/kernel/mm/ksm/run");
    let shown = millrace(folder.path(), &["--apply", "--yes"]);
    assert_eq!(shown.status, 0, "{}{}", shown.output, shown.errors);
    assert!(
        shown.output.ends_with("2 of 2 changed\nundo with: sh millrace-undo.sh\n"),
        "{}",
        shown.output
    );
    assert_eq!(fs::read_to_string(&ksm).unwrap(), "0\n");
    assert!(millrace(folder.path(), &["--apply", "--yes"]).output.contains("nothing to change"));
    for _ in ["undone", "and again"] {
        let undo =
            Command::new("sh").arg("millrace-undo.sh").current_dir(folder.path()).status().unwrap();
        assert!(undo.success());
        assert_eq!(fs::read_to_string(&ksm).unwrap(), "1\n");
    }
    // The script is there still: it is not overwritten, and nothing is changed.
    let again = millrace(folder.path(), &["--apply", "--yes"]);
    assert_eq!(again.status, 1);
    assert!(again.errors.contains("--undo-script"), "{}", again.errors);
    assert_eq!(fs::read_to_string(&ksm).unwrap(), "1\n");
    // The kernel would show its choices in brackets again.
    let transparent = folder.path().join("root/sys/kernel/mm/transparent_hugepage/enabled");
    assert_eq!(fs::read_to_string(&transparent).unwrap(), "always\n");
    fs::write(&transparent, "[always] madvise never\n").unwrap();
    let named =
        millrace(folder.path(), &["--json", "--apply", "--yes", "--undo-script", "other.sh"]);
    assert_eq!(named.status, 0, "{}", named.errors);
    assert_eq!(json(&named)["undo_script"], "other.sh");
    assert_eq!(json(&named)["changes"].as_array().unwrap().len(), 2);
}

#[test]
fn what_fails_is_said_and_the_rest_is_done() {
    let folder = server();
    let ksm = folder.path().join("root/sys/kernel/mm/ksm/run");
    // The last component may not be a link.
    fs::rename(&ksm, folder.path().join("moved")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("moved"), &ksm).unwrap();
    let shown = millrace(folder.path(), &["--apply", "--yes"]);
    assert_eq!(shown.status, 1);
    assert!(
        shown.output.contains("not changed: echo 0 > /sys/kernel/mm/ksm/run: "),
        "{}",
        shown.output
    );
    assert!(shown.output.contains("1 of 2 changed\n"), "{}", shown.output);
    let moved = folder.path().join("moved");
    assert_eq!(fs::read_to_string(&moved).unwrap(), "1\n");
    // What was not changed is not undone: meanwhile it is what somebody else has set.
    fs::write(&moved, "2\n").unwrap();
    let undo =
        Command::new("sh").arg("millrace-undo.sh").current_dir(folder.path()).status().unwrap();
    assert!(undo.success());
    assert_eq!(fs::read_to_string(&moved).unwrap(), "2\n");
    let transparent = folder.path().join("root/sys/kernel/mm/transparent_hugepage/enabled");
    assert_eq!(fs::read_to_string(transparent).unwrap(), "always\n");
    assert!(!folder.path().join("millrace-undo.sh.new").exists());
}

#[test]
fn a_plan_is_a_configuration() {
    let folder = server();
    let shown = millrace(folder.path(), &["plan"]);
    assert_eq!(shown.status, 0, "{}", shown.errors);
    assert!(shown.output.contains("[workers]\n# core 1: a physical core of its own; not isolated yet; leave its sibling 5 idle\n"), "{}", shown.output);
    assert!(
        shown.output.contains("queues = [{ queue = 0, core = 1 }, { queue = 1, core = 2 }]\n"),
        "{}",
        shown.output
    );
    let file = Path::new("plan.toml");
    let config =
        control::Config::parse_for(&shown.output, file, &[0, 1, 2, 3, 4, 5, 6, 7]).unwrap();
    assert_eq!(config.workers.cores, [1, 2]);
    assert_eq!(config.ports[0].device.as_str(), "pci:0000:18:00.0");
    let report = json(&millrace(folder.path(), &["--json", "plan", "--workers", "3"]));
    assert_eq!(report["ports"][0]["queues"], serde_json::json!([1, 2, 3]));
    assert_eq!(millrace(folder.path(), &["--apply", "plan"]).status, 2);
}
