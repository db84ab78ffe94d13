//! Making changes, and the script that undoes them.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::OFlags;

use crate::change::Change;
use crate::cores::CoreSet;
use crate::root::{Root, chosen};

/// The script's mode: its user alone may read and run it.
const MODE: u32 = 0o700;

/// What the script begins with: `put VALUE FILE` writes, and goes on when that fails.
const PROLOGUE: &str = "#!/bin/sh
# Undoes what 'millrace doctor --apply' changed, the last change first.
status=0
put() {
  { printf '%s\\n' \"$1\" > \"$2\"; } 2>/dev/null || { echo \"not undone: $2 should hold $1\" >&2; status=1; }
}
start() {
  systemctl start \"$1\" || { echo \"not undone: $1 should run\" >&2; status=1; }
}
";

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The kernel refused.
    #[error("{path}: {error}; be root, and see whether this kernel allows it")]
    Refused {
        /// The file.
        path: String,
        /// What the kernel says.
        error: io::Error,
    },
    /// Somebody has changed it meanwhile: the undo script would bring back what nobody had.
    #[error("{path} holds '{holds}' by now, not '{before}'; run it again")]
    Changed {
        /// The file.
        path: String,
        /// What it holds.
        holds: String,
        /// What it held when it was checked.
        before: String,
    },
    /// The kernel took another number than it was given.
    #[error(
        "{path}: the kernel made it {got} instead of {wanted}; free memory, or reserve it at boot"
    )]
    Less {
        /// The file.
        path: String,
        /// What it was given.
        wanted: String,
        /// What it holds.
        got: String,
    },
    /// A service of another machine.
    #[error("{0} is not of this machine; stop it there")]
    Elsewhere(String),
    /// `systemctl` cannot be run.
    #[error("systemctl cannot be run: {0}; stop the service by hand")]
    NoSystemctl(io::Error),
    /// `systemctl` failed.
    #[error("{unit} was not stopped: {said}; see 'systemctl status {unit}'")]
    Stop {
        /// The unit.
        unit: String,
        /// What systemctl said.
        said: String,
    },
}

impl ApplyError {
    /// Whether something is other than before all the same, or may be: a service that was told to stop may do so later.
    #[must_use]
    pub const fn has_changed(&self) -> bool {
        matches!(self, Self::Less { .. } | Self::Stop { .. })
    }
}

/// A script for `sh` that undoes the changes in reverse order, on the machine below `root`, from whatever folder it is run.
/// Services of another machine are left out: they are not stopped from here.
#[must_use]
pub fn undo_script(root: &Path, changes: &[Change]) -> String {
    let here = is_this_machine(root);
    let root = Root::new(&std::path::absolute(root).unwrap_or_else(|_| root.to_owned()));
    let mut script = PROLOGUE.to_owned();
    for change in changes.iter().rev() {
        let _ = match change {
            Change::Write { path, before, .. } => {
                let place = root.place(path).display().to_string();
                writeln!(script, "put {} {}", quoted(before), quoted(&place))
            }
            Change::Stop { unit } if here => writeln!(script, "start {}", quoted(unit)),
            Change::Stop { .. } => Ok(()),
        };
    }
    script.push_str("exit $status\n");
    script
}

/// Writes the script, and waits until it is on disk. A file that is there, or a symbolic link, stays as it is; a script that could
/// be written only in part does not.
///
/// # Errors
/// What the kernel says; `AlreadyExists` when there is something at `path`.
pub fn write_script(path: &Path, script: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(path)?;
    let written = file.write_all(script.as_bytes()).and_then(|()| file.sync_all());
    written.inspect_err(|_| drop(std::fs::remove_file(path)))
}

/// Puts another script in the place of one that [`write_script`] wrote; at no time is there none.
///
/// # Errors
/// What the kernel says; then the first script is there still.
pub fn replace_script(path: &Path, script: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    write_script(&new, script)?;
    std::fs::rename(&new, path).inspect_err(|_| drop(std::fs::remove_file(&new)))
}

/// Makes one change on the machine below `root`.
///
/// # Errors
/// Any [`ApplyError`]; then the setting is as it was, or as the kernel left it.
pub fn apply(root: &Path, change: &Change) -> Result<(), ApplyError> {
    match change {
        Change::Write { path, value, before } => write(&Root::new(root), (path, value, before)),
        Change::Stop { unit } if is_this_machine(root) => stop(unit),
        Change::Stop { unit } => Err(ApplyError::Elsewhere(unit.clone())),
    }
}

/// Whether a root is this machine's, and no copy of another's.
fn is_this_machine(root: &Path) -> bool {
    root == Path::new("/")
}

fn write(root: &Root, (path, value, before): (&str, &str, &str)) -> Result<(), ApplyError> {
    let refused = |error| ApplyError::Refused { path: path.to_owned(), error };
    let holds = read(root, path).map_err(refused)?;
    if !same(&holds, before) {
        let before = before.to_owned();
        return Err(ApplyError::Changed { path: path.to_owned(), holds, before });
    }
    let mut file =
        open(root, path, OpenOptions::new().write(true).truncate(true)).map_err(refused)?;
    // One write: the kernel takes each as a value of its own.
    file.write_all(format!("{value}\n").as_bytes()).map_err(refused)?;
    let got = read(root, path).map_err(refused)?;
    // Fewer hugepages than were asked for are no error to the kernel.
    let numbers = (value.parse::<u64>(), got.parse::<u64>());
    match numbers {
        (Ok(wanted), Ok(number)) if wanted != number => {
            Err(ApplyError::Less { path: path.to_owned(), wanted: value.to_owned(), got })
        }
        _ => Ok(()),
    }
}

/// A regular file that is no symbolic link.
fn open(root: &Root, path: &str, options: &mut OpenOptions) -> io::Result<std::fs::File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let flags = i32::try_from(flags).unwrap_or_default();
    let file = options.custom_flags(flags).open(root.place(path))?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::InvalidInput.into()) }
}

fn read(root: &Root, path: &str) -> io::Result<String> {
    let mut text = String::new();
    open(root, path, OpenOptions::new().read(true))?.take(4_096).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

/// Whether a file still holds a value: as it is, as the chosen one of several, or as another spelling of the same cores.
fn same(holds: &str, value: &str) -> bool {
    let cores = |text: &str| text.parse::<CoreSet>().ok();
    holds == value
        || chosen(holds) == Some(value)
        || cores(holds).is_some_and(|held| cores(value) == Some(held))
}

fn stop(unit: &str) -> Result<(), ApplyError> {
    let mut command = Command::new("systemctl");
    command.args(["stop", "--", unit]).stdin(Stdio::null());
    let output = command.output().map_err(ApplyError::NoSystemctl)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', ", ");
    Err(ApplyError::Stop { unit: unit.to_owned(), said })
}

/// A word for the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
