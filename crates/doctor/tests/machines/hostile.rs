//! Trees that no kernel would write.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::fixture::{Tree, tuned, untuned};
use millrace_doctor::{Machine, Setup, checks};
use proptest::prelude::*;
use proptest::sample::Index;

/// All files of a tree, with what they hold.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => found.extend(files(&entry.path())),
            kind if kind.is_file() => found.push((entry.path(), fs::read(entry.path()).unwrap())),
            _ => {}
        }
    }
    found.sort();
    found
}

fn look(tree: &Tree) {
    let machine = tree.machine();
    let setup = Setup::assumed(&machine);
    assert!(!checks::all(&machine, &setup).is_empty());
}

/// Files to write to, with what they get.
fn wounds() -> impl Strategy<Value = Vec<(Index, Vec<u8>)>> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..40);
    let lists = "[0-9,\\-: \\[\\]]{0,24}".prop_map(String::into_bytes);
    proptest::collection::vec((any::<Index>(), prop_oneof![bytes, lists]), 1..60)
}

#[test]
fn any_bytes_anywhere() {
    for tree in [tuned(), untuned()] {
        let files = files(tree.path());
        proptest!(|(wounds in wounds())| {
            for (index, bytes) in &wounds {
                fs::write(&index.get(&files).0, bytes).unwrap();
            }
            look(&tree);
            for (index, _) in &wounds {
                let (path, bytes) = index.get(&files);
                fs::write(path, bytes).unwrap();
            }
        });
    }
}

#[test]
fn a_fifo_keeps_nobody_waiting() {
    let tree = Tree::new();
    fs::create_dir_all(tree.path().join("proc")).unwrap();
    let fifo = tree.path().join("proc/cmdline");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert!(tree.machine().kernel.command_line.is_err());
}

#[test]
fn endless_and_circular_files_end() {
    let tree = Tree::new();
    fs::create_dir_all(tree.path().join("proc")).unwrap();
    symlink("/dev/zero", tree.path().join("proc/cmdline")).unwrap();
    symlink("cpuinfo", tree.path().join("proc/cpuinfo")).unwrap();
    look(&tree);
    let large = "0-8191,".repeat(1 << 20);
    tree.put("sys/devices/system/cpu/online", &large)
        .put("sys/devices/system/cpu/isolated", &large);
    look(&tree);
    tree.put("sys/devices/system/cpu/online", "0-8191")
        .put("sys/devices/system/cpu/isolated", "0-4294967295");
    look(&tree);
}

#[test]
fn a_file_as_root_and_no_root_at_all() {
    let tree = Tree::new();
    tree.put("file", "x");
    for root in ["file", "none"] {
        let machine = Machine::read(&tree.path().join(root), Some(u32::MAX));
        assert!(!checks::all(&machine, &Setup::assumed(&machine)).is_empty());
    }
}

#[test]
fn this_machine_is_read() {
    let machine = Machine::read("/".as_ref(), Some(std::process::id()));
    assert!(!machine.topology.cores.is_empty());
    assert!(machine.limits.is_ok());
    assert!(!checks::all(&machine, &Setup::assumed(&machine)).is_empty());
}
