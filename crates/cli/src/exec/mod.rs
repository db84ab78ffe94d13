//! `millrace exec`: becomes a program whose sockets are Millrace's.

mod library;
mod program;
mod reach;

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use client::session::{DEFAULT_SESSIONS, LINKS_VARIABLE, PLACEMENT_VARIABLE, SESSIONS_VARIABLE};
use shm::session::Placement;

use crate::args::Exec;
use crate::failure::Failure;

/// What the loader loads ahead of a program's own libraries.
const PRELOAD_VARIABLE: &str = "LD_PRELOAD";

/// Replaces this process by the program; returns only when that failed. `socket` is the API's, when it was named.
pub(crate) fn exec(options: &Exec, socket: Option<&Path>) -> Result<(), Failure> {
    let Some((word, arguments)) = options.command.split_first() else {
        return Err(Failure::Usage("name a program to run".into()));
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program =
        program::find(word, &path).ok_or_else(|| Failure::NoProgram(PathBuf::from(word)))?;
    let library = library::find(options.library.as_deref())?;
    let sessions = sessions(options.sessions.as_deref(), socket);
    let placement = placement(options.placement.as_deref());
    let reached = program::check(&program).and_then(|()| reach::reach(&sessions, placement));
    let name = Path::new(word).file_name().unwrap_or(word).to_string_lossy().into_owned();
    if options.require
        && let Err(why) = &reached
    {
        return Err(Failure::NotServed { program: name, why: why.clone() });
    }
    if !options.quiet {
        // Nobody can be told when standard error is closed; the program runs all the same.
        let _ = writeln!(std::io::stderr(), "millrace: {}", sentence(&name, &reached));
    }
    let mut command = Command::new(&program);
    command.arg0(word).args(arguments);
    command.env(PRELOAD_VARIABLE, preloads(&library, std::env::var_os(PRELOAD_VARIABLE)));
    command.env(SESSIONS_VARIABLE, &sessions);
    if options.no_links {
        command.env(LINKS_VARIABLE, "off");
    }
    if let Some(placement) = &options.placement {
        command.env(PLACEMENT_VARIABLE, placement);
    }
    Err(Failure::file(&program, command.exec()))
}

/// One line: whose stack the program runs on, and where a server is reached, or why it is not Millrace's.
fn sentence(name: &str, reached: &Result<reach::Reach, String>) -> String {
    match reached {
        Ok(reach) => {
            format!(
                "{name} runs on Millrace's stack; if it listens, the network reaches it {reach}"
            )
        }
        Err(why) => format!("{name} runs on the kernel's stack: {why}"),
    }
}

/// The sessions socket: as named, by the environment, beside the API's socket, or where it is by default.
fn sessions(named: Option<&Path>, socket: Option<&Path>) -> PathBuf {
    let environment = std::env::var_os(SESSIONS_VARIABLE).filter(|path| !path.is_empty());
    let path = named
        .map(Path::to_owned)
        .or_else(|| environment.map(PathBuf::from))
        .or_else(|| socket.map(|socket| socket.with_file_name("sessions.sock")))
        .unwrap_or_else(|| DEFAULT_SESSIONS.into());
    // The program may change its folder.
    std::path::absolute(&path).unwrap_or(path)
}

/// Where the program's stack is to run, as its library will find it. `None`: the daemon says where.
fn placement(named: Option<&str>) -> Option<Placement> {
    match named {
        Some(name) => Placement::named(name),
        None => std::env::var(PLACEMENT_VARIABLE).ok().and_then(|name| Placement::named(&name)),
    }
}

/// The library, then what was to be loaded anyway. Blanks and colons separate names there.
fn preloads(library: &Path, before: Option<OsString>) -> OsString {
    let mut all = library.as_os_str().to_owned();
    let before = before.unwrap_or_default();
    let text = before.to_string_lossy();
    let others = text.split([' ', ':']).filter(|name| !name.is_empty());
    for other in others.filter(|name| OsStr::new(name) != library) {
        all.push(":");
        all.push(other);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_to_be_loaded_is_kept() {
        let library = Path::new("/usr/lib/millrace/libmillrace_preload.so");
        let with = |before: &str| preloads(library, Some(before.into())).into_string().unwrap();
        let own = library.to_str().unwrap();
        assert_eq!(preloads(library, None), own);
        assert_eq!(with(""), own);
        assert_eq!(with("libjemalloc.so /opt/a.so"), format!("{own}:libjemalloc.so:/opt/a.so"));
        assert_eq!(with(&format!("/opt/a.so:{own}")), format!("{own}:/opt/a.so"), "once");
    }

    #[test]
    fn the_sessions_socket_is_beside_the_api() {
        let beside = |socket| sessions(None, Some(Path::new(socket)));
        assert_eq!(beside("/tmp/lab/api.sock"), Path::new("/tmp/lab/sessions.sock"));
        let named = sessions(Some(Path::new("/a/b")), Some(Path::new("/c/d")));
        assert_eq!(named, Path::new("/a/b"));
        assert!(sessions(Some(Path::new("here.sock")), None).is_absolute());
    }
}
