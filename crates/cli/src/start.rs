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

/// The daemon beside this program or where it is installed from here, else the first in PATH.
fn find() -> Option<PathBuf> {
    let own = std::env::current_exe().unwrap_or_default();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = near(&own).into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(DAEMON)).find(|program| program.is_file())
}

/// Where the daemon may be, seen from this program: the PATH of one who became root by `su` lacks `sbin`.
fn near(own: &Path) -> Vec<PathBuf> {
    let Some(folder) = own.parent() else { return Vec::new() };
    let installed = folder.parent().filter(|_| folder.ends_with("bin"));
    let installed = installed.map(|prefix| prefix.join("sbin"));
    [Some(folder.to_owned()), installed].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemon_is_near() {
        let near =
            |own: &str| near(Path::new(own)).into_iter().map(|path| path.display().to_string());
        assert!(near("/usr/local/bin/millrace").eq(["/usr/local/bin", "/usr/local/sbin"]));
        assert!(near("/src/target/debug/millrace").eq(["/src/target/debug"]));
        assert!(near("").eq([""; 0]));
    }
}
