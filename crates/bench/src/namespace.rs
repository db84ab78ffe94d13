//! Network namespaces for what is measured beside us, and programs in them.
//!
//! Namespaces have no names: each belongs to a process that sleeps, and ends with it. Every program gets a signal when this
//! one ends, so that nothing stays behind, however it ends.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::process::{self, Program, Running, apart};

/// Ends a program with this process.
pub(crate) const BOUND: Program = ("setpriv", "util-linux");
/// What namespaces are made and set up with.
const PROGRAMS: [Program; 5] = [
    BOUND,
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("ip", "iproute2"),
    ("sysctl", "procps"),
];

/// How long it may take to make one.
const PATIENCE: Duration = Duration::from_secs(15);
/// Between two looks whether it is there.
const LOOK: Duration = Duration::from_millis(20);

/// A program that ends with this process, whatever ends it.
pub(crate) fn bound() -> Command {
    let mut command = Command::new("setpriv");
    apart(&mut command).args(["--pdeathsig", "TERM"]);
    command
}

/// Why there can be none here, for people; `None`: there can. `has`: whether a program is installed.
pub(crate) fn lacks(is_root: bool, has: &dyn Fn(&str) -> bool) -> Option<String> {
    if is_root {
        return process::lacks(&PROGRAMS, has);
    }
    Some("it takes a network namespace, which only root can make: run this as root".into())
}

/// Makes one.
pub(crate) fn make() -> Result<Running, Failure> {
    let mut command = bound();
    command.args(["unshare", "--net", "sleep", "infinity"]);
    let running = Running::new(command.stdin(Stdio::null()).spawn()?);
    let own = std::fs::read_link("/proc/self/ns/net")?;
    let link = Path::new("/proc").join(running.id().to_string()).join("ns/net");
    let begin = Instant::now();
    while std::fs::read_link(&link).map_or(true, |theirs| theirs == own) {
        if begin.elapsed() > PATIENCE {
            let why = "no network namespace: is unshare (util-linux) there, and are you root?";
            return Err(Failure::Namespace(why.into()));
        }
        thread::sleep(LOOK);
    }
    Ok(running)
}

/// A command that a program is to be appended to, which then runs in the namespace.
pub(crate) fn entering(namespace: &Running) -> Command {
    let mut command = bound();
    command.arg("nsenter").arg(format!("--net=/proc/{}/ns/net", namespace.id()));
    command
}

/// Runs a command in a namespace.
pub(crate) fn inside(namespace: &Running, words: &[&str]) -> Result<(), Failure> {
    finish(entering(namespace).args(words), words)
}

/// Runs a command in this process's own namespace.
pub(crate) fn outside(words: &[&str]) -> Result<(), Failure> {
    let (program, rest) =
        words.split_first().map_or(("true", words), |(first, rest)| (*first, rest));
    finish(Command::new(program).args(rest), words)
}

fn finish(command: &mut Command, words: &[&str]) -> Result<(), Failure> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::Namespace(format!("{}: {}", words.join(" "), said.trim())))
}
