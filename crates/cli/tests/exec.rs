//! `millrace exec`: what the program it becomes finds, and what is said about it.

use std::path::Path;
use std::process::Command;

/// A run of `millrace exec` without a daemon: its status, what the program wrote, and what was said.
#[cfg(test)]
fn exec(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_millrace"))
        .arg("exec")
        .args(words)
        .current_dir(folder)
        .env_remove("LD_PRELOAD")
        .env("MILLRACE_SESSIONS", folder.join("none.sock"))
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A folder with a library that does nothing.
#[cfg(test)]
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("library.so"), "").unwrap();
    folder
}

#[test]
fn the_program_gets_the_library_and_the_socket() {
    let folder = folder();
    let script = "echo $LD_PRELOAD $MILLRACE_SESSIONS $0 $1";
    let words = ["--library", "library.so", "sh", "-c", script, "name", "--socket"];
    let (status, output, errors) = exec(folder.path(), &words);
    let root = folder.path().canonicalize().unwrap();
    let sessions = folder.path().join("none.sock");
    let wanted = format!("{}/library.so {} name --socket\n", root.display(), sessions.display());
    assert_eq!((status, output), (0, wanted), "{errors}");
    let line = errors.lines().find(|line| line.starts_with("millrace: ")).unwrap();
    let why =
        format!("millrace: sh runs on the kernel's stack: no daemon at {}; ", sessions.display());
    assert!(line.starts_with(&why), "{line}");
    for remedy in ["millrace run", "systemctl start millraced", "--sessions", "MILLRACE_SESSIONS"] {
        assert!(line.contains(remedy), "{remedy} is not in: {line}");
    }
    assert!(!line.contains("MILLRACE_ATTACH"), "the socket of packets is another: {line}");
}

#[test]
fn without_a_daemon_a_program_that_requires_it_does_not_start() {
    let folder = folder();
    let words = ["--require", "--library", "library.so", "touch", "started"];
    let (status, _, errors) = exec(folder.path(), &words);
    assert_eq!(status, 1);
    assert!(errors.contains("touch was not started: no daemon at "), "{errors}");
    assert!(!folder.path().join("started").exists());
}

#[test]
fn what_is_missing_is_named() {
    let folder = folder();
    let (status, _, errors) = exec(folder.path(), &["--library", "library.so", "no-such-program"]);
    assert_eq!(status, 1);
    assert!(errors.contains("no program no-such-program"), "{errors}");
    let (status, _, errors) = exec(folder.path(), &["--library", "none.so", "true"]);
    assert_eq!(status, 1);
    assert!(errors.contains("none.so"), "{errors}");
    let (status, _, errors) = exec(folder.path(), &[]);
    assert_eq!(status, 2, "{errors}");
}

#[test]
fn quiet_says_nothing() {
    let folder = folder();
    let words = ["--quiet", "--library", "library.so", "true"];
    let (status, _, errors) = exec(folder.path(), &words);
    assert_eq!(status, 0);
    assert!(!errors.contains("millrace:"), "{errors}");
}
