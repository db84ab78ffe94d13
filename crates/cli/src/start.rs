//! `millrace run`: becomes `millraced`.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::Run;
use crate::failure::Failure;

/// Name of the daemon's program.
const DAEMON: &str = "millraced";

/// Replaces this process by the daemon; returns only when that failed.
pub(crate) fn exec(run: &Run, socket: Option<&Path>) -> Result<(), Failure> {
    let program = find().ok_or(Failure::NoDaemon)?;
    let mut command = Command::new(&program);
    command.arg("--config").arg(&run.config);
    if let Some(socket) = socket {
        command.arg("--socket").arg(socket);
    }
    if run.check {
        command.arg("--check");
    }
    Err(Failure::file(&program, command.exec()))
}

/// The daemon beside this program, else the first in PATH.
fn find() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(DAEMON)).find(|program| program.is_file())
}
