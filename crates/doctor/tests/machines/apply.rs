//! Changes, and the script that undoes them.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};
use std::thread::yield_now;
use std::time::{Duration, Instant};

use millrace_doctor::apply::{ApplyError, apply, replace_script, undo_script, write_script};
use millrace_doctor::{Change, checks};

use crate::fixture::{Tree, setup, untuned};

/// Every change that an untuned server is offered, without services.
fn writes(tree: &Tree) -> Vec<Change> {
    let machine = tree.machine();
    let findings = checks::all(&machine, &setup(&machine, "1-3"));
    let changes = findings.into_iter().flat_map(|finding| finding.changes);
    changes.filter(|change| matches!(change, Change::Write { .. })).collect()
}

/// Runs a script that was just written: a child that another test starts may have it open for writing still, until it runs its program.
fn run(script: &Path) -> Output {
    let begun = Instant::now();
    loop {
        match Command::new(script).output() {
            Err(error)
                if error.kind() == ErrorKind::ExecutableFileBusy
                    && begun.elapsed() < Duration::from_secs(20) =>
            {
                yield_now();
            }
            output => return output.unwrap(),
        }
    }
}

#[test]
fn the_script_brings_everything_back() {
    let tree = untuned();
    let changes = writes(&tree);
    assert!(changes.len() > 10, "{changes:?}");
    let places = |change: &Change| match change {
        Change::Write { path, value, before } => {
            (path.trim_start_matches('/').to_owned(), value.clone(), before.clone())
        }
        Change::Stop { .. } => unreachable!("filtered"),
    };
    let script = tree.path().join("undo's.sh");
    write_script(&script, &undo_script(tree.path(), &changes)).unwrap();
    for change in &changes {
        apply(tree.path(), change).unwrap();
        let (path, value, _) = places(change);
        assert_eq!(tree.get(&path), value);
    }
    // What was bad is good now, so that nothing is left to write.
    assert_eq!(writes(&tree), []);
    assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(run(&script).status.success());
    for change in &changes {
        let (path, _, before) = places(change);
        assert_eq!(tree.get(&path), before);
    }
}

#[test]
fn the_script_goes_on_after_a_failure_and_says_so() {
    let tree = untuned();
    let gone =
        Change::Write { path: "/sys/gone/file".into(), value: "1".into(), before: "0".into() };
    let mut changes = writes(&tree);
    changes.push(gone);
    let script = tree.path().join("undo.sh");
    write_script(&script, &undo_script(tree.path(), &changes)).unwrap();
    let first = changes.first().unwrap();
    apply(tree.path(), first).unwrap();
    let output = run(&script);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/sys/gone/file should hold 0"));
    let Change::Write { path, before, .. } = first else { unreachable!("filtered") };
    assert_eq!(&tree.get(path.trim_start_matches('/')), before);
}

#[test]
fn a_script_that_exists_stays() {
    let tree = Tree::new();
    tree.put("there.sh", "mine");
    let link = tree.path().join("link.sh");
    symlink("elsewhere.sh", &link).unwrap();
    for path in [tree.path().join("there.sh"), link] {
        let error = write_script(&path, "new").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    }
    assert_eq!(tree.get("there.sh"), "mine");
    assert!(!tree.path().join("elsewhere.sh").exists());
}

#[test]
fn a_script_gives_way_to_another() {
    let tree = Tree::new();
    let script = tree.path().join("undo.sh");
    write_script(&script, "first").unwrap();
    replace_script(&script, "second").unwrap();
    assert_eq!(tree.get("undo.sh"), "second");
    assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o700);
    // Where the new one cannot be written, the old one stays.
    tree.put("undo.sh.new", "mine");
    assert!(replace_script(&script, "third").is_err());
    assert_eq!((tree.get("undo.sh"), tree.get("undo.sh.new")), ("second".into(), "mine".into()));
}

#[test]
fn what_has_changed_meanwhile_is_left() {
    let tree = Tree::new();
    tree.put("proc/sys/kernel/numa_balancing", "2");
    let change = |before: &str| Change::Write {
        path: "/proc/sys/kernel/numa_balancing".into(),
        value: "0".into(),
        before: before.into(),
    };
    let error = apply(tree.path(), &change("1")).unwrap_err();
    assert!(matches!(error, ApplyError::Changed { .. }), "{error}");
    assert_eq!(tree.get("proc/sys/kernel/numa_balancing"), "2");
    apply(tree.path(), &change("2")).unwrap();
    assert_eq!(tree.get("proc/sys/kernel/numa_balancing"), "0");
}

#[test]
fn links_and_missing_files_are_not_written() {
    let tree = Tree::new();
    tree.put("victim", "1");
    fs::create_dir_all(tree.path().join("sys")).unwrap();
    symlink("../victim", tree.path().join("sys/link")).unwrap();
    for path in ["/sys/link", "/sys/none"] {
        let change = Change::Write { path: path.into(), value: "0".into(), before: "1".into() };
        let error = apply(tree.path(), &change).unwrap_err();
        assert!(matches!(error, ApplyError::Refused { .. }), "{error}");
    }
    assert_eq!(tree.get("victim"), "1");
    assert!(!tree.path().join("sys/none").exists());
}

#[test]
fn services_of_other_machines_are_not_stopped_here() {
    let tree = Tree::new();
    let change = Change::Stop { unit: "irqbalance.service".into() };
    assert!(matches!(apply(tree.path(), &change), Err(ApplyError::Elsewhere(_))));
    let start = "\nstart 'irqbalance.service'\n";
    assert!(!undo_script(tree.path(), std::slice::from_ref(&change)).contains(start));
    assert!(undo_script("/".as_ref(), &[change]).contains(start));
}

#[test]
fn the_script_runs_in_any_folder() {
    let change = Change::Write { path: "/sys/file".into(), value: "1".into(), before: "0".into() };
    let folder = std::env::current_dir().unwrap();
    let line = format!("\nput '0' '{}/copy/sys/file'\n", folder.display());
    assert!(undo_script("copy".as_ref(), &[change]).contains(&line));
}
